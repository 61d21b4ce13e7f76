"""Layer norm unit: its results while they wait. Its row buffers are those of the softmax unit, proved there."""

from hw.units.layer_norm_unit.deviation_lane import DeviationLane
from hw.units.layer_norm_unit.row_root import RowRoot
from hw.units.layer_norm_unit.row_sum import RowSum
from hw.units.layer_norm_unit.unit import LayerNormUnit
from verif.formal.properties import Property
from verif.formal.streams import obey, stable


def holds(c, block):
    obey(c, block.element)
    stable(c, normalised=block.normalised)
    c.claim("coefficients are always taken", block.coefficient.ready)


PROPERTIES = [
    Property(
        "layer_norm_unit",
        "results hold while stalled",
        LayerNormUnit,
        [{"n_lanes": 1, "n_slots": 1}],
        holds,
        free=(DeviationLane, RowRoot, RowSum),
        reach=60,
    )
]

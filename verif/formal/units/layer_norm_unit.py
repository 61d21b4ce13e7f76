"""Layer norm unit: the beats of its rows from end to end. Its row buffers are those of the softmax unit."""

from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.linear_segments import LinearSegments
from hw.arith.multiplier import TruncatedMultiplier
from hw.arith.shifter import LogShifter
from hw.units.layer_norm.deviation_lane import DeviationLane
from hw.units.layer_norm.fixed import FixedMagnitude
from hw.units.layer_norm.output_lane import OutputLane
from hw.units.layer_norm.row_root import RowRoot
from hw.units.layer_norm.row_sum import RowSum
from hw.units.layer_norm.square_lane import SquareLane
from hw.units.layer_norm_unit import LayerNormUnit
from hw.units.vector.trees import MaximumTree, SumTree
from verif.formal.properties import Property
from verif.formal.streams import obey, stable
from verif.formal.units.softmax_unit import rows_in_time


def rows(c, block):
    rows_in_time(c, block, block.element, block.normalised, block.n_slots)
    c.claim("coefficients are always taken", block.coefficient.ready)


def holds(c, block):
    obey(c, block.element)
    stable(c, normalised=block.normalised)


ARITHMETIC = (DeviationLane, FixedMagnitude, LeadingZeroCounter, LinearSegments, LogShifter, MaximumTree, OutputLane,
              SquareLane, SumTree, TruncatedMultiplier)
"""What makes values, and has no say in which beats go where."""

PROPERTIES = [
    Property("layer_norm_unit", "beats of rows come out once, in order, in time, with their tags; any arithmetic",
             LayerNormUnit, [{"n_lanes": 1, "n_slots": 1}], rows, engine="bmc", depth=40, reach=60,
             free=ARITHMETIC),
    Property("layer_norm_unit", "results hold while stalled", LayerNormUnit, [{"n_lanes": 1, "n_slots": 1}], holds,
             free=(DeviationLane, RowRoot, RowSum), reach=60),
]

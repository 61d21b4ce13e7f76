"""The memories beside the softmax path, and SOFTMAX commands with what they must write."""

import numpy as np

from golden.core.bitmap_scanner import scan
from golden.spec.commands import FLAGS, Opcode
from golden.spec.formats import FP16
from golden.units.softmax_unit import encode_scale, softmax
from verif.bench.packing import pack
from verif.core.path_memories import Direct, MemoryReadPort, WriteMonitor, WriteStream


def connect(testbench):
    """The endpoints of a softmax path for :mod:`verif.core.path_bench`."""
    return [
        MemoryReadPort(testbench, "mask", "mask"),
        Direct(testbench, "scores", "scores"),
        Direct(testbench, "mass", "mass"),
        WriteMonitor(testbench, "probabilities", "probability_write"),
        WriteMonitor(testbench, "mass", "mass_write"),
        WriteStream(testbench, "mask", "mask_write", lambda w: [(0, w["address"], w["row"])]),
    ]


def mask_word(p, mask, row):
    """Where a row of a mask lies."""
    return 1 + (mask - 1) * p.max_tokens + row if mask else 0


class SoftmaxProgram:
    """Makes runs at random; every run brings its own masks, scores and masses."""

    def __init__(self, parameters, seed):
        self.parameters, self.rng = parameters, np.random.default_rng(seed)

    def run(self, *, n_rows=None, n_keys=None, kind=None, density=None, gated=None, mask=None, **options):
        """A run; what is not given is chosen at random. ``kind``: plain, make_mask or use_mass."""
        p, rng = self.parameters, self.rng
        n_keys = n_keys or int(rng.integers(1, p.max_tokens + 1))
        slots = p.slots_of(n_keys)
        most = min(p.max_tokens, p.omem_depth // slots)
        n_rows = n_rows or int(rng.integers(1, most + 1))
        gated = bool(rng.integers(2)) if gated is None else gated
        kind = kind or str(rng.choice(["plain", "make_mask", "use_mass"] if p.n_masks > 1 else ["plain", "use_mass"]))
        mask = int(rng.integers(p.n_masks)) if mask is None else mask
        mask_out = 0
        if kind == "make_mask":
            mask_out = int(rng.choice([m for m in range(1, p.n_masks) if m != mask] or [0]))
            if not mask_out:
                mask, mask_out = 0, 1
        tokens = np.sort(rng.permutation(n_rows)[: rng.integers(0, n_rows + 1)]) if gated else None
        active = np.arange(n_rows) if tokens is None else tokens
        bitmap = self._bitmap(n_rows, density) if mask else np.repeat(self._bitmap(1, density), n_rows, axis=0)
        words = pack(bitmap.reshape(n_rows, -1), 1)
        load = [["mask", 0, mask_word(p, mask, row), words[row]] for row in range(n_rows if mask else 1)]
        bitmap = (bitmap & (np.arange(p.key_slots) < slots))[active]

        steps = scan(bitmap)
        longest = int(np.bincount(steps.row, minlength=1).max()) if len(steps.row) else 1
        enable = steps.slot >= 0
        counts = bitmap.sum(axis=2)
        source, destination = (int(rng.integers(p.omem_depth - n_rows * slots + 1)) for _ in range(2))
        ends = np.vstack([np.zeros((1, p.n_banks), np.int64), np.cumsum(counts, axis=0)])
        score = rng.normal(0, 4, enable.shape).astype(np.float16).view(np.uint16)
        score = np.where(rng.random(score.shape) < 0.02, rng.integers(0, 1 << 16, score.shape), score)
        place = np.cumsum(enable, axis=0) - enable
        for step, bank in np.argwhere(enable):
            load.append(["scores", int(bank), source + int(place[step, bank]), int(score[step, bank])])
        mass = rng.integers(0, 0x4000, n_rows)
        if kind == "use_mass":
            load += [["mass", 0, row, int(mass[row])] for row in range(n_rows)]
        theta = int(np.float16(rng.choice([0, 2.0**-9, 0.05, 1])).view(np.uint16))
        scale = encode_scale(float(rng.choice([1, 0.25, 0.05])))

        # Rows of equal length, as the golden model wants them.
        wide = np.zeros((len(active), longest, p.n_banks), np.uint16)
        taken = np.zeros(wide.shape, bool)
        within = np.arange(len(steps.row)) - np.flatnonzero(steps.first)[steps.row]
        wide[steps.row, within], taken[steps.row, within] = score, enable
        factor = mass[active] if kind == "use_mass" else FP16.one
        flat = len(active), longest * p.n_banks
        found = softmax(wide.reshape(flat), taken.reshape(flat), scale, theta, factor)
        value = found.values.reshape(wide.shape)[steps.row, within]
        keep = found.keep.reshape(wide.shape)[steps.row, within]
        passed = np.zeros(bitmap.shape, bool)
        step, bank = np.nonzero(keep)
        passed[steps.row[step], bank, steps.slot[step, bank]] = True
        mask_words = pack(passed.reshape(len(active), -1), 1) if len(active) else []

        rows = [[] for _ in active]
        for step, bank in np.argwhere(enable):
            address = destination + int(place[step, bank])
            rows[steps.row[step]].append(["probabilities", int(bank), address, int(value[step, bank])])
        if kind == "make_mask":
            for index, row in enumerate(active):
                rows[index].append(["mask", 0, mask_word(p, mask_out, int(row)), mask_words[index]])
                rows[index].append(["mass", 0, int(row), int(found.retained_mass[index])])
        flags = (FLAGS["gated"] if gated else 0) | (FLAGS[kind] if kind != "plain" else 0)
        return {
            "name": f"{kind}, {len(active)} of {n_rows} rows, {n_keys} keys",
            "command": {
                "opcode": int(Opcode.SOFTMAX),
                "flags": flags,
                "mask": mask,
                "mask_out": mask_out,
                "n_rows": n_rows,
                "n_out": n_keys,
                "source": source,
                "destination": destination,
                "theta": theta,
                "scale": scale,
            },
            "n_active": len(active),
            "tokens": None if tokens is None else tokens.tolist(),
            "load": load,
            "rows": rows,
            "allowed": {"mask": list(range(len(active) + 1)), "scores": ends.T.tolist()},
            "n_steps": len(steps.row),
            "longest": longest,
            **options,
        }

    def _bitmap(self, n_rows, density):
        """Some rows empty, some full, some with one bank only."""
        p, rng = self.parameters, self.rng
        shape = n_rows, p.n_banks, p.key_slots
        if density is not None:
            return rng.random(shape) < density
        bitmap = rng.random(shape) < rng.random((n_rows, 1, 1))
        kind = rng.integers(0, 8, n_rows)
        bitmap[kind == 0] = False
        bitmap[kind == 1] = True
        bitmap[kind == 2, 1:] = False
        return bitmap


__all__ = ["SoftmaxProgram", "connect", "mask_word"]

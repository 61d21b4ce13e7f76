"""``--verify`` of ``python -m hw verilog``: the files on disk against what Yosys made of the design."""

import sys

from tqdm import tqdm

from hw.emit.equivalence import differ_in_simulation, prove

__all__ = ["verify"]

SECONDS = 60
"""Time for the proof of a module; what takes longer is simulated."""


def verify(folder, emission, tops):
    """Compare the Verilog of a package, as it lies in a folder, and say of each block how; returns the exit code.

    Module by module, with registers, memories and instances cut open, so that the size of a block does not matter.
    """
    files = [folder / name for name in (folder / "files.f").read_text().split()]
    simulated = set()

    def simulate(module, netlist, verilog):
        simulated.add(module)
        return not differ_in_simulation(netlist, verilog)

    with tqdm(total=len(emission.matches) + 1, unit="module", disable=None, leave=False) as bar:

        def progress(module):
            bar.set_description(f"proving {module}")
            bar.update()

        try:
            verilog = "".join(file.read_text() for file in files)
            verdicts = prove(emission.netlist, emission.matches, verilog, SECONDS, simulate, progress)
        except (OSError, RuntimeError, ValueError) as error:
            print(f"error: the Verilog in {str(folder)!r} cannot be compared: {error}", file=sys.stderr)
            return 1
    wrong = [module for module, verdict in verdicts.items() if not verdict]
    for module in wrong:
        how = "random patterns show" if module in simulated else "a proof shows"
        print(f"error: {module} is not what Yosys wrote: {how} a difference", file=sys.stderr)
    parts = {name: set(module.rtlil) for name, module in emission.modules.items()}
    for top in tops:
        inside = {part for name in emission.below(top) for part in parts[name]}
        print(f"{top}: {_count(inside, verdicts, simulated)}")
    return 1 if wrong else 0


def _count(inside, verdicts, simulated):
    """How many modules were proved, how many simulated, how many are black boxes or differ."""
    equal = {module for module in inside if verdicts.get(module)}
    numbers = {
        "proved equal": len(equal - simulated),
        "simulated without a difference": len(equal & simulated),
        "different": sum(module in verdicts for module in inside - equal),
        "black boxes": sum(module not in verdicts for module in inside),
    }
    return "modules " + ", ".join(f"{word}: {number}" for word, number in numbers.items() if number)

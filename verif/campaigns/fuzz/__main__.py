"""``python -m verif.campaigns.fuzz``: hostile command lines and files; exit code 0 if all were handled correctly.

Every case must end within 10 s of processor time (but for what is legal and carried out) with exit code 0, or with exit
code 2 and one sentence; with no traceback, and with no file half-written. A case is made from the seed and its number
alone, so that it can be run again.
"""

import argparse
import collections
import shlex
import sys
import time

from tqdm import tqdm

from hw.cli.arguments import check_least, reporting_errors
from verif.campaigns.fuzz.cases import make_case
from verif.campaigns.fuzz.run import run_case

AS_COMMAND = 50
"""One case out of so many is run as a user would, with a new Python."""


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m verif.campaigns.fuzz", description=__doc__.split(": ", 1)[1])
    parser.add_argument("--seed", type=int, help="seed of the cases (default: the time)")
    parser.add_argument("-n", "--count", type=int, default=5000, help="number of cases (default 5000)")
    parser.add_argument("--case", type=int, metavar="NUMBER", help="run this case only and show what it prints")
    options = parser.parse_args(arguments)
    seed = int(time.time()) if options.seed is None else options.seed
    check_least(options, count=1)
    if options.case is not None:
        return _one(seed, options.case)
    print(f"seed {seed}", flush=True)
    ends, problems = collections.Counter(), 0
    for index in tqdm(range(options.count), desc="fuzz", unit="case", disable=None):
        case = make_case(seed, index)
        problem, outcome = run_case(case, as_command=index % AS_COMMAND == 0 and not _may_be_long(case))
        ends[{None: "legal, not carried out", 0: "carried out", 2: "refused"}.get(outcome.code, "broken")] += 1
        if problem:
            problems += 1
            last = (outcome.errors.strip().splitlines() or [""])[-1]
            print(f"FAILED --seed {seed} --case {index}: {problem}: {last[:200]}", flush=True)
    told = ", ".join(f"{number} {name}" for name, number in sorted(ends.items()))
    print(f"fuzz: seed {seed}, {options.count} cases ({told}), {problems} failed")
    return 1 if problems else 0


def _may_be_long(case):
    """A new Python carries out whatever is legal."""
    return run_case(case)[1].code is None


def _one(seed, index):
    case = make_case(seed, index)
    problem, outcome = run_case(case)
    sizes = {name: len(data) for name, data in case.files.items()}
    print(f"python -m {shlex.join(case.words)}", sizes, case.environment, case.output)
    print(outcome.output, outcome.errors, sep="\n")
    print(f"exit code {outcome.code}, {outcome.seconds:.1f} s: {problem or 'well met'}")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(reporting_errors(main))

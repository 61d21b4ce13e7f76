"""The testbench runtime: simulators, endpoints, checks."""

import importlib.util
import sys

_NEEDED = ("cocotb", "cocotb_tools")

for _name in _NEEDED:
    if importlib.util.find_spec(_name) is None:
        # Here, since every command that simulates comes by, and nothing of it can work.
        print(
            f"error: the Python package {_name} is not installed: simulations need the extra 'test' "
            "(pip install '.[test]' in the project's folder)",
            file=sys.stderr,
        )
        sys.exit(2)

"""What the user gave in variables is looked at before any test runs, so that a mistake is one sentence."""

import os

import pytest

from verif.bench import datasets, simulator


def pytest_configure():
    try:
        if os.environ.get("SIM"):
            simulator.choose()
        for variable in datasets.FILES:
            if os.environ.get(variable):
                datasets.load(variable)
    except (simulator.SimulatorError, datasets.DataError) as error:
        raise pytest.UsageError(str(error)) from None
    if not os.environ.get("SEED", "1").isdecimal():
        raise pytest.UsageError(f"SEED must be an integer from 0, not {os.environ['SEED']!r}")

"""Outside data for the tests: the file that a variable names, else the shared folder's, else a small part of it."""

import os
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data"
SHARED = Path(__file__).parents[2] / "shared" / "data"


def locate(variable, shared_name, small_name):
    """The path of a data file; a file that was asked for by name and is missing is an error."""
    if os.environ.get(variable):
        path = Path(os.environ[variable])
        if not path.is_file():
            raise FileNotFoundError(f"{variable} must name an existing file, not {str(path)!r}")
        return path
    shared = SHARED / shared_name
    return shared if shared.is_file() else DATA / small_name


def load(path):
    """All arrays of an npz file."""
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def testfloat():
    """Vectors of Berkeley TestFloat: one array an operation, with columns operands, result, flags."""
    return load(locate("TESTFLOAT", "testfloat_public.npz", "testfloat_small.npz"))


def workload():
    """Latents, attention heads, masks and figures of a small diffusion transformer; see ``data/WORKLOAD.md``."""
    return load(locate("WORKLOAD", "workload_public.npz", "workload_small.npz"))

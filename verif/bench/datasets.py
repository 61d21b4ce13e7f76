"""Outside data for the tests: the file that a variable names, else the shared folder's, else a small part of it.

The small files in ``data`` say what a file must hold: arrays of these names, with as many axes and the same kind of
number.
"""

import os
from pathlib import Path

from golden.program.arrays import read_arrays

DATA = Path(__file__).parents[1] / "data"
SHARED = Path(__file__).parents[3] / "shared" / "data"

FILES = {
    "WORKLOAD": ("workload_public.npz", "workload_small.npz"),
    "TESTFLOAT": ("testfloat_public.npz", "testfloat_small.npz"),
}
"""By variable: the file in the shared folder, and the small one."""


class DataError(ValueError):
    """A data file that the tests cannot use; told in one sentence."""


def locate(variable):
    """The path of a data file; a file that was asked for by name and is missing is an error."""
    shared_name, small_name = FILES[variable]
    if os.environ.get(variable):
        path = Path(os.environ[variable])
        if not path.is_file():
            raise DataError(f"{variable} must name an existing file, not {str(path)!r}")
        return path
    shared = SHARED / shared_name
    return shared if shared.is_file() else DATA / small_name


def read(path):
    """All arrays of an npz file."""
    try:
        arrays = read_arrays(path)
    except OSError as error:
        raise DataError(f"{str(path)!r} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise DataError(str(error)) from None
    if not isinstance(arrays, dict):
        raise DataError(f"{str(path)!r} holds one array and no names: it must be an .npz file")
    return arrays


def load(variable):
    """The arrays of the file that the variable stands for, checked against those of the small file."""
    path, form = locate(variable), read(DATA / FILES[variable][1])
    arrays = read(path)
    missing = sorted(set(form) - set(arrays))
    if missing:
        raise DataError(f"{variable} file {str(path)!r} must hold {', '.join(form)}, but has no {', '.join(missing)}")
    for name, model in form.items():
        found = arrays[name]
        # The columns of a table are its form, the number of rows is not.
        columns = model.shape[1:] if variable == "TESTFLOAT" else ()
        if (
            _kind(found) != _kind(model)
            or found.ndim != model.ndim
            or not found.size
            or columns != found.shape[1:][: len(columns)]
        ):
            raise DataError(
                f"{name} in {variable} file {str(path)!r} must be an array of {_kind(model)}s like "
                f"{list(model.shape)}, not {found.dtype} {list(found.shape)}"
            )
    return arrays


def _kind(array):
    return {"u": "integer", "i": "integer", "f": "float"}.get(array.dtype.kind, "other")


def testfloat():
    """Vectors of Berkeley TestFloat: one array an operation, with columns operands, result, flags."""
    return load("TESTFLOAT")


def workload():
    """Latents, attention heads, masks and figures of a small diffusion transformer; see ``data/WORKLOAD.md``."""
    return load("WORKLOAD")

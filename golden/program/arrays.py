"""Reading of untrusted .npy and .npz files."""

import numpy as np

__all__ = ["read_arrays"]


def read_arrays(path):
    """The array of a .npy file, or ``{name: array}`` of an .npz file; raises ``OSError``, or ``ValueError``."""
    with open(path, "rb") as file:
        try:
            content = np.load(file, allow_pickle=False)
            if not isinstance(content, np.lib.npyio.NpzFile):
                return content
            arrays = {name: content[name] for name in content.files}
        # NumPy reports damaged files with a dozen kinds of exception, among them TokenError and MemoryError.
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ValueError(f"{str(path)!r} is not a .npy or .npz file of plain arrays: {reason}") from None
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{name!r} in {str(path)!r} is not an array")
    return arrays

"""Damaged files: cell libraries, arrays of masks, manifests and reports, each as bytes from a random generator."""

import gzip
import io
import json
import re
import zipfile

import numpy as np

from verif.synthesis import mini_liberty

__all__ = ["NUMBERS", "TEXTS", "library", "manifest", "masks", "report"]

NUMBERS = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "8",
    "-1",
    "-0",
    "+2",
    "007",
    "0x10",
    "0b11",
    "1_0",
    "4.0",
    "1e1",
    "1e400",
    "-1e-400",
    "nan",
    "-nan",
    "inf",
    "-inf",
    "NaN",
    "2147483648",
    "18446744073709551616",
    "9" * 40,
    "9" * 5000,
    "\u0663",
    "\uff14",
    "1,5",
]
TEXTS = [
    *NUMBERS,
    "",
    " ",
    "-",
    "--",
    "=",
    "==",
    "none",
    "None",
    "true",
    "all",
    "tiny",
    "\udcff",
    "\u00e9",
    "\u4e2d\u6587",
    "\U0001f600",
    "\u202e",
    "a\nb",
    "\t",
    "\x1b[31m",
    "\x7f",
    "'",
    '"',
    "$(x)",
    ";",
    "%s",
    "%(prog)s",
    "{}",
    "{0}",
    "*",
    "\\",
    ".",
    "..",
    "a" * 300,
    "b" * 5000,
    "/dev/null",
    "/dev/null/x",
    "@x",
    "#",
    "(",
    "module",
    "con",
]


def _spoilt(rng, data):
    """Bytes after a few edits of any kind."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 3, 40, 700)))
        kind = rng.randrange(7)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            del data[at:end]
        elif kind == 2:
            data[at:at] = data[at:end]
        elif kind == 3:
            data[at:at] = rng.choice(TEXTS).encode("utf-8", "surrogateescape")
        elif kind == 4:
            data[at:end] = rng.randbytes(end - at)
        elif kind == 5:
            data[at:at] = rng.choice((b"{", b"}", b"(", b")", b'"', b";", b":", b"/*", b"*/", b"\\\n", b"\0", b"\r\n"))
        elif data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
    return bytes(data)


def _deep(rng):
    depth = rng.choice((50, 2_000, 200_000))
    opening, closing = rng.choice((("a (b) {\n", "}\n"), ("a (", ")"), ("{", "}")))
    return f"library (deep) {{\n{opening * depth}{closing * depth}}}\n"


def _odd_function(rng, text):
    depth = rng.choice((5, 500, 50_000))
    pins = "".join(f"pin (P{n}) {{ direction : input; }}\n" for n in range(rng.choice((1, 12, 40))))
    deep = ["(" * depth + "A" + ")" * depth, "!" * depth + "A", "A" + "'" * depth]
    functions = [*deep, "A &", "^", "A B ^ ^", ")(", "Z", "\u00e9"]
    function = rng.choice(functions)
    pins += f'pin (A) {{ direction : input; }}\npin (Y) {{ direction : output; function : "{function}"; }}\n'
    cell = f"cell (ODD) {{\narea : 1;\n{pins}}}\n"
    return text.replace("  cell (INV)", f"{cell}  cell (INV)", 1)


def _other_number(rng, text):
    """One number of the text becomes another."""
    places = list(re.finditer(r"(?<=[ (])\d+(?:\.\d+)?", text))
    match = rng.choice(places)
    return text[: match.start()] + rng.choice(TEXTS) + text[match.end() :]


def library(rng):
    """A Liberty file, packed or not; some are still good ones."""
    text = mini_liberty.text()
    kind = rng.randrange(10)
    if kind < 3:
        for _ in range(rng.choice((1, 3))):
            text = _other_number(rng, text)
    elif kind == 3:
        text = _deep(rng)
    elif kind == 4:
        text = _odd_function(rng, text)
    elif kind == 5:
        words = ["cell", "pin", "area", "direction", "input", "output", "function", "INV", "library", "mini", "ff"]
        text = text.replace(rng.choice(words), rng.choice(TEXTS), rng.choice((1, 1, -1)))
    data = text.encode("utf-8", "surrogateescape")
    if kind == 9:
        data = data.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-8-sig", "cp037")), "replace")
    if kind in (6, 7):
        data = _spoilt(rng, data)
    if rng.random() < 0.3:
        data = gzip.compress(data)
        if rng.random() < 0.7:
            data = _spoilt(rng, data)
    return rng.choice((b"", b"\x1f\x8b", rng.randbytes(500), data[:2])) if kind == 8 else data


def _array(rng):
    shape = rng.choice(((3, 16), (2, 3, 32), (1, 1), (2, 2, 5, 8), (0, 4), (4, 0), (5,), ()))
    kinds = (
        bool,
        np.uint8,
        np.uint8,
        np.int64,
        ">i4",
        np.float32,
        complex,
        "U3",
        "S2",
        "M8[s]",
        object,
        [("a", "i4"), ("b", "f8")],
    )
    array = np.zeros(shape, kinds[rng.randrange(len(kinds))])
    if array.dtype.kind in "bui":
        array[...] = np.random.default_rng(rng.randrange(2**32)).integers(0, 2, shape)
    elif array.dtype.kind in "fc":
        array[...] = rng.choice((np.nan, np.inf, 0.5, 1.0))
    return np.asfortranarray(array) if rng.random() < 0.2 else array


def _array_file(rng):
    buffer = io.BytesIO()
    np.save(buffer, _array(rng), allow_pickle=True)
    data = buffer.getvalue()
    kind = rng.randrange(6)
    if kind == 0:  # a header that lies about the size
        shapes = (b"(9999999999, 16)", b"(-1, 16)", b"(3, 99999999999999999999)", b"(1.5, 2)", b"'x'", b"(" * 200)
        shape = rng.choice(shapes)
        header = re.sub(rb"\([\d, ]*\)", shape, data[10:])
        data = data[:8] + len(header).to_bytes(2, "little") + header
    elif kind == 1:
        data = _spoilt(rng, data)
    return data


def masks(rng):
    """A .npy or .npz file of masks under the key ``masks``; some are good ones."""
    if rng.random() < 0.4:
        return _array_file(rng)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name in rng.choice((["masks.npy"], ["masks.npy", "other.npy"], ["masks"], [], ["../masks.npy"])):
            archive.writestr(name, _array_file(rng) if rng.random() < 0.9 else rng.randbytes(30))
    data = buffer.getvalue()
    kind = rng.randrange(6)
    if kind == 0:
        data = _spoilt(rng, data)
    elif kind == 1 and b"PK\1\2" in data:  # encrypted, or packed by a method that nobody knows
        data, at = bytearray(data), data.index(b"PK\1\2")
        data[at + rng.choice((8, 10))] = rng.choice((1, 9, 99))
        data = bytes(data)
    return data


def manifest(rng):
    """What may lie in an output folder as the manifest of the package before."""
    good = json.dumps({"files": {"hash_bank_mapper.v": {}, "old.v": {}}}).encode()
    names = {"files": ["old.v", "../x.v", 3, None, {}]}
    return rng.choice(
        (
            good,
            b"",
            b"[" * 100_000,
            b"{}",
            b"[]",
            b"null",
            b'{"files": 7}',
            json.dumps(names).encode(),
            rng.randbytes(60),
            _spoilt(rng, good),
        )
    )


def report(rng):
    """A synthesis report."""
    delay = {"period_ps": rng.choice((1, None, "x"))}
    good = json.dumps({"name": "x", "figures": {"flip_flops": 1}, "delay": delay}).encode()
    return rng.choice(
        (good, b"", b"[]", b"null", b'"x"', b"7", b"NaN", b"[" * 100_000, _spoilt(rng, good), rng.randbytes(60))
    )

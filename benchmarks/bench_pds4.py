"""Reading PDS4 tables: ours beside pds4_tools and pdr, on the 58 columns of the arm's label."""

from __future__ import annotations

import logging
import re
import tempfile
from pathlib import Path

import numpy as np
from tests.conftest import REAL_DATA

from benchmarks._harness import compare
from transect.formats.pds4.label import parse_label
from transect.formats.pds4.reading import read_table

ROW_COUNT = 20_000
TABLE = "58 x 20,000 delimited"


def write_product(folder: Path) -> Path:
    """Write the arm's label for 20,000 rows, and such a table; return the label."""
    [label] = (REAL_DATA / "pds4" / "ida_label").glob("*.xml")
    text = label.read_text(encoding="utf-8")
    described = parse_label(text.encode(), label.name)
    [(file, part)] = [(f.name, p) for f in described.files for p in f.parts if p.fields]
    rng = np.random.default_rng(1)
    head = b"x" * (part.offset - 2) + b"\r\n"
    rows = rng.normal(size=(ROW_COUNT, len(part.fields)))
    whole = [field.data_type == "ASCII_Integer" for field in part.fields]
    lines = [
        ",".join(f"{v * 100:.0f}" if i else f"{v:.6f}" for v, i in zip(row, whole, strict=True))
        for row in rows
    ]
    (folder / file).write_bytes(head + "".join(f"{line}\r\n" for line in lines).encode())
    size = (folder / file).stat().st_size - part.offset
    text = re.sub(r"<records>\d+</records>", f"<records>{ROW_COUNT}</records>", text)
    text = re.sub(r"(<Table_Delimited>.*?<object_length[^>]*>)\d+", rf"\g<1>{size}", text, flags=re.DOTALL)
    path = folder / label.name
    path.write_text(text, encoding="utf-8")
    return path


def read_ours(path: Path) -> object:
    label = parse_label(path.read_bytes(), path.name)
    [(file, part)] = [(f.name, p) for f in label.files for p in f.parts if p.fields]
    return read_table((path.parent / file).read_bytes(), part, file).table


def read_pds4_tools(path: Path) -> object:
    import pds4_tools

    logging.getLogger("PDS4ToolsLogger").setLevel(logging.CRITICAL)
    table = next(each for each in pds4_tools.read(str(path), quiet=True, lazy_load=True) if each.is_table())
    return [np.asarray(field) for field in table.fields]


def read_pdr(path: Path) -> object:
    import pdr

    found = pdr.read(str(path))
    keys: list[str] = list(found.keys())
    return found[next(key for key in keys if key != "LABEL" and "HEADER" not in key.upper())]


def main() -> None:
    """Compare on one table; the label is read in each."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_product(Path(folder))
        compare(f"{TABLE} / pds4_tools", lambda: read_ours(path), lambda: read_pds4_tools(path), 12)
        try:
            import pdr  # noqa: F401
        except ImportError:
            print("  pdr is not installed")
            return
        compare(f"{TABLE} / pdr", lambda: read_ours(path), lambda: read_pdr(path), 12)

"""Tables and arrays: what is written is read back as the same numbers, by our reader and by NASA's."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import transect
from transect.archive.builder import build_bundle
from transect.archive.bundle import Bundle, BundleProduct, Collection, ProductFile
from transect.archive.contents.files import ImageArray
from transect.archive.contents.tables import BinaryTable, CharacterTable, DelimitedTable, TableColumn, spell
from transect.archive.identifiers import Lid
from transect.errors import UsageError

BUNDLE = Lid("urn:nasa:pds:kept")
REALS = st.floats(allow_infinity=False, width=64)
TEXTS = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"]), max_size=8)


def _write(folder: Path, **contents: Any) -> Any:
    """Build a bundle with a product of each name, and open it."""
    data = BUNDLE.child("data")
    products = [
        BundleProduct(data.child(name), name, (ProductFile(f"{name}.dat", content),))
        for name, content in contents.items()
    ]
    bundle = Bundle(BUNDLE, "Kept", (Collection(data, "Data", "Data", products),), "2024-05-01T00:00:00Z")
    build_bundle(bundle, folder)
    return transect.open(folder)


@settings(max_examples=6)
@given(
    st.lists(
        st.tuples(REALS, st.integers(-(2**62), 2**62), TEXTS, st.floats(width=32)),
        min_size=1,
        max_size=6,
    )
)
def test_tables_are_read_as_they_were_written(rows: list[tuple[float, int, str, float]]) -> None:
    import tempfile

    x, n, text, y = (list(column) for column in zip(*rows, strict=True))
    single = np.array(y, np.float32)
    columns = [
        TableColumn("x", np.array(x)),
        TableColumn("n", np.array(n)),
        TableColumn("text", text),
        TableColumn("y", single),
    ]
    numbers = [columns[0], columns[1], columns[3]]
    with tempfile.TemporaryDirectory() as folder:
        recording = _write(
            Path(folder) / "b",
            delimited=DelimitedTable(columns),
            fixed=CharacterTable(columns),
            binary=BinaryTable(numbers),
        )
        for name in ("delimited", "fixed", "binary"):
            stream = recording[name]
            assert np.array_equal(_reals(stream, "x"), np.array(x), equal_nan=True)
            assert np.array_equal(stream["n"], n)
            assert np.array_equal(
                _reals(stream, "y").astype(np.float32),
                np.where(np.isinf(single), np.nan, single),
                equal_nan=True,
            )
        kept = [each.replace('"', "'").strip() or None for each in text]
        assert recording["delimited"]["text"] == kept


def _reals(stream: Any, name: str) -> Any:
    return np.asarray(stream[name], np.float64)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5), st.integers(0, 6))
def test_a_number_is_exact_to_its_format(values: list[float], digits: int) -> None:
    column = spell(TableColumn("x", np.array([*values, math.nan]), format=f"%16.{digits}f"))
    *texts, missing = column.texts[0].to_pylist()
    assert [float(text) for text in texts] == [round(value, digits) for value in values]
    assert missing == column.constants["missing_constant"]
    assert missing not in texts


def test_nan_and_infinities_are_constants_that_no_value_has() -> None:
    values = np.array([np.nan, -99999.0, np.inf, -np.inf, -999999.2, 3.5])
    column = spell(TableColumn("x", values))
    texts = column.texts[0].to_pylist()
    assert texts[1:2] + texts[4:] == ["-99999", "-999999.2", "3.5"]
    assert column.constants == {
        "missing_constant": texts[0],
        "high_representation_saturation": texts[2],
        "low_representation_saturation": texts[3],
    }
    assert len(set(texts)) == 6


def test_a_constant_that_was_measured_is_refused() -> None:
    column = TableColumn(
        "Fr", np.array([-99999.0, 1.0]), format="%12.4f", constants={"missing_constant": "-99999.0000"}
    )
    with pytest.raises(UsageError, match=r"-99999\.0000 stands for what was not measured, and was measured"):
        spell(column)


def test_numbers_of_lists_are_groups_and_share_their_constants(tmp_path: Path) -> None:
    beams = np.array([[1.0, np.nan, -99999.0], [4.0, 5.0, 6.0]])
    recording = _write(
        tmp_path / "b",
        delimited=DelimitedTable([TableColumn("beam", beams, "m")]),
        binary=BinaryTable(
            [TableColumn("beam", beams, "m"), TableColumn("rgb", np.eye(2, 3, dtype=np.uint8))]
        ),
    )
    for name in ("delimited", "binary"):
        read = np.column_stack([recording[name][f"beam_{number}"] for number in (1, 2, 3)])
        assert np.array_equal(read, beams, equal_nan=True)
        assert recording[name].units["beam_1"] == "m"
    label = (tmp_path / "b/data/delimited.xml").read_text()
    assert "<repetitions>3<" in label
    assert label.count("<missing_constant>") == 1


@pytest.mark.parametrize("dtype", ["u1", "u2", "i4", "f4", "f8"])
@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 3), (1, 1, 2)])
def test_images_are_read_as_they_were_written(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    pixels = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    if dtype[0] == "f":
        pixels.flat[0] = np.nan
    recording = _write(tmp_path / "b", image=ImageArray(pixels))
    read = recording["image"][0].value.data
    assert np.array_equal(read, pixels, equal_nan=dtype[0] == "f")
    assert read.dtype.kind == pixels.dtype.kind


def test_nasas_own_reader_reads_the_same_numbers(tmp_path: Path) -> None:
    import pds4_tools

    x = np.array([1.5, np.nan, 1e-300, -7.25])
    beams = np.arange(8.0).reshape(4, 2)
    columns = [
        TableColumn("x", x, "m"),
        TableColumn("n", np.arange(4)),
        TableColumn("word", ["a,b", "c", "d", "e"]),
    ]
    _write(
        tmp_path / "b",
        delimited=DelimitedTable([*columns, TableColumn("beam", beams)]),
        fixed=CharacterTable(columns),
        binary=BinaryTable([columns[0], columns[1], TableColumn("beam", beams.astype("f4"))]),
        image=ImageArray(np.arange(24, dtype="u2").reshape(2, 4, 3)),
    )
    for name, index in (("delimited", 1), ("fixed", 0), ("binary", 0)):
        table = pds4_tools.read(str(tmp_path / f"b/data/{name}.xml"), quiet=True)[index]
        missing = float(table["x"].meta_data["Special_Constants"]["missing_constant"])
        read = np.asarray(table["x"], np.float64)
        assert np.array_equal(np.where(read == missing, np.nan, read), x, equal_nan=True)
        assert np.asarray(table["n"]).tolist() == [0, 1, 2, 3]
    assert np.array_equal(table.data[table.data.dtype.names[2]], beams)
    image = pds4_tools.read(str(tmp_path / "b/data/image.xml"), quiet=True)[0]
    assert np.array_equal(image.data, np.moveaxis(np.arange(24).reshape(2, 4, 3), -1, 0))


def test_columns_of_unequal_lengths_and_what_is_no_number_are_refused(tmp_path: Path) -> None:
    uneven = DelimitedTable([TableColumn("a", np.zeros(2)), TableColumn("b", np.zeros(3))])
    with pytest.raises(UsageError, match="different lengths"):
        _write(tmp_path / "b", uneven=uneven)
    with pytest.raises(UsageError, match="cannot be stored"):
        _write(tmp_path / "b", words=BinaryTable([TableColumn("a", np.array(["x"]))]))
    with pytest.raises(UsageError, match="no format"):
        TableColumn("a", np.zeros(2), format="%.4g")
    assert not (tmp_path / "b").exists()

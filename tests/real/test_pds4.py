"""Real PDS4 products: every table that pds4_tools reads has the same values."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import transect
from transect.formats.pds4.label import TABLES, DataObject, ProductLabel, parse_label
from transect.formats.pds4.reading import read_table

CASES = (
    "github62/ele_mom_tblChar.xml", "github616/mre_cal_sc_ttcp_delay_schulte_01s_2021069.xml",
    "github680/ORB12_EUR_EPHIO_reclen96.xml", "github956/fsb_01500_rhk_xib_85s238_v1.xml",
    "github970/V11979060.xml", "github416/phe_misc_temperature_reference_20190524.xml",
    "github690/rs_20160518_014000_udsc64_l3_e_v10.xml",
)  # fmt: skip


def read_oracle(label: Path) -> Any:
    """Read a label with pds4_tools, without what it prints."""
    import pds4_tools

    logging.getLogger("PDS4ToolsLogger").setLevel(logging.CRITICAL)
    return pds4_tools.read(str(label), quiet=True, lazy_load=True)


def tables_of(label: ProductLabel) -> list[tuple[str, DataObject]]:
    return [(file.name, part) for file in label.files for part in file.parts if part.kind in TABLES]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_tables_have_the_values_that_pds4_tools_reads(real_data: Path, case: str) -> None:
    path = real_data / "pds4" / "validate-cases" / case
    name, part = tables_of(parse_label(path.read_bytes(), path.name))[0]
    mine = read_table((path.parent / name).read_bytes(), part, name).table
    theirs = next(each for each in read_oracle(path) if each.is_table())
    assert len(theirs.fields) == len(part.fields)
    for field, values in zip(part.fields, theirs.fields, strict=True):
        column = mine.column(field.name).to_pylist()
        assert len(column) == len(values)
        if np.asarray(values).dtype.kind in "iuf" and not isinstance(column[0], str):
            numbers = np.array([np.nan if value is None else value for value in column], np.float64)
            known = np.isfinite(numbers)
            assert np.array_equal(numbers[known], np.asarray(values, np.float64)[known])
        elif np.asarray(values).dtype.kind != "b":
            assert [text or "" for text in column] == [str(value).strip(" \0") for value in values]


def test_the_label_of_the_arm_has_its_58_fields(real_data: Path) -> None:
    [path] = (real_data / "pds4" / "ida_label").glob("*.xml")
    [(_, part)] = tables_of(parse_label(path.read_bytes(), path.name))
    assert len(part.fields) == 58
    assert {constant for field in part.fields for constant in field.missing} == {"-99999.0000"}


def test_bundles_open(real_data: Path) -> None:
    recording = transect.open(real_data / "pds4" / "bundles" / "ladee_test")
    assert recording.format == "pds4"
    assert len(recording.conditions["products"]) > 5
    assert {column for stream in recording for column in stream.table.column_names} >= {"LIDVID_LID"}


def test_no_label_of_the_cases_ends_in_an_untyped_error(real_data: Path) -> None:
    folder = real_data / "pds4" / "validate-cases"
    read = 0
    for path in sorted([*folder.rglob("*.xml"), *folder.rglob("*.lblx")]):
        content = path.read_bytes()
        if b"http://pds.nasa.gov/pds4/pds/v1" not in content:
            continue
        try:
            label = parse_label(content, path.name)
        except transect.errors.ParseError:
            continue
        for name, part in tables_of(label):
            file = path.parent / name
            if file.is_file() and file.stat().st_size < 500_000:
                try:
                    read += len(read_table(file.read_bytes(), part, name).table) >= 0
                except transect.errors.ParseError:
                    continue
    assert read > 100

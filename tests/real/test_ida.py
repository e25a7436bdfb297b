"""The IDA label that NASA's schemas accept (SIS appendix E): what it says of the table is understood."""

from pathlib import Path

import numpy as np
import pytest
from tests.datasets.insight import sample

import transect
from transect.datasets.insight.products.columns import BY_NAME, NAMES_58
from transect.datasets.insight.products.names import parse_name
from transect.datasets.insight.products.tables import TableLabel, parse_label
from transect.formats import recognise


@pytest.fixture(scope="module")
def label_path(real_data: Path) -> Path:
    return real_data / "pds4" / "ida_label" / sample.LABEL_NAME


@pytest.fixture(scope="module")
def label(label_path: Path) -> TableLabel:
    return parse_label(label_path.read_bytes(), label_path.name)


def test_the_label_describes_a_delimited_table(label: TableLabel):
    assert label.file_name == sample.SCIHI_NAME
    assert (label.delimiter, label.line_end) == (",", "\r\n")
    assert (label.offset, label.records) == (678, 927)
    assert label.properties["product_type_name"] == "IDA SciHi"
    assert label.properties["spacecraft_clock_start"] == "615088547"
    assert label.properties["start_date_time"] == "2019-06-29T13:56:40.702Z"


def test_the_label_has_the_58_columns_that_we_know(label: TableLabel):
    assert label.names == NAMES_58
    ours = {"C": "degC"}
    for field in label.fields:
        unit = BY_NAME[field.name].header_unit
        assert field.unit == ours.get(unit, unit)


def test_only_forces_have_an_invalid_constant(label: TableLabel):
    assert {f.name for f in label.fields if f.invalid == ("-99999.0000",)} == {"Fr", "Ft", "Fz"}
    assert {f.name for f in label.fields if f.invalid} == {"Fr", "Ft", "Fz"}


def test_the_status_word_is_text_in_the_label(label: TableLabel):
    kinds = {field.name: field.data_type for field in label.fields}
    assert kinds["stat"] == "UTF8_String"
    assert kinds["tool"] == kinds["grapple_phase"] == "ASCII_Integer"
    assert {kind for name, kind in kinds.items() if name not in ("stat", "tool", "grapple_phase")} == {
        "ASCII_Real"
    }


def test_the_name_of_the_label_is_that_of_its_identifier(label: TableLabel, label_path: Path):
    name = parse_name(label_path.name)
    assert name is not None
    assert (name.apid, name.start_sol, name.time_tag) == (87, 209, "190629192905")
    assert label.properties["logical_identifier"].endswith(f":{name.identifier}")


def test_a_table_beside_the_label_is_read_by_it(label_path: Path, tmp_path: Path):
    header = "#" + ",".join(f"c{i}" for i in range(58))
    rows = tuple(sample.with_elapsed_time(row, "0.25") for row in (sample.SNAPSHOT, sample.MOVING))
    (tmp_path / sample.SCIHI_NAME).write_bytes(sample.science(header, rows).encode())
    (tmp_path / sample.LABEL_NAME).write_bytes(label_path.read_bytes())
    rec = transect.open(tmp_path)
    assert rec["Arm/SciHi"]["elapsed_time"].tolist() == [900.0, 900.0]
    assert rec["Arm/SciHi/Encoders"]["position"][0].tolist() == [-2.84, -1.9231, 2.3173, -0.0007]
    assert np.isnan(rec["Arm/SciHi/Forces"]["Fr"]).tolist() == [False, True]
    assert rec.losses == ()
    assert any("promises 927 records, 2 were read" in note for note in rec.all_notes)


def test_the_label_alone_is_no_recording_and_its_table_is_missed(label_path: Path):
    match = dict(recognise(label_path.parent))["ida"]
    assert not match
    assert "labels of IDA products but not their data" in match.reason
    rec = transect.open(label_path.parent, format="ida")
    assert [loss.file for loss in rec.losses] == [label_path.name]

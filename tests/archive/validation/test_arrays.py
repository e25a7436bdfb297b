"""Arrays: whether files hold them, and what their values may be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.archive.validation.products import area, label, problems, write

from transect.archive.validation.problems import ValidationProblem

ARRAY = """<Array_2D_Image><name>picture</name><offset>0</offset><axes>2</axes>
  <Element_Array><data_type>{type}</data_type>{scale}</Element_Array>
  <Axis_Array><axis_name>Line</axis_name><elements>2</elements><sequence_number>1</sequence_number></Axis_Array>
  <Axis_Array><axis_name>Sample</axis_name><elements>3</elements><sequence_number>2</sequence_number></Axis_Array>
  {more}</Array_2D_Image>"""
STATISTICS = "<Object_Statistics><minimum>0</minimum><maximum>5</maximum>{}</Object_Statistics>"


def check(
    folder: Path, data: bytes, *, type_: str = "SignedMSB2", more: str = "", scale: str = ""
) -> list[ValidationProblem]:
    text = label(area("b.img", ARRAY.format(type=type_, more=more, scale=scale)))
    return problems(write(folder, "a.xml", text, b_img=data))


VALUES = np.arange(6, dtype=">i2")


def test_an_array_within_its_statistics_is_valid(tmp_path: Path) -> None:
    assert check(tmp_path, VALUES.tobytes(), more=STATISTICS.format("")) == []


def test_a_file_that_is_too_short_is_told(tmp_path: Path) -> None:
    (said,) = check(tmp_path, VALUES.tobytes()[:-2])
    assert (said.type, said.part) == ("error.array.bad_file_read", "picture")
    assert "2 bytes after the file" in said.text


def test_values_outside_of_the_statistics_are_counted_and_the_first_is_named(tmp_path: Path) -> None:
    values = VALUES.copy()
    values[[2, 4]] = 7
    (said,) = check(tmp_path, values.tobytes(), more=STATISTICS.format(""))
    assert (said.type, said.count) == ("error.array.value_out_of_min_max_range", 2)
    assert said.text.startswith("element 3: 7 is above the maximum 5")


def test_special_constants_are_left_out_as_numbers_and_as_bits(tmp_path: Path) -> None:
    values = VALUES.copy()
    values[0] = -999
    constants = "<Special_Constants><missing_constant>{}</missing_constant></Special_Constants>"
    more = STATISTICS.format("") + constants
    assert check(tmp_path, values.tobytes(), more=more.format("-999")) == []
    assert check(tmp_path, values.tobytes(), more=more.format("0xFC19")) == []
    floats = values.astype("<f4")
    floats[0] = -3.4028235e38
    assert (
        check(tmp_path, floats.tobytes(), type_="IEEE754LSBSingle", more=more.format("-3.4028235E38")) == []
    )
    assert len(check(tmp_path, values.tobytes(), more=more.format("-998"))) == 1


def test_a_constant_that_no_element_can_be_is_a_warning(tmp_path: Path) -> None:
    constants = "<Special_Constants><missing_constant>{}</missing_constant></Special_Constants>"
    ones = np.full(6, 0xFFFF, ">u2")
    more = STATISTICS.format("") + constants
    assert check(tmp_path, ones.tobytes(), type_="UnsignedMSB2", more=more.format("-1")) == []
    for text in ("70000", "0x12345", "none"):
        found = check(tmp_path, VALUES.tobytes(), type_="UnsignedMSB2", more=more.format(text))
        assert [each.type for each in found] == ["warning.array.invalid_special_constant"]


def test_scaled_values_have_limits_of_their_own(tmp_path: Path) -> None:
    scaled = STATISTICS.format("<maximum_scaled_value>{}</maximum_scaled_value>")
    scale = "<scaling_factor>0.1</scaling_factor><value_offset>1</value_offset>"
    assert check(tmp_path, VALUES.tobytes(), more=scaled.format("1.5"), scale=scale) == []
    (said,) = check(tmp_path, VALUES.tobytes(), more=scaled.format("1.35"), scale=scale)
    assert (said.type, said.count) == ("error.array.value_out_of_scaled_min_max_range", 2)


def test_axes_are_counted(tmp_path: Path) -> None:
    text = label(
        area("b.img", ARRAY.format(type="SignedMSB2", more="", scale="").replace("<axes>2", "<axes>3"))
    )
    found = problems(write(tmp_path, "a.xml", text, b_img=VALUES.tobytes()))
    assert [each.type for each in found] == ["error.label.invalid_object_definition"]

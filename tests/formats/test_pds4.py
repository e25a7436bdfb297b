"""PDS4 products, hand-made after the information model, and what is done about wrong ones."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import transect
from transect.base.xml import MAX_DEPTH
from transect.errors import ParseError
from transect.formats.pds4.label import parse_label
from transect.types import Image

LABEL = """<?xml version="1.0" encoding="UTF-8"?>
<Product_Observational xmlns="http://pds.nasa.gov/pds4/pds/v1">
  <Identification_Area>
    <logical_identifier>urn:nasa:pds:insight_ida:data:{name}</logical_identifier>
    <version_id>1.0</version_id><title>An arm</title>
  </Identification_Area>
  <Observation_Area>
    <Investigation_Area><name>InSight</name></Investigation_Area>
    <Observing_System><Observing_System_Component><name>IDA</name><type>Instrument</type>
    </Observing_System_Component></Observing_System>
    <Target_Identification><name>Mars</name></Target_Identification>
  </Observation_Area>
  <File_Area_Observational>
    <File><file_name>{file}</file_name></File>
    {parts}
  </File_Area_Observational>
</Product_Observational>
"""
DELIMITED = """<Header><offset unit="byte">0</offset><object_length unit="byte">9</object_length></Header>
<Table_Delimited><local_identifier>joints</local_identifier><offset unit="byte">9</offset>
  <records>3</records><field_delimiter>Comma</field_delimiter>
  <Record_Delimited><fields>4</fields><groups>1</groups>
    <Field_Delimited><name>TIME</name><data_type>ASCII_Date_Time_DOY_UTC</data_type></Field_Delimited>
    <Field_Delimited><name>ANGLE</name><data_type>ASCII_Real</data_type><unit>rad</unit>
      <Special_Constants><invalid_constant>-99999.0000</invalid_constant></Special_Constants>
    </Field_Delimited>
    <Field_Delimited><name>COUNT</name><data_type>ASCII_Integer</data_type></Field_Delimited>
    <Field_Delimited><name>MODE</name><data_type>ASCII_String</data_type></Field_Delimited>
    <Group_Field_Delimited><repetitions>2</repetitions><fields>1</fields>
      <Field_Delimited><name>CURRENT</name><data_type>ASCII_Real</data_type></Field_Delimited>
    </Group_Field_Delimited>
  </Record_Delimited></Table_Delimited>"""
ROWS = (
    'a header\n2019-180T12:00:00.5Z,0.25,7,"move, fast",1.5,2.5\r\n'
    "2019-180T12:00:01.5Z,-99999.0000,8,hold,1,2\r\n2019-180T12:00:02.5Z,0.75,9,,3,4\r\n"
)
CHARACTER = """<Table_Character><name>steps</name><offset unit="byte">0</offset><records>2</records>
  <Record_Character><fields>2</fields><record_length unit="byte">14</record_length>
    <Field_Character><name>Z</name><field_location>1</field_location><data_type>ASCII_Real</data_type>
      <field_length>6</field_length><scaling_factor>2</scaling_factor><value_offset>1</value_offset></Field_Character>
    <Field_Character><name>NAME</name><field_location>8</field_location><data_type>ASCII_String</data_type>
      <field_length>5</field_length></Field_Character>
  </Record_Character></Table_Character>"""
BINARY = """<Table_Binary><name>packed</name><offset unit="byte">2</offset><records>2</records>
  <Record_Binary><fields>3</fields><record_length unit="byte">14</record_length>
    <Field_Binary><name>A</name><field_location>1</field_location><data_type>SignedMSB2</data_type>
      <field_length>2</field_length>
      <Special_Constants><missing_constant>-1</missing_constant></Special_Constants></Field_Binary>
    <Field_Binary><name>B</name><field_location>3</field_location><data_type>IEEE754LSBDouble</data_type>
      <field_length>8</field_length></Field_Binary>
    <Field_Binary><name>P</name><field_location>11</field_location><data_type>UnsignedBitString</data_type>
      <field_length>2</field_length><Packed_Data_Fields><bit_fields>2</bit_fields>
      <Field_Bit><name>LOW</name><start_bit_location>13</start_bit_location>
        <stop_bit_location>16</stop_bit_location><data_type>SignedBitString</data_type></Field_Bit>
      <Field_Bit><name>HIGH</name><start_bit_location>1</start_bit_location>
        <stop_bit_location>5</stop_bit_location><data_type>UnsignedBitString</data_type></Field_Bit>
      </Packed_Data_Fields></Field_Binary>
    <Group_Field_Binary><repetitions>2</repetitions><group_location>13</group_location>
      <group_length>2</group_length><Field_Binary><name>G</name><field_location>1</field_location>
      <data_type>UnsignedByte</data_type><field_length>1</field_length></Field_Binary></Group_Field_Binary>
  </Record_Binary></Table_Binary>"""
IMAGE = """<Array_3D_Image><local_identifier>picture</local_identifier><offset unit="byte">4</offset>
  <axis_index_order>Last Index Fastest</axis_index_order>
  <Element_Array><data_type>UnsignedMSB2</data_type><scaling_factor>0.5</scaling_factor></Element_Array>
  <Axis_Array><axis_name>Sample</axis_name><elements>4</elements>
    <sequence_number>3</sequence_number></Axis_Array>
  <Axis_Array><axis_name>Band</axis_name><elements>2</elements><sequence_number>1</sequence_number></Axis_Array>
  <Axis_Array><axis_name>Line</axis_name><elements>3</elements><sequence_number>2</sequence_number></Axis_Array>
  <Special_Constants><saturated_constant>65535</saturated_constant></Special_Constants></Array_3D_Image>"""


def write(folder: Path, name: str, file: str, parts: str, content: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.xml").write_text(LABEL.format(name=name, file=file, parts=parts))
    (folder / file).write_bytes(content)
    return folder


def write_sample(folder: Path) -> Path:
    """A folder with a product of each kind."""
    write(folder, "eu", "eu.csv", DELIMITED, ROWS.encode())
    write(folder, "steps", "steps.tab", CHARACTER, b"  1.50 first\r\n -2.00 last \r\n")
    rows = [struct.pack(">h", a) + struct.pack("<d", b) + p + g for a, b, p, g in (
        (5, 1.25, b"\xf8\x0f", b"\x01\x02"), (-1, -2.0, b"\x08\x07", b"\x03\xff"))]  # fmt: skip
    write(folder, "packed", "packed.dat", BINARY, b"xx" + b"".join(rows))
    pixels = np.arange(24, dtype=">u2")
    pixels[5] = 65535
    return write(folder, "picture", "picture.img", IMAGE, b"xxxx" + pixels.tobytes())


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> transect.Recording:
    return transect.open(write_sample(tmp_path_factory.mktemp("pds4") / "bundle"))


def test_a_delimited_table_has_times_units_missing_values_and_groups(product: transect.Recording) -> None:
    stream = product["eu"]
    table = stream.table.to_pydict()
    assert (stream.clock, stream.t_ns[0]) == ("utc", 1_561_809_600_500_000_000)  # 29 June 2019, 12:00:00.5
    assert np.array_equal(table["ANGLE"], [0.25, np.nan, 0.75], equal_nan=True)
    assert (table["COUNT"], table["MODE"]) == ([7, 8, 9], ["move, fast", "hold", None])
    assert (table["CURRENT_1"], table["CURRENT_2"]) == ([1.5, 1, 3], [2.5, 2, 4])
    assert stream.table.schema.field("ANGLE").metadata == {b"unit": b"rad"}
    assert product.losses == ()


def test_fixed_records_are_cut_where_the_label_says(product: transect.Recording) -> None:
    assert product["steps"].table.to_pydict() == {"t_ns": [0, 1], "Z": [4.0, -3.0], "NAME": ["first", "last"]}


def test_binary_fields_have_their_byte_order_bits_and_groups(product: transect.Recording) -> None:
    table = product["packed"].table.to_pydict()
    assert np.array_equal(table["A"], [5, np.nan], equal_nan=True)
    assert table["B"] == [1.25, -2.0]
    assert (table["LOW"], table["HIGH"]) == ([-1, 7], [31, 1])
    assert (table["G_1"], table["G_2"]) == ([1, 3], [2, 255])


def test_an_array_is_an_image_with_its_bands_last(product: transect.Recording) -> None:
    image = product["picture"][0].payload
    assert isinstance(image, Image)
    assert image.data.shape == (3, 4, 2)
    assert image.data[0, 2].tolist() == [1.0, 7.0]  # elements 2 and 14, times 0.5
    assert image.valid is not None
    assert np.argwhere(~image.valid).tolist() == [[1, 1]]


def test_the_recording_says_what_it_is_of(product: transect.Recording) -> None:
    said = product.conditions
    assert (said["mission"], said["target"], said["instrument"]) == ("InSight", "Mars", "IDA")
    assert said["products"]["urn:nasa:pds:insight_ida:data:eu::1.0"] == "An arm"


def test_a_single_label_is_enough(tmp_path: Path) -> None:
    write_sample(tmp_path)
    recording = transect.open(tmp_path / "eu.xml")
    assert [(stream.name, len(stream)) for stream in recording] == [("eu", 3)]
    assert recording.losses == ()


def test_bad_rows_and_numbers_are_told_and_the_others_kept(tmp_path: Path) -> None:
    content = ROWS.replace("0.75", "oops").replace("hold,1,2", "hold,1").encode()
    recording = transect.open(write(tmp_path, "eu", "eu.csv", DELIMITED, content))
    angle = recording["eu"].table.to_pydict()["ANGLE"]
    assert np.array_equal(angle, [0.25, np.nan], equal_nan=True)
    told = " ".join(loss.reason for loss in recording.losses)
    assert "another number of fields" in told
    assert "ANGLE: no number, first in record 2" in told


def test_a_row_without_a_date_is_told_and_left_out(tmp_path: Path) -> None:
    for date in ("", "2019-999T12:00:01.5Z", "9999-180T12:00:01.5Z", "soon"):
        content = ROWS.replace("2019-180T12:00:01.5Z", date).encode()
        recording = transect.open(write(tmp_path, "eu", "eu.csv", DELIMITED, content))
        assert recording["eu"].table.to_pydict()["COUNT"] == [7, 9]
        [loss] = recording.losses
        assert (loss.count, loss.reason) == (1, "joints: no date, first in record 2")


def test_a_file_that_is_cut_keeps_its_whole_records(tmp_path: Path) -> None:
    recording = transect.open(write(tmp_path, "steps", "steps.tab", CHARACTER, b"  1.50 first\r\n -2.0"))
    assert len(recording["steps"]) == 1
    [loss] = recording.losses
    assert "says 2 records, the file has 1" in loss.reason


def test_a_product_without_its_file_does_not_hide_the_others(tmp_path: Path) -> None:
    write_sample(tmp_path)
    (tmp_path / "steps.tab").unlink()
    (tmp_path / "broken.xml").write_text(LABEL[:300])
    recording = transect.open(tmp_path)
    assert {stream.name for stream in recording} == {"eu", "packed", "picture"}
    assert {loss.file for loss in recording.losses} == {"steps.xml", "broken.xml"}


@pytest.mark.parametrize("name", ["../out.csv", "/etc/passwd", "..", "a\\b.csv", ""])
def test_a_file_name_never_leads_elsewhere(name: str) -> None:
    text = LABEL.format(name="x", file=name, parts=DELIMITED)
    with pytest.raises(ParseError, match="leads elsewhere"):
        parse_label(text.encode(), "x.xml")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("<records>3<", "<records>many<"), "no count"),
        (("<field_delimiter>Comma<", "<field_delimiter>Dash<"), "no delimiter"),
        (("<repetitions>2<", "<repetitions>999999999<"), "groups repeat more than 100000 times"),
        (
            (
                "ASCII_Real</data_type><unit>rad",
                "ASCII_Real</data_type><scaling_factor>x</scaling_factor><unit>rad",
            ),
            "'x', and no number",
        ),
        (("x.csv", "../x.csv"), "leads elsewhere"),
        (("Record_Delimited>", "Record_Other>"), "has no Record_\\* element"),
        (("</records>", "</record>"), "well-formed"),
        (("<Product_Obs", "<!DOCTYPE a [<!ENTITY b 'c'>]><Product_Obs"), "document type"),
    ],
)
def test_a_label_that_cannot_be_is_refused_with_the_reason(change: tuple[str, str], why: str) -> None:
    text = LABEL.format(name="x", file="x.csv", parts=DELIMITED).replace(*change)
    with pytest.raises(ParseError, match=why):
        parse_label(text.encode(), "x.xml")


def test_groups_inside_groups_are_refused_before_they_are_laid_flat() -> None:
    opened = "".join(
        f"<Group_Field_Delimited><name>{k}</name><repetitions>300</repetitions>" for k in range(5)
    )
    for inner in ("", "<Field_Delimited><name>A</name><data_type>ASCII_Real</data_type></Field_Delimited>"):
        bomb = DELIMITED.replace("<Group_Field_Delimited>", f"{opened}{inner}{'</Group_Field_Delimited>' * 5}"
                                 "<Group_Field_Delimited>")  # fmt: skip
        with pytest.raises(ParseError, match="groups repeat more than 100000 times"):
            parse_label(LABEL.format(name="x", file="x.csv", parts=bomb).encode(), "x.xml")


def test_an_array_that_does_not_say_what_it_consists_of_is_refused() -> None:
    for tag in ("Element_Array", "Axis_Array"):
        with pytest.raises(ParseError, match="does not say what it consists of"):
            parse_label(
                LABEL.format(name="x", file="x.img", parts=IMAGE.replace(tag, "Other")).encode(), "x.xml"
            )


def test_bits_outside_their_field_are_refused() -> None:
    for first, last in ((0, 4), (5, 4), (1, 17)):
        parts = BINARY.replace("<start_bit_location>1<", f"<start_bit_location>{first}<")
        parts = parts.replace("<stop_bit_location>5<", f"<stop_bit_location>{last}<")
        with pytest.raises(ParseError, match=f"bits {first} to {last} of 2 bytes"):
            parse_label(LABEL.format(name="x", file="x.dat", parts=parts).encode(), "x.xml")


def test_depth_and_size_are_bounded() -> None:
    deep = "<a>" * (MAX_DEPTH + 5) + "</a>" * (MAX_DEPTH + 5)
    with pytest.raises(ParseError, match="deeply"):
        parse_label(LABEL.format(name="x", file="x.csv", parts=deep).encode(), "x.xml")
    with pytest.raises(ParseError, match="too large"):
        parse_label(b" " * (17 << 20), "x.xml")


def test_an_image_that_its_file_cannot_hold_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    parts = IMAGE.replace("<elements>4<", "<elements>400000000<")
    recording = transect.open(write(tmp_path, "picture", "picture.img", parts, b"x" * 100))
    with pytest.raises(ParseError, match="too short"):
        recording["picture"][0].payload  # noqa: B018

"""Tables: one wrong thing at a time, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.archive.validation.products import area, label, problems, write

from transect.archive.validation.problems import ValidationProblem

FIELD = (
    "<Field_{kind}><name>{name}</name><field_number>{number}</field_number>{place}"
    "<data_type>{type}</data_type>{more}</Field_{kind}>"
)


def field(kind: str, number: int, type_: str, place: tuple[int, int] | None = None, more: str = "") -> str:
    where = "" if place is None else f"<field_location>{place[0]}</field_location>"
    length = "" if place is None else f"<field_length>{place[1]}</field_length>"
    return FIELD.format(
        kind=kind, name=f"f{number}", number=number, place=where, type=type_, more=length + more
    )


def delimited(*types: str, records: int = 2, ends: str = "Carriage-Return Line-Feed", more: str = "") -> str:
    fields = "".join(field("Delimited", n, each, more=more) for n, each in enumerate(types, 1))
    return (
        f"<Table_Delimited><name>t</name><offset>0</offset><records>{records}</records>"
        f"<record_delimiter>{ends}</record_delimiter><field_delimiter>Comma</field_delimiter>"
        f"<Record_Delimited><fields>{len(types)}</fields><groups>0</groups>{fields}</Record_Delimited></Table_Delimited>"
    )


def fixed(*fields: str, records: int = 3, length: int = 12, offset: int = 0, kind: str = "Character") -> str:
    ends = "<record_delimiter>Carriage-Return Line-Feed</record_delimiter>" if kind == "Character" else ""
    return (
        f"<Table_{kind}><name>t</name><offset>{offset}</offset><records>{records}</records>{ends}"
        f"<Record_{kind}><fields>{len(fields)}</fields><groups>0</groups><record_length>{length}</record_length>"
        f"{''.join(fields)}</Record_{kind}></Table_{kind}>"
    )


TWO = (field("Character", 1, "ASCII_Integer", (1, 3)), field("Character", 2, "ASCII_Real", (5, 6)))
ROWS = b" 12,  1.50\r\n 13,  2.50\r\n 14,  3.50\r\n"


def check(folder: Path, parts: str, data: bytes, **options: object) -> list[ValidationProblem]:
    return problems(write(folder, "a.xml", label(area("t.csv", parts)), t_csv=data), **options)


def constants(**said: str) -> str:
    inside = "".join(f"<{name}>{text}</{name}>" for name, text in said.items())
    return f"<Special_Constants>{inside}</Special_Constants>"


def test_tables_as_their_labels_describe_them_are_valid(tmp_path: Path) -> None:
    assert check(tmp_path, delimited("ASCII_Integer", "ASCII_Real"), b"1,2.5\r\n3,.5e3\r\n") == []
    assert check(tmp_path, fixed(*TWO), ROWS) == []


@pytest.mark.parametrize(
    ("type_", "good", "bad"),
    [
        ("ASCII_Integer", "-12", "1.0"),
        ("ASCII_Integer", str(2**63 - 1), str(2**63)),
        ("ASCII_NonNegative_Integer", "+7", "-7"),
        ("ASCII_Real", "-1.5E+03", "1;5"),
        ("ASCII_Real", "1.", "nan"),
        ("ASCII_Numeric_Base16", "fF0", "0x1"),
        ("ASCII_MD5_Checksum", "0" * 32, "0" * 31),
        ("ASCII_Date_Time_YMD_UTC", "2019-06-29T13:56:40.702Z", "2019-06-29T13:56:40.702"),
        ("ASCII_Date_Time_DOY", "2019-180T24:00:00", "2019-367T00:00"),
        ("ASCII_Date_YMD", "2019-12", "2019-13"),
        ("ASCII_Time", "23:59:60.123456789", "25:00"),
        ("ASCII_LID", "urn:nasa:pds:insight_ida", "urn:nasa:pds:Insight"),
        ("ASCII_LIDVID_LID", "urn:nasa:pds:a:b::1.0", "urn:nasa:pds:a:b::0.0"),
        ("ASCII_VID", "1.0", "v1"),
        ("ASCII_DOI", "10.17189/1517573", "doi:10"),
        ("ASCII_File_Name", "a-b.tab", "a b.tab"),
        ("ASCII_Boolean", "true", "yes"),
        ("ASCII_String", "NaN", "µ"),
    ],
)
def test_a_value_of_another_type_is_told_with_field_and_record(
    tmp_path: Path, type_: str, good: str, bad: str
) -> None:
    parts = delimited("ASCII_Integer", type_)
    (said,) = check(tmp_path, parts, f"1,{good}\r\n2,{bad}\r\n".encode())
    assert said.type == "error.table.field_value_data_type_mismatch"
    assert (said.field, said.record, said.count, said.data) == ("2 f2", 2, 1, "t.csv")
    assert type_ in said.text


def test_many_wrong_values_of_a_field_are_one_problem_with_their_number(tmp_path: Path) -> None:
    rows = b"".join(b"x%d\r\n" % n for n in range(50))
    (said,) = check(tmp_path, delimited("ASCII_Integer", records=50), rows)
    assert (said.count, said.record) == (50, 1)


def test_blank_values_and_special_constants_need_not_be_of_the_type(tmp_path: Path) -> None:
    more = constants(missing_constant="N/A")
    assert check(tmp_path, delimited("ASCII_Real", "ASCII_Integer", more=more), b"N/A,\r\n,N/A\r\n") == []


@pytest.mark.parametrize(
    ("data", "type_"),
    [
        (b"1,2\r\n", "error.table.records_mismatch"),
        (b"1,2\r\n1,2,3\r\n", "error.table.fields_mismatch"),
        (b"1,2\r\n1,2\n", "error.table.missing_CRLF"),
        (b'1,2\r\n1,"a""b"\r\n', "error.validation.invalid_field_value"),
        (b'1,2\r\n1,"a\r\nb"\r\n', "error.validation.invalid_field_value"),
    ],
)
def test_each_mistake_of_delimited_records_has_its_name(tmp_path: Path, data: bytes, type_: str) -> None:
    found = check(tmp_path, delimited("ASCII_Integer", "UTF8_String"), data)
    assert [each.type for each in found] == [type_]


def test_a_comma_between_quotation_marks_separates_nothing(tmp_path: Path) -> None:
    assert check(tmp_path, delimited("ASCII_Integer", "UTF8_String"), b'1,"a, b"\r\n2,5" pipe\r\n') == []


def test_when_all_records_end_otherwise_the_cause_is_the_delimiter(tmp_path: Path) -> None:
    (said,) = check(tmp_path, delimited("ASCII_Integer"), b"1\n2\n")
    assert said.cause == "all records end in line feed alone: record_delimiter should be Line-Feed"
    (said,) = check(tmp_path, delimited("ASCII_Integer", ends="Line-Feed"), b"1\r\n2\r\n")
    assert said.type == "error.table.missing_LF"


def test_when_all_records_have_another_number_of_fields_the_cause_is_the_label(tmp_path: Path) -> None:
    (said,) = check(tmp_path, delimited("ASCII_Integer"), b"1,2\r\n3,4\r\n")
    assert said.cause == "all records have 2 fields: the label should define this number"


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"length": 13, "records": 2}, "record_length should be 12, not 13: all 2 records then fit"),
        ({"length": 11}, "record_length should be 12, not 11: all 3 records then fit"),
        ({"offset": 1, "records": 2}, "offset should be 0, not 1: all 2 records then fit"),
    ],
)
def test_one_wrong_number_is_one_problem_that_says_which_would_fit(
    tmp_path: Path, change: dict[str, int], cause: str
) -> None:
    (said,) = check(tmp_path, fixed(*TWO, **change), ROWS)  # pyright: ignore[reportArgumentType]
    assert said.cause == cause


@pytest.mark.parametrize("length", [9, 11])
def test_a_record_of_another_length_is_named_and_what_it_shifts_is_not(tmp_path: Path, length: int) -> None:
    rows = [b" 12,  1.50\r\n"] * 20
    rows[6] = b"x" * length + b"\r\n"
    rows[15] = b" 1x,  1.50\r\n"
    found = check(tmp_path, fixed(*TWO, records=20), b"".join(rows))
    assert [each.cause for each in found] == [
        f"record 7 has {length + 2} bytes, not 12; the rest would fit",
        "",
    ]
    assert (found[1].type, found[1].record) == ("error.table.field_value_data_type_mismatch", 16)


def test_records_that_the_file_cannot_hold_are_a_wrong_definition(tmp_path: Path) -> None:
    (said,) = check(tmp_path, fixed(*TWO, records=5), ROWS)
    assert said.type == "error.label.table_definition_problem"
    assert "3 records fit" in said.text


def test_an_absurd_number_of_records_takes_no_memory(tmp_path: Path) -> None:
    found = check(tmp_path, fixed(*TWO, records=10**14), ROWS)
    assert {each.type for each in found} == {"error.label.table_definition_problem"}
    assert len(check(tmp_path, delimited("ASCII_Integer", records=10**14), b"1\r\n")) == 1


def test_fields_that_overlap_and_fields_beyond_the_record_are_told(tmp_path: Path) -> None:
    overlap = (TWO[0], field("Character", 2, "ASCII_Real", (3, 8)))
    (said,) = check(tmp_path, fixed(*overlap), ROWS)
    assert (said.type, said.field) == ("error.table.field_value_overlap", "1 f1")
    beyond = (TWO[0], field("Character", 2, "ASCII_Real", (5, 9)))
    found = check(tmp_path, fixed(*beyond), ROWS)
    assert [each.type for each in found] == ["error.table.record_length_mismatch"]


def test_signs_between_fields_are_told_only_if_asked(tmp_path: Path) -> None:
    assert check(tmp_path, fixed(*TWO), ROWS) == []
    (said,) = check(tmp_path, fixed(*TWO), ROWS, strict_fields=True)
    assert said.type == "warning.table.characters_between_fields"


@pytest.mark.parametrize(
    ("form", "values", "types"),
    [
        ("%5.2f", ["1.25", "1.2"], []),
        ("%5.2f", ["1.25", "1.255"], ["warning.table.field_value_format_precision_mismatch"]),
        ("%4.2f", ["1.25", "11.25"], ["warning.table.field_value_too_long"]),
        ("%4d", ["1", "1.5"], ["warning.table.field_value_format_specifier_mismatch"]),
        ("%8.2e", ["1.25e3", "12.5e2"], ["warning.table.field_value_format_specifier_mismatch"]),
    ],
)
def test_field_format_is_a_wish_for_the_largest_length_and_precision(
    tmp_path: Path, form: str, values: list[str], types: list[str]
) -> None:
    parts = delimited("ASCII_Real", more=f"<field_format>{form}</field_format>")
    data = "".join(f"{each}\r\n" for each in values).encode()
    assert [each.type for each in check(tmp_path, parts, data)] == types
    assert check(tmp_path, parts, data, formats=False) == []


def test_values_must_stand_at_the_side_that_their_format_says(tmp_path: Path) -> None:
    one = field("Character", 1, "ASCII_String", (1, 10), "<field_format>%-10s</field_format>")
    found = check(tmp_path, fixed(one), b"left      \r\n     right\r\n          \r\n")
    assert [(each.type, each.record) for each in found] == [
        ("warning.table.field_value_not_left_justified", 2)
    ]


def test_validation_format_is_to_be_met_exactly(tmp_path: Path) -> None:
    more = "<validation_format>%6.2f</validation_format>"
    both = (TWO[0], field("Character", 2, "ASCII_Real", (5, 6), more))
    assert check(tmp_path, fixed(*both), ROWS) == []
    (said,) = check(tmp_path, fixed(*both), ROWS.replace(b"2.50", b" 2.5"))
    assert said.type == "error.table.field_value_format_precision_mismatch"


def test_values_outside_of_statistics_and_of_the_valid_range_are_told(tmp_path: Path) -> None:
    more = "<Field_Statistics><minimum>0</minimum><maximum>9.5</maximum></Field_Statistics>" + constants(
        missing_constant="-99.0", valid_minimum="1", valid_maximum="100"
    )
    found = check(
        tmp_path, delimited("ASCII_Real", more=more, records=5), b"-99.00\r\n9.5\r\n0.5\r\n10\r\n-1\r\n"
    )
    assert [(each.type, each.record, each.count) for each in found] == [
        ("error.table.field_value_out_of_min_max_range", 5, 1),
        ("error.table.field_value_out_of_min_max_range", 4, 1),
        ("warning.table.field_value_out_of_special_constant_min_max_range", 3, 2),
    ]


def test_maximum_lengths_of_fields_and_records_hold(tmp_path: Path) -> None:
    parts = delimited("UTF8_String", more="<maximum_field_length>2</maximum_field_length>")
    parts = parts.replace("<groups>", "<maximum_record_length>4</maximum_record_length><groups>")
    found = check(tmp_path, parts, b"ab\r\nabc\r\n")
    assert [each.type for each in found] == [
        "error.table.record_length_mismatch", "error.table.field_value_too_long"
    ]  # fmt: skip
    assert "it should be at least 5" in found[0].text


def test_a_label_that_counts_its_fields_wrongly_is_told(tmp_path: Path) -> None:
    parts = delimited("ASCII_Integer", "ASCII_Real").replace("<fields>2", "<fields>3")
    (said,) = check(tmp_path, parts, b"1,2\r\n1,2\r\n")
    assert (said.type, said.text) == (
        "error.label.table_definition_problem",
        "fields is 3, but 2 are defined",
    )
    parts = fixed(*TWO).replace("<fields>2", "<fields>3")
    (said,) = check(tmp_path, parts, ROWS)
    assert said.type == "error.label.invalid_object_definition"


def test_a_group_that_is_too_short_for_its_fields_is_told(tmp_path: Path) -> None:
    group = (
        "<Group_Field_Character><repetitions>2</repetitions><fields>1</fields><groups>0</groups>"
        "<group_location>1</group_location><group_length>6</group_length>"
        f"{field('Character', 1, 'ASCII_Real', (1, 5))}</Group_Field_Character>"
    )
    parts = fixed(group).replace("<fields>1</fields><groups>0", "<fields>0</fields><groups>1", 1)
    (said, *_) = check(tmp_path, parts, ROWS)
    assert said.type == "error.label.table_definition_problem"
    assert "it should be at least 10" in said.text


def test_binary_fields_have_the_length_of_their_type_and_fit_the_record(tmp_path: Path) -> None:
    good = (field("Binary", 1, "UnsignedMSB2", (1, 2)), field("Binary", 2, "ASCII_Integer", (3, 2)))
    assert check(tmp_path, fixed(*good, kind="Binary", length=4, records=2), b"\x00\x01 7\x00\x02 8") == []
    found = check(tmp_path, fixed(*good, kind="Binary", length=4, records=2), b"\x00\x01 7\x00\x02 x")
    assert [(each.type, each.record) for each in found] == [("error.table.field_value_data_type_mismatch", 2)]
    wrong = field("Binary", 1, "UnsignedMSB4", (1, 2))
    (said,) = check(tmp_path, fixed(wrong, kind="Binary", length=4, records=1), b"\x00" * 4)
    assert said.type == "error.table.bad_field_read"


def test_bits_must_lie_within_their_field_and_not_overlap(tmp_path: Path) -> None:
    def bits(*ranges: tuple[int, int]) -> str:
        inside = "".join(
            f"<Field_Bit><name>b</name><start_bit_location>{a}</start_bit_location>"
            f"<stop_bit_location>{b}</stop_bit_location><data_type>UnsignedBitString</data_type></Field_Bit>"
            for a, b in ranges
        )
        packed = f"<Packed_Data_Fields><bit_fields>{len(ranges)}</bit_fields>{inside}</Packed_Data_Fields>"
        return fixed(field("Binary", 1, "UnsignedByte", (1, 1), packed), kind="Binary", length=1, records=1)

    assert check(tmp_path, bits((1, 4), (5, 8)), b"x") == []
    (said,) = check(tmp_path, bits((1, 4), (4, 8)), b"x")
    assert said.type == "error.table.field_value_overlap"
    (said,) = check(tmp_path, bits((1, 9)), b"x")
    assert said.type == "error.table.bit_field_mismatch"


@pytest.mark.parametrize(("sign", "type_"), [("+", "ASCII_String"), ("-", "ASCII_Real")])
def test_a_format_cannot_justify_against_its_type(tmp_path: Path, sign: str, type_: str) -> None:
    one = field("Character", 1, type_, (1, 10), f"<field_format>%{sign}10s</field_format>")
    (said, *_) = check(tmp_path, fixed(one), ROWS)
    assert said.type == "error.label.invalid_object_definition"


def statistics(low: str, high: str) -> str:
    return f"<Field_Statistics><minimum>{low}</minimum><maximum>{high}</maximum></Field_Statistics>"


@pytest.mark.parametrize(
    ("type_", "data", "record"),
    [
        ("SignedMSB2", b"\x00\x02\x00\x09\x00\x03", 2),  # 2, 9, 3
        ("SignedLSB2", b"\x02\x00\x03\x00\xff\xff", 3),
        ("UnsignedByte", b"\x02\x03\x09", 3),
        ("IEEE754LSBSingle", b"\x00\x00\x00\x40\x00\x00\xc0\x7f\x00\x00\x10\x41", 3),  # 2, NaN, 9
    ],
)
def test_values_of_a_binary_table_outside_of_its_statistics_are_told(
    tmp_path: Path, type_: str, data: bytes, record: int
) -> None:
    size = len(data) // 3
    parts = fixed(
        field("Binary", 1, type_, (1, size), statistics("0", "5")), kind="Binary", length=size, records=3
    )
    (said,) = check(tmp_path, parts, data)
    assert (said.type, said.record) == ("error.table.field_value_out_of_min_max_range", record)
    wide = parts.replace(statistics("0", "5"), statistics("-10", "10"))
    assert check(tmp_path, wide, data) == []


def test_complex_numbers_have_no_range_and_a_file_that_ends_too_early_is_told(tmp_path: Path) -> None:
    complex_ = field("Binary", 1, "ComplexLSB8", (1, 8), statistics("0", "5"))
    parts = fixed(complex_, kind="Binary", length=8, records=2)
    assert check(tmp_path, parts, b"\x00\x00\x00\x42" * 4) == []
    (said,) = check(tmp_path, parts, b"\x00" * 12)
    assert (said.type, "1 records fit" in said.text) == ("error.label.table_definition_problem", True)


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ("Comma", "Slash", "'Slash' is no field delimiter"),
        ("<records>2", "<records>two", "records is 'two', not a count"),
        ("<records>2</records>", "", "records is missing"),
        ("Record_Delimited>", "Record_Character>", "Field_Character"),
    ],
)
def test_a_definition_by_which_no_record_can_be_read_is_told(
    tmp_path: Path, before: str, after: str, what: str
) -> None:
    parts = delimited("ASCII_Integer").replace(before, after)
    found = check(tmp_path, parts, b"1\r\n2\r\n")
    assert found[0].type == "error.label.table_definition_problem"
    assert what in found[0].text


def test_a_record_of_no_length_is_told(tmp_path: Path) -> None:
    (said, *_) = check(tmp_path, fixed(*TWO, length=0), ROWS)
    assert "record_length is 0" in said.text


def test_one_record_is_measured_by_its_own_end(tmp_path: Path) -> None:
    (said, *_) = check(tmp_path, fixed(*TWO, records=1, length=14), ROWS[:12])
    assert "record_length should be 12, not 14" in said.cause

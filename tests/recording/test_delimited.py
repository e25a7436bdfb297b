"""Delimited text: exact times, every good row kept, every bad one located."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.recording import arrow
from transect.recording.text import CsvLayout, read_csv, whole_lines

LAYOUT = CsvLayout(names=("t", "x", "y"), times={"t": 10**9})
WITH_TEXT = CsvLayout(names=("t", "word", "x"), times={"t": 10**9}, texts=("word",), skip=0)


def read(
    text: str, layout: CsvLayout = LAYOUT
) -> tuple[list[int], list[float], list[tuple[int | None, str]]]:
    csv = read_csv(text.encode(), layout, "a.csv")
    losses = [(loss.line, loss.reason) for loss in csv.losses]
    return arrow.numbers(csv.table, "t").tolist(), arrow.numbers(csv.table, "x").tolist(), losses


def test_times_are_exact_to_the_nanosecond() -> None:
    t, _, losses = read("t,x,y\n1657000000.123456789,1,2\n1657000000.1,1,2\n-0.5,1,2\n")
    assert t == [1657000000123456789, 1657000000100000000, -500000000]
    assert losses == []


@pytest.mark.parametrize("time", ["1656936023e-20000000", "1e-1000", "5e-48", "1e999999", "1e0000029"])
def test_a_time_of_an_absurd_size_is_a_lost_row_and_no_other_time(time: str) -> None:
    assert read(f"t,x,y\n1,1,2\n{time},1,2\n2e+000,1,2\n")[::2] == (
        [10**9, 2 * 10**9],
        [(3, "t is not a time")],
    )


@pytest.mark.parametrize("number", ["1e999", "-1E+400", "9" * 310])
def test_a_number_too_large_for_a_double_is_a_lost_row_and_not_infinity(number: str) -> None:
    assert read(f"t,x,y\n1,inf,2\n2,{number},2\n")[1:] == ([np.inf], [(3, "x is not a number")])


def test_a_number_too_small_for_a_double_is_zero_or_near_it() -> None:
    assert read("t,x,y\n1,6.9e-310,2\n2,1e-400,2\n")[1:] == ([6.9e-310, 0.0], [])


@pytest.mark.parametrize(("unit", "text", "expected"), [
    (1, "1403715273262142976", 1403715273262142976),
    (10**3, "1530195435193075", 1530195435193075000),
    (10**6, "1530195435193.5", 1530195435193500000),
])  # fmt: skip
def test_times_in_other_units_are_exact(unit: int, text: str, expected: int) -> None:
    t, _, _ = read(f"t,x,y\n{text},1,2\n", CsvLayout(names=("t", "x", "y"), times={"t": unit}))
    assert t == [expected]


def test_more_digits_than_nanoseconds_are_truncated() -> None:
    assert read("t,x,y\n1.1234567899,1,2\n")[0] == [1123456789]


def test_windows_line_ends_blank_lines_and_blanks_around_numbers_do_no_harm() -> None:
    t, x, losses = read("t,x,y\r\n1, 1.5,2\r\n\r\n2,2.5 ,2\r\n")
    assert (t, x, losses) == ([10**9, 2 * 10**9], [1.5, 2.5], [])


def test_what_was_not_measured_is_not_a_number() -> None:
    _, x, losses = read("t,x,y\n1,nan,2\n2,,2\n3,NaN,2\n")
    assert np.isnan(x).all()
    assert losses == []


def test_text_in_a_number_loses_that_row_alone_and_says_where() -> None:
    t, _, losses = read("t,x,y\n1,1,2\n2,oops,2\n3,1,2\n")
    assert t == [10**9, 3 * 10**9]
    assert losses == [(3, "x is not a number")]


def test_a_row_of_another_width_is_lost_alone() -> None:
    t, _, losses = read("t,x,y\n1,1,2\n2,1\n3,1,2\n4,1,2,9\n5,1,2\n")
    assert t == [10**9, 3 * 10**9, 5 * 10**9]
    assert losses[0] == (3, "2 fields where 3 are expected")


def test_an_invalid_time_is_a_lost_row() -> None:
    t, _, losses = read("t,x,y\nnan,1,2\n2,1,2\n,1,2\n")
    assert t == [2 * 10**9]
    assert [line for line, _ in losses] == [2]


@pytest.mark.parametrize("text", ["", "t,x,y\n", "t,x,y"])
def test_a_file_without_rows_is_an_empty_table(text: str) -> None:
    assert read(text)[:2] == ([], [])


def test_a_truncated_number_at_the_end_of_the_file_is_rejected() -> None:
    t, _, losses = read("t,x,y\n1,1.25,2.125\n2,1.25,2.1")
    assert t == [10**9]
    assert losses == [(3, "the last line is cut off")]


def test_a_last_line_that_only_lacks_its_newline_is_kept() -> None:
    assert read("t,x,y\n1,1.25,2.125\n2,1.25,3.125")[0] == [10**9, 2 * 10**9]


@given(st.integers(0, 60))
def test_a_file_cut_anywhere_never_changes_a_value(cut: int) -> None:
    rows = [(f"{1657000000 + i}.{i:03d}", f"{i}.25", f"{i * 7}.125") for i in range(5)]
    whole = "t,x,y\n" + "".join(",".join(row) + "\n" for row in rows)
    csv = read_csv(whole[: len(whole) - cut].encode(), LAYOUT, "a.csv")
    t = arrow.numbers(csv.table, "t").tolist()
    y = arrow.numbers(csv.table, "y").tolist()
    assert list(zip(t, y, strict=True)) == [
        ((1657000000 + i) * 10**9 + i * 10**6, i * 7 + 0.125) for i in range(len(t))
    ]


def test_the_cut_line_of_a_long_file_is_located() -> None:
    size, loss = whole_lines(b"1 2 3\n" * 300_000 + b"1 2", "a.txt")
    assert size == 1_800_000
    assert loss is not None
    assert (loss.line, loss.byte) == (300_001, 1_800_000)


def test_an_unpaired_quotation_mark_loses_only_its_own_row() -> None:
    rows = "".join(f"{i}.5,{i},0\n" for i in range(1, 9))
    t, _, losses = read("t,x,y\n" + rows.replace("3.5,", '"3.5,'))
    assert len(t) == 7
    assert losses == [(4, "t is not a time")]


def test_numbers_in_quotation_marks_are_numbers() -> None:
    assert read('t,x,y\n"1.5","2",3\n')[:2] == ([1_500_000_000], [2.0])


def test_a_row_of_another_width_that_is_no_text_is_lost_alone() -> None:
    csv = read_csv(b"t,x,y\n1.5,1,2\n\xff\xfe\n2.5,1,2\n", LAYOUT, "a.csv")
    assert csv.table.num_rows == 2
    assert [(loss.line, loss.reason) for loss in csv.losses] == [(3, "1 fields where 3 are expected")]


def test_lines_are_counted_alike_by_both_readers_where_a_lone_return_ends_one() -> None:
    layout = CsvLayout(names=("t", "x", "y"), times={"t": 10**9}, skip=2)
    t, _, losses = read("\rt,x,y\noops,1,2\n2,1,2\n", layout)
    assert t == [2 * 10**9]
    assert losses == [(3, "t is not a time")]


@pytest.mark.parametrize("bad", ["", "9,x,bad\n"])
def test_a_bad_row_changes_nothing_about_the_quoted_texts_of_the_others(bad: str) -> None:
    rows = '1,"a,b",1\n2,"say ""c,d""",2\n3, e ,3\n4,5" pipe,4\n5,"",5\n'
    csv = read_csv((rows + bad).encode(), WITH_TEXT, "a.csv")
    assert arrow.texts(csv.table, "word") == ["a,b", 'say "c,d"', " e ", '5" pipe', ""]
    assert arrow.numbers(csv.table, "x").tolist() == [1, 2, 3, 4, 5]
    assert [(loss.line, loss.reason) for loss in csv.losses] == ([(6, "x is not a number")] if bad else [])


def test_a_quotation_mark_without_its_second_is_part_of_a_text() -> None:
    csv = read_csv(b'1,"a,1\n2,b,2\n3,x,bad\n', WITH_TEXT, "a.csv")
    assert arrow.texts(csv.table, "word") == ['"a', "b"]
    assert [loss.line for loss in csv.losses] == [3]


def test_a_quoted_text_too_long_to_split_is_a_lost_row() -> None:
    rows = f'1,"{"a," * 100_000}",1\n2,b,2\n3,x,bad\n'
    csv = read_csv(rows.encode(), WITH_TEXT, "a.csv")
    assert arrow.texts(csv.table, "word") == ["b"]
    assert [loss.line for loss in csv.losses] == [1, 3]


@pytest.mark.parametrize("text", ["1_000", "\u0661\u0662"])
def test_text_that_only_python_accepts_as_a_number_is_rejected(text: str) -> None:
    t, x, losses = read(f"t,x,y\n1,{text},2\n{text},1,2\n3,1,2\n")
    assert (t, x) == ([3 * 10**9], [1.0])
    assert losses == [(2, "x is not a number"), (3, "t is not a time")]


@pytest.fixture
def tiny_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transect.recording.text.delimited._RETRY_BYTES", 8)


@pytest.mark.usefixtures("tiny_pieces")
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_file_read_in_pieces_keeps_its_line_numbers_and_counts_each_reason_once(end: str) -> None:
    bad = {5: "5,oops,1", 20: "20,1", 21: "21,?,1", 33: "no,1,1"}
    lines = ["# long comment over pieces", "", "t,x,y", "4,4,1", *(f"{i},{i},1" for i in range(5, 41))]
    for number, line in bad.items():
        lines[number - 1] = line
    layout = CsvLayout(names=("t", "x", "y"), times={"t": 10**9}, skip=3)
    csv = read_csv((end.join(lines) + end).encode(), layout, "a.csv")
    kept = [i for i in range(4, 41) if i not in bad]
    assert arrow.numbers(csv.table, "t").tolist() == [i * 10**9 for i in kept]
    assert arrow.numbers(csv.table, "x").tolist() == kept
    assert [(loss.line, loss.reason, loss.count) for loss in csv.losses] == [
        (5, "x is not a number", 2),
        (20, "2 fields where 3 are expected", 1),
        (33, "t is not a time", 1),
    ]


@pytest.mark.parametrize("piece", [1, 30])
@given(bad=st.sets(st.integers(2, 13)))
def test_the_size_of_the_pieces_changes_nothing(piece: int, bad: set[int]) -> None:
    lines = ["t,x,y", *("1,bad,1" if i in bad else f"{i},{i}.5,1" for i in range(2, 14))]
    text = "".join(f"{line}\n" for line in lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transect.recording.text.delimited._RETRY_BYTES", piece)
        t, x, losses = read(text)
    assert t == [i * 10**9 for i in range(2, 14) if i not in bad]
    assert x == [i + 0.5 for i in range(2, 14) if i not in bad]
    assert losses == ([(min(bad), "x is not a number")] if bad else [])

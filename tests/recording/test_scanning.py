"""Free text to numbers: token by token what Python's own float reads, to the bit."""

import re
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transect.base.clocks import ns_from_decimal
from transect.recording.text import Tokens, bad_stamp, blocks, scan, stamps, whole_lines

HARD_NUMBERS = (
    "0.1000000000000000055511151231257827021181583404541015625",  # 0.1 in full
    "9007199254740993",  # 2**53 + 1, halfway between two floats
    "9007199254740995",  # halfway, and even is up
    "123456789012345678901234567890",
    "2.2250738585072011e-308",  # once hung PHP and Java
    "2.2250738585072012e-308",
    "5e-324",
    "2.4703282292062327e-324",
    "1.7976931348623157e308",
    "1.7976931348623159e308",
    "1e400",
    "-1e-400",
    "0e999999999999",
    "7.450580596923828125e-9",  # 2**-27: exact, so the tie rule must not touch it
    "1448997445238699",
    "8.5e-7",
)
SPECIAL = (
    "nan",
    "NaN",
    "-nan",
    "+NAN",
    "inf",
    "-inf",
    "Infinity",
    "-INFINITY",
    "+inf",
    "infinit",
    "nann",
    "in",
)
WORDS = (
    "RANGE_DATA",
    "*",
    "**",
    "+",
    "-",
    ".",
    "-.",
    "1e",
    "1e+",
    "e5",
    "0x10",
    "1_000",
    "1.2.3",
    "1-2",
    "é",
    "--1",
)

number_texts = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats().map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=6).map(str),
    st.builds("{}e{}".format, st.integers(0, 10**19), st.integers(-345, 330)),
    st.builds("{}.{}".format, st.integers(0, 99), st.integers(0, 10**18)),
    st.sampled_from((*HARD_NUMBERS, "+1", "5.", ".5", "-.5", "-0", "007", "1E5", "-0.0")),
    st.sampled_from(SPECIAL),
)
tokens = st.one_of(number_texts, st.sampled_from(WORDS), st.text("ab12.e+-", min_size=1, max_size=6))
separators = st.sampled_from(
    (" ", "  ", "\t", ",", ";", "\n", "\r\n", "\n\n", "\n*", "\n* ", " *", "\n \r\n")
)
texts = st.lists(st.tuples(tokens, separators).map("".join), max_size=40).map(
    lambda parts: "".join(parts).encode()
)


def read_slowly(text: bytes) -> list[list[tuple[int, bytes, str, bool]]]:
    """Line number, bytes, value and `is_word` of each token, by Python's own means."""
    lines: list[list[tuple[int, bytes, str, bool]]] = []
    for number, line in enumerate(text.split(b"\n"), 1):
        parts = [part for part in re.split(rb"[ \t\r,;]", line) if part]
        if parts and parts[0].startswith(b"*"):
            parts[0] = parts[0][1:]
        lines.append([(number, part, *float_or_word(part)) for part in parts if part])
    return [line for line in lines if line]


def float_or_word(token: bytes) -> tuple[str, bool]:
    if re.fullmatch(
        rb"[-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+([eE][-+]?\d+)?|nan|inf|infinity)", token, re.IGNORECASE
    ):
        return float(token).hex(), False
    return "nan", True


def read_by_scan(found: Tokens) -> list[list[tuple[int, bytes, str, bool]]]:
    rows = zip(found.begin, found.end, found.values, found.is_word, strict=True)
    tokens = [(found.buffer[b:e].tobytes(), v.hex(), bool(w)) for b, e, v, w in rows]
    spans = zip(found.line, pairwise(found.first), strict=True)
    return [[(int(line), *token) for token in tokens[a:b]] for line, (a, b) in spans]


def joined(pieces: list[Tokens]) -> list[list[tuple[int, str, str]]]:
    """Line number, text and value of each token, line by line."""
    return [
        [(int(p.line[i]), p.text(k), p.values[k].hex()) for k in range(p.first[i], p.first[i + 1])]
        for p in pieces
        for i in range(len(p.line))
    ]


@given(texts)
@example(b"")
@example(b"*")
@example(b"* *5 6")
@example(b"*1.5 RANGE_DATA 2\r\n*2.5 RANGE_DATA nan")
@example("\n".join(HARD_NUMBERS).encode())
def test_tokens_lines_and_numbers_are_what_python_reads(text: bytes):
    assert read_by_scan(scan(text)) == read_slowly(text)


@given(st.binary(max_size=200))
def test_so_they_are_of_any_bytes_at_all(data: bytes):
    assert read_by_scan(scan(data)) == read_slowly(data)


@given(st.lists(st.text("0123456789.-", min_size=1, max_size=9), max_size=40))
@example([f"{n:08d}"[:at] + "." + f"{n:08d}"[at:] for n in (0, 12345678, 99999999) for at in range(9)])
def test_so_they_are_of_short_decimals(numbers: list[str]):
    text = " ".join(numbers).encode()
    assert read_by_scan(scan(text)) == read_slowly(text)


@given(numbers=st.lists(number_texts, min_size=1, max_size=30))
@example(numbers=list(HARD_NUMBERS))
def test_numbers_are_what_python_reads(numbers: list[str]):
    numbers = [n for n in numbers if n not in ("infinit", "nann", "in")]
    found = scan(" ".join(numbers).encode())
    expected = np.array([float(n) for n in numbers])
    np.testing.assert_array_equal(found.values, expected)
    np.testing.assert_array_equal(np.signbit(found.values), np.signbit(expected) & ~np.isnan(expected))
    assert not found.is_word.any()


def test_words_stars_and_line_ends_are_distinguished():
    found = scan(b"*12.5 NAV_DATA 1,2;nan\r\n\r\n  \n* -3\tinf 1e 4_0\n")
    assert [found.text(i) for i in range(len(found.values))] == [
        *("12.5", "NAV_DATA", "1", "2", "nan"),
        *("-3", "inf", "1e", "4_0"),
    ]
    np.testing.assert_array_equal(found.line, [1, 4])
    np.testing.assert_array_equal(found.counts, [5, 4])
    np.testing.assert_array_equal(found.word_counts, [1, 2])
    np.testing.assert_array_equal(found.is_word, [0, 1, 0, 0, 0, 0, 0, 1, 1])
    assert found.words(1) == ["NAV_DATA", "inf"]
    np.testing.assert_array_equal(found.equals(1, b"NAV_DATA"), [True, False])
    np.testing.assert_array_equal(found.equals(4, b"nan"), [True, False])


@given(text=texts, block=st.integers(1, 60))
def test_blocks_hold_the_same_tokens_as_the_whole(text: bytes, block: int):
    pieces = list(blocks(text, block=block))
    assert joined(pieces) == joined([scan(text)])


def test_only_the_first_bytes_are_scanned_where_a_size_is_given():
    assert scan(b"1 2\n3 4\n", 4).values.tolist() == [1, 2]
    assert [p.values.tolist() for p in blocks(b"1 2\n3 4\n", 4)] == [[1, 2]]


@given(st.lists(st.lists(st.integers(0, 99), min_size=2, max_size=5), min_size=1, max_size=6))
def test_ragged_rows_come_end_to_end(rows: list[list[int]]):
    found = scan("\n".join(" ".join(map(str, row)) for row in rows).encode())
    lines = np.arange(len(rows))
    flat, offsets = found.ragged(1, found.counts - 1, lines)
    assert [flat[a:b].tolist() for a, b in pairwise(offsets)] == [row[1:] for row in rows]
    every_other, ends = found.ragged(0, found.counts[::2], lines[::2])
    assert every_other.tolist() == [value for row in rows[::2] for value in row]
    assert ends[-1] == len(every_other)


stamp_texts = st.one_of(
    st.builds("{}.{}".format, st.integers(0, 2 * 10**19), st.text("0123456789", max_size=25)),
    st.integers(-(10**20), 10**20).map(str),
    st.decimals(-(10**10), 10**10, places=9).map(lambda d: f"{d:f}"),
    st.sampled_from(
        ("", ".", "-", "-.", "1e9", "+1", "nan", "1.2.3", ".5", "5.", "-.5", "00000000000000000001", "1 2")
    ),
)


@given(st.lists(stamp_texts, min_size=1, max_size=20), st.sampled_from([1, 10**3, 10**6, 10**9]))
def test_stamps_are_exact(written: list[str], unit_ns: int):
    data = np.frombuffer(" ".join(written).encode() + b" ", np.uint8)
    ends = np.cumsum([len(text) + 1 for text in written]) - 1
    begins = ends - np.array([len(text) for text in written])
    found = stamps(data, begins, ends, unit_ns)
    for text, t_ns, bad in zip(written, found.tolist(), bad_stamp(found), strict=True):
        plain = re.fullmatch(r"-?(\d{0,19}\.\d*|\d{1,19})", text) and re.search(r"\d", text)
        expected = int(Decimal(text) * unit_ns) if plain else 2**63
        assert bad == (abs(expected) >= 2**63)
        assert bad or t_ns == expected


def test_a_unix_stamp_keeps_its_last_nanosecond():
    found = scan(b"*1224053469.123456789 x\n")
    assert found.stamps(0, np.array([0])).tolist() == [1_224_053_469_123_456_789]
    nanoseconds = scan(b"1224053469123456789\n")
    assert nanoseconds.stamps(0, np.array([0]), 1).tolist() == [1_224_053_469_123_456_789]
    assert ns_from_decimal("1224053469.123456789") == 1_224_053_469_123_456_789


def test_long_texts_and_views_of_them_read_the_same():
    text = b"*1.5 a 0.1 8191\n" * 20_000
    assert read_by_scan(scan(memoryview(text))) == read_slowly(text)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (b"", 0),
        (b"1 2\n3 4\n", 8),
        (b"1 2\r\n3 4\r", 9),
        (b"1 20\n3 40", 9),  # as many fields, the last as long
        (b"1 20\n3 4", 5),  # the last field is shorter
        (b"1 2.50\n3 4.5", 7),  # decimals are missing
        (b"1 2\n3", 4),  # a field is missing
        (b"only one line", 13),
    ],
)
def test_a_last_line_is_accepted_only_if_it_looks_complete(text: bytes, kept: int):
    size, loss = whole_lines(text, "log.txt")
    assert size == kept
    assert (loss is None) == (kept == len(text))
    if loss:
        assert (loss.file, loss.line, loss.byte) == ("log.txt", 2, kept)


def test_a_cut_line_is_found_behind_long_ones():
    text = b"1\n" * 3 + b"9 " * 700_000 + b"\n" + b"9 " * 600_000
    size, loss = whole_lines(text, "log.txt")
    assert loss is not None
    assert loss.line == 5
    assert size == len(text) - 1_200_000

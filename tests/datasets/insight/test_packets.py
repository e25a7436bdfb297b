"""CCSDS packets of the IDA (SIS 3.2.2, Table 6): headers bit by bit, order, gaps, late packets."""

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import transect
from transect.base.clocks import NS
from transect.datasets.insight import packets as ccsds
from transect.datasets.insight.packets.packet_files import (
    SEQUENCE_MODULUS,
    missing_before,
    ns_from_sclk,
    order_of_packets,
    packet,
    sclk_from_ns,
)
from transect.errors import ParseError, UnsupportedError, UsageError
from transect.formats import recognise
from transect.recording import Recording

SCLK_S = 602047157  # SIS Table 8


def raw(apid: int, seconds: int, ticks: int, sequence: int, payload: bytes, flags: int = 3) -> bytes:
    """A space packet by CCSDS 133.0-B: version 0, telemetry, secondary header; then the SCLK of SIS 3.3.1."""
    bits = f"{0:03b}{0:b}{1:b}{apid:011b}{flags:02b}{sequence:014b}{6 + len(payload) - 1:016b}"
    return int(bits, 2).to_bytes(6, "big") + struct.pack(">IH", seconds, ticks) + payload


def row(number: int, payload: bytes = b"", apid: int = 87) -> bytes:
    return raw(apid, SCLK_S + number, 0x8000, number, payload or bytes([number] * 5))


def save(folder: Path, name: str, *packets: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(b"".join(packets))
    return folder / name


def sequences(rec: Recording, name: str = "Packets/SciHi") -> list[int]:
    return rec[name]["sequence"].tolist()


def test_a_packet_is_read_field_by_field(tmp_path: Path):
    path = save(
        tmp_path, "pass.dat", raw(89, SCLK_S, 0x8000, 5, b"abc"), raw(89, SCLK_S + 1, 1, 6, b"defg", flags=1)
    )
    rec = transect.open(path)
    stream = rec["Packets/Status"]
    assert stream.clock == "sclk"
    assert stream.t_ns.tolist() == [
        SCLK_S * NS + NS // 2,
        (SCLK_S + 1) * NS + 15258,
    ]  # 1/65536 s = 15258.79 ns
    assert stream["sequence"].tolist() == [5, 6]
    assert stream["sequence_flags"].tolist() == [3, 1]
    assert stream["size"].tolist() == [3, 4]
    assert stream["byte"].tolist() == [0, 15]
    assert [sample.payload for sample in stream] == [b"abc", b"defg"]
    assert rec.losses == ()
    assert rec.robot is not None


def test_each_apid_is_a_stream_named_after_table_6(tmp_path: Path):
    path = save(tmp_path, "pass.dat", *(raw(apid, SCLK_S, 0, 0, b"x") for apid in range(84, 90)))
    names = {stream.name for stream in transect.open(path)}
    kinds = ("CollisionDatabase", "History", "Parameters", "SciHi", "SciLo", "Status")
    assert names == {f"Packets/{kind}" for kind in kinds}


def test_our_packets_are_those_of_the_standard():
    assert packet(87, ns_from_sclk(SCLK_S, 4711), 9, b"abc") == raw(87, SCLK_S, 4711, 9, b"abc")


@given(st.integers(0, 2**32 - 1), st.integers(0, 65535))
def test_an_sclk_is_the_same_after_nanoseconds(seconds: int, ticks: int):
    assert sclk_from_ns(ns_from_sclk(seconds, ticks)) == (seconds, ticks)


def test_a_time_just_below_a_second_carries_over():
    assert sclk_from_ns(NS - 1) == (1, 0)


def test_packets_out_of_order_are_sorted_by_sclk_and_marked_late(tmp_path: Path):
    rec = transect.open(save(tmp_path, "pass.dat", row(0), row(2), row(1), row(3)))
    stream = rec["Packets/SciHi"]
    assert sequences(rec) == [0, 1, 2, 3]
    assert stream["late"].tolist() == [False, True, False, False]
    assert any("1 packets came late" in note for note in rec.all_notes)


def test_a_packet_that_a_pass_missed_comes_with_a_later_one(tmp_path: Path):
    folder = tmp_path / "passes"
    save(folder, "pass1.dat", row(0), row(1), row(3))
    assert transect.open(folder)["Packets/SciHi"]["missing_before"].tolist() == [0, 0, 1]
    save(folder, "pass2.dat", row(2), row(4), row(5))
    rec = transect.open(folder)
    stream = rec["Packets/SciHi"]
    assert sequences(rec) == [0, 1, 2, 3, 4, 5]
    assert stream["late"].tolist() == [False, False, True, False, False, False]
    assert stream["missing_before"].sum() == 0
    assert stream[2].row["payload"] == "pass2.dat"
    assert stream[2].payload == bytes([2] * 5)


def test_files_come_in_the_order_of_their_time_tags(tmp_path: Path):
    folder = tmp_path / "passes"
    save(folder, "A0087_0062_602047157_602052923_190129195008_z.dat", row(0), row(2))
    save(folder, "A0087_0062_602047158_602052923_190130195008_a.dat", row(1), row(3))
    stream = transect.open(folder)["Packets/SciHi"]
    assert stream["late"].tolist() == [False, True, False, False]


def test_gaps_are_counted_and_said(tmp_path: Path):
    rec = transect.open(save(tmp_path, "pass.dat", row(0), row(4), row(5), row(9)))
    assert rec["Packets/SciHi"]["missing_before"].tolist() == [0, 3, 0, 3]
    (note,) = rec.all_notes
    assert note == f"Packets/SciHi: 6 packets are missing in 2 gaps, the first before {SCLK_S + 4}.500"
    assert rec.losses == ()


def test_sequence_counts_wrap_and_restart():
    assert missing_before(np.array([16382, 16383, 0, 2])).tolist() == [0, 0, 0, 1]
    assert missing_before(np.array([100, 100, 5, 6])).tolist() == [0, 0, 0, 0]
    assert missing_before(np.zeros(0, dtype=np.int64)).tolist() == []


def test_packets_of_one_sclk_are_in_the_order_of_their_counts():
    t_ns = np.array([5, 5, 5, 1], dtype=np.int64)
    assert order_of_packets(t_ns, np.array([16383, 1, 0, 7])).tolist() == [3, 0, 2, 1]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, SEQUENCE_MODULUS - 1)), max_size=30))
def test_the_order_is_a_permutation_sorted_by_time(packets: list[tuple[int, int]]):
    t_ns, sequence = np.array(packets, dtype=np.int64).reshape(-1, 2).T
    order = order_of_packets(t_ns, sequence)
    assert sorted(order.tolist()) == list(range(len(packets)))
    assert (np.diff(t_ns[order]) >= 0).all()


def test_a_recording_is_written_and_read_back_byte_by_byte(tmp_path: Path):
    folder = tmp_path / "passes"
    mixed = [row(0), row(1, apid=88), row(3), row(4, b"longer payload")]
    save(folder, "pass1.dat", *mixed)
    save(folder, "pass2.dat", row(2), raw(87, SCLK_S + 9, 7, 9, b"z", flags=2))
    rec = transect.open(folder)
    assert ccsds.write(rec, tmp_path / "out") == ()
    assert (tmp_path / "out" / "pass1.dat").read_bytes() == b"".join(mixed)
    again = transect.open(tmp_path / "out")
    for stream in rec:
        assert stream.table.equals(again[stream.name].table)
        assert [s.payload for s in stream] == [s.payload for s in again[stream.name]]


def test_what_is_no_packet_is_not_written(tmp_path: Path):
    rec = transect.open(save(tmp_path, "pass.dat", row(0), row(1)))
    other = rec["Packets/SciHi"].replace(name="Other")
    assert ccsds.write(rec.replace(streams=(*rec.streams, other)), tmp_path / "out") == ("Other: no packets",)
    with pytest.raises(UnsupportedError):
        ccsds.write(rec.replace(streams=(other,)), tmp_path / "none")
    with pytest.raises(UsageError):
        ccsds.write(rec, tmp_path / "out")


@pytest.mark.parametrize(
    ("damage", "kept", "byte"),
    [
        (lambda d: d[:-3], [0, 1, 2], 51),
        (lambda d: d[:53], [0, 1, 2], 51),
        (lambda d: d[:17] + b"\xff" + d[18:], [0, 2, 3], 17),  # version and APID of packet 1
        (lambda d: d[:21] + b"\xf0" + d[22:], [0, 2, 3], 17),  # length of packet 1
        (lambda d: b"junk" + d, [0, 1, 2, 3], 0),
        (lambda d: d[:17] + b"junk" + d[17:], [0, 1, 2, 3], 17),
        (lambda d: d[:17] + d[19:], [0, 2, 3], 17),
        (lambda d: d + raw(200, SCLK_S, 0, 0, b"abc"), [0, 1, 2, 3], 68),  # an APID that is not the arm's
    ],
)
def test_damage_is_located_and_the_other_packets_are_kept(
    tmp_path: Path, damage: Callable[[bytes], bytes], kept: list[int], byte: int
):
    path = save(tmp_path, "pass.pkt", damage(b"".join(map(row, range(4)))))
    rec = transect.open(path, format="ccsds")
    assert sequences(rec) == kept
    assert rec.losses[0].byte == byte
    with pytest.raises(ParseError):
        transect.open(path, format="ccsds", strict=True)


def test_a_packet_without_secondary_header_has_no_time(tmp_path: Path):
    untimed = bytearray(row(1))
    untimed[0] &= 0xF7
    rec = transect.open(save(tmp_path, "pass.dat", row(0), bytes(untimed), row(2)))
    assert sequences(rec) == [0, 2]
    assert [loss.byte for loss in rec.losses] == [17]


def test_other_files_beside_are_left_alone(tmp_path: Path):
    save(tmp_path, "pass.dat", row(0), row(1))
    save(tmp_path, "readme.txt", b"hello")
    rec = transect.open(tmp_path)
    assert rec.format == "ccsds"
    assert rec.notes == ("1 files hold no packets of the IDA",)


@pytest.mark.parametrize("content", [b"", b"\x08", b"\x08\x57", b"PNG and something", row(0)[:9]])
def test_what_is_no_packet_file_is_not_recognised(tmp_path: Path, content: bytes):
    save(tmp_path, "pass.dat", content)
    assert not dict(recognise(tmp_path))["ccsds"]


@given(data=st.data())
def test_mutated_packets_are_kept_or_reported(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory):
    content = bytearray(b"".join(map(row, range(6))))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(1, len(content))) :]
    path = save(tmp_path_factory.mktemp("mutated"), "pass.pkt", bytes(content))
    rec = transect.open(path, format="ccsds")
    payloads = sum(12 + len(sample.payload) for stream in rec for sample in stream)
    assert payloads == len(content) or rec.losses
    assert payloads <= len(content)

import math
from pathlib import Path

import numpy as np
import pynmea2
import pytest
from hypothesis import given
from hypothesis import strategies as st

import transect
from transect import formats
from transect.base.clocks import ns_from_iso
from transect.errors import ParseError, UsageError
from transect.formats import nmea
from transect.formats.nmea.reading import read_log
from transect.formats.nmea.writing import log_text
from transect.recording import Recording, Stream, source_of, stream_of_values
from transect.types import FIX_TYPES, NavFix, Twist

M_S_PER_KNOT = 1852 / 3600


def sentence(body: str) -> str:
    return f"${body}*{pynmea2.NMEASentence.checksum(body):02X}"


def log(path: Path, *bodies: str, end: str = "\r\n") -> Path:
    path.write_bytes(
        "".join(sentence(b) + end if b[:1] != "=" else b[1:] + end for b in bodies).encode("latin-1")
    )
    return path


def opened(path: Path, **options: object) -> Recording:
    return transect.open(path, format="nmea", **options)  # type: ignore[arg-type]


GGA = "GPGGA,123519.50,4807.038,N,01131.000,W,4,08,0.9,545.4,M,46.9,M,1.5,0120"
RMC = "GPRMC,123519.50,A,4807.038,N,01131.000,W,022.4,084.4,230394,003.1,W"


@pytest.fixture
def one_fix(tmp_path: Path) -> Recording:
    return opened(log(tmp_path / "a.nmea", RMC, GGA, "GPGST,123519.50,,,,,0.012,0.034,0.056"))


def test_a_gga_becomes_radians_metres_and_words(one_fix: Recording) -> None:
    row = one_fix["Gps/Fix"][0].row
    assert row["lat"] == pytest.approx(math.radians(48 + 7.038 / 60), abs=1e-15)
    assert row["lon"] == pytest.approx(-math.radians(11 + 31 / 60), abs=1e-15)
    assert (row["alt"], row["geoid_separation"], row["hdop"], row["satellites"]) == (545.4, 46.9, 0.9, 8)
    assert (row["fix"], row["quality"], row["age"], row["station"]) == ("rtk fixed", 4, 1.5, "0120")
    assert (row["std_north"], row["std_east"], row["std_down"]) == (0.012, 0.034, 0.056)
    assert one_fix["Gps/Fix"].units["lat"] == "rad"


def test_an_rmc_becomes_a_velocity_in_ned(one_fix: Recording) -> None:
    stream = one_fix["Gps/Velocity"]
    row = stream[0].row
    assert stream.frame == "NED"
    assert row["speed"] == pytest.approx(22.4 * M_S_PER_KNOT)
    assert row["course"] == pytest.approx(math.radians(84.4))
    assert row["vx"] == pytest.approx(22.4 * M_S_PER_KNOT * math.cos(math.radians(84.4)))
    assert row["vy"] == pytest.approx(22.4 * M_S_PER_KNOT * math.sin(math.radians(84.4)))
    assert math.isnan(row["vz"])


def test_the_date_of_rmc_dates_the_positions(one_fix: Recording) -> None:
    assert one_fix["Gps/Fix"].clock == "utc"
    assert one_fix["Gps/Fix"].t_ns.tolist() == [ns_from_iso("1994-03-23T12:35:19.5")]


def test_positions_before_the_first_date_take_it(tmp_path: Path) -> None:
    rec = opened(log(tmp_path / "a.nmea", GGA.replace("123519.50", "123518.50"), RMC, GGA))
    assert rec["Gps/Fix"].t_ns.tolist() == [ns_from_iso(f"1994-03-23T12:35:{s}.5") for s in (18, 19)]


def test_midnight_between_two_dates(tmp_path: Path) -> None:
    late, early = "235959.80", "000000.00"
    path = log(
        tmp_path / "a.nmea",
        RMC.replace("123519.50", late),
        GGA.replace("123519.50", late),
        GGA.replace("123519.50", early),
        RMC.replace("123519.50", early).replace("230394", "240394"),
    )
    rec = opened(path)
    assert rec["Gps/Fix"].t_ns.tolist() == [ns_from_iso("1994-03-23T23:59:59.8"), ns_from_iso("1994-03-24")]
    assert rec["Gps/Velocity"].t_ns.tolist() == rec["Gps/Fix"].t_ns.tolist()


def test_zda_dates_positions_too(tmp_path: Path) -> None:
    rec = opened(log(tmp_path / "a.nmea", "GPZDA,123519.00,05,11,2021,00,00", GGA))
    assert rec["Gps/Fix"].t_ns.tolist() == [ns_from_iso("2021-11-05T12:35:19.5")]


def test_a_log_without_any_date_is_on_the_device_clock_and_crosses_midnight(tmp_path: Path) -> None:
    times = ("235959.00", "000000.00", "000001.00")
    rec = opened(log(tmp_path / "a.nmea", *(GGA.replace("123519.50", t) for t in times)))
    stream = rec["Gps/Fix"]
    assert stream.clock == "device"
    assert stream.t_ns.tolist() == [86_399 * 10**9, 86_400 * 10**9, 86_401 * 10**9]
    assert any("no date" in note for note in rec.all_notes)


def test_a_time_before_each_sentence_is_the_samples_time(tmp_path: Path) -> None:
    path = tmp_path / "gps.log"
    path.write_text(f"1514301955.465123 {sentence(GGA)}\n1514301955.665 {sentence(RMC)}\n")
    rec = opened(path)
    assert rec["Gps/Fix"].t_ns.tolist() == [1514301955465123000]
    assert rec["Gps/Velocity"].t_ns.tolist() == [1514301955665000000]
    assert rec["Gps/Fix"]["time_of_day"].tolist() == [12 * 3600 + 35 * 60 + 19.5]


@pytest.mark.parametrize("quality", range(10))
def test_every_quality_is_one_of_the_fix_types(tmp_path: Path, quality: int) -> None:
    rec = opened(log(tmp_path / "a.nmea", GGA.replace(",W,4,", f",W,{quality},")))
    (word,) = rec["Gps/Fix"].column("fix")
    wanted = {0: "none", 1: "3d", 2: "differential", 4: "rtk fixed", 5: "rtk float", 6: "none"}
    assert word in FIX_TYPES
    assert wanted.get(quality, word) == word


PLACE = (np.radians(48 + 7.038 / 60), -np.radians(11 + 31.0 / 60))


@pytest.mark.parametrize(
    ("body", "kind", "fix", "alt"),
    [
        (RMC, "RMC", "3d", np.nan),
        (RMC + ",D", "RMC", "differential", np.nan),
        (RMC.replace(",A,", ",V,", 1), "RMC", "none", np.nan),
        ("GPGLL,4807.038,N,01131.000,W,123519.50,A,F", "GLL", "rtk float", np.nan),
        ("GPGLL,4807.038,N,01131.000,W,123519.50,A", "GLL", "3d", np.nan),
        ("GNGNS,123519.50,4807.038,N,01131.000,W,RAN,13,0.9,545.4,46.9,,", "GNS", "rtk fixed", 545.4),
    ],
)
def test_without_gga_positions_are_those_of_other_sentences(
    tmp_path: Path, body: str, kind: str, fix: str, alt: float
) -> None:
    empty = "GPGGA,123519.50,,,,,0,00,,,M,,M,,"
    rec = transect.open(log(tmp_path / "a.log", body, empty))
    fixes = rec["Gps/Fix"]
    assert fixes.array("lat", "lon")[0] == pytest.approx(PLACE, abs=1e-12)
    assert fixes.array("alt")[0, 0] == pytest.approx(alt, nan_ok=True)
    assert fixes.column("fix") == [fix]
    assert fixes.t_ns[0] % (86_400 * 10**9) == 45_319_500_000_000
    value = fixes[0].value
    assert (value.latitude, value.fix) == (pytest.approx(PLACE[0]), fix)
    assert any(f"positions are those of {kind}" in note for note in rec.all_notes)


def test_beside_gga_no_other_position_is_read_and_that_is_said(tmp_path: Path) -> None:
    rec = opened(
        log(tmp_path / "a.nmea", GGA, RMC, "GPGLL,4807.038,N,nonsense,W,123519.50,A", "GNGNS,,,,,,N")
    )
    assert len(rec["Gps/Fix"]) == 1
    assert rec["Gps/Fix"].array("alt")[0, 0] == 545.4
    assert not rec.losses
    assert any("1 GLL, 1 GNS" in note for note in rec.all_notes)


def test_empty_fields_are_not_measured(tmp_path: Path) -> None:
    rec = opened(
        log(tmp_path / "a.nmea", "GPGGA,123519.50,,,,,0,,,,,,,,", "GPRMC,123519.50,V,,,,,,,230394,,,N")
    )
    row = rec["Gps/Fix"][0].row
    assert all(math.isnan(row[name]) for name in ("lat", "lon", "alt", "hdop", "satellites", "age"))
    assert row["fix"] == "none"
    assert np.isnan(rec["Gps/Velocity"]["speed"]).all()


def test_a_bad_checksum_is_a_located_loss_and_the_rest_is_kept(tmp_path: Path) -> None:
    path = log(tmp_path / "a.nmea", RMC, GGA, GGA)
    path.write_bytes(path.read_bytes().replace(b"545.4", b"545.5", 1))
    rec = opened(path)
    (loss,) = rec.losses
    assert (loss.line, loss.count, len(rec["Gps/Fix"])) == (2, 1, 1)
    assert "checksum" in loss.reason
    with pytest.raises(ParseError, match="cannot read all"):
        opened(path, strict=True)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (GGA.replace("545.4", "high"), "altitude"),
        (GGA.replace("545.4", "inf"), "altitude"),
        (GGA.replace("4807.038", "48:07"), "degrees"),
        (GGA.replace("4807.038", "9907.038"), "Earth"),
        (GGA.replace(",N,", ",X,"), "hemisphere"),
        (GGA.replace("123519.50", "129919.50"), "hhmmss"),
        (RMC.replace("230394", "991394"), "date"),
        ("GPGGA", "fields"),
    ],
)
def test_a_field_that_lies_loses_its_sentence_only(tmp_path: Path, body: str, reason: str) -> None:
    rec = opened(log(tmp_path / "a.nmea", RMC, GGA, body))
    (loss,) = rec.losses
    assert loss.line == 3
    assert reason in loss.reason
    assert len(rec["Gps/Fix"]) == len(rec["Gps/Velocity"]) == 1


def test_a_cut_last_line_is_lost_and_located(tmp_path: Path) -> None:
    path = log(tmp_path / "a.nmea", RMC, GGA, GGA)
    path.write_bytes(path.read_bytes()[:-20])
    rec = opened(path)
    assert [(loss.line, len(rec["Gps/Fix"])) for loss in rec.losses] == [(3, 1)]


def test_other_sentences_comments_and_ais_are_counted_in_a_note(tmp_path: Path) -> None:
    path = log(
        tmp_path / "a.nmea",
        RMC,
        GGA,
        "GPGSV,1,1,00",
        "GPGSV,1,1,00",
        "PUBX,00",
        "=# by hand",
        "=!AIVDM,1,1,,A,x",
    )
    rec = opened(path)
    (note,) = rec.all_notes
    assert not rec.losses
    assert "2 GSV" in note
    assert "1 PUBX" in note
    assert "AIVDM" in note


def ubx(payload: bytes) -> bytes:
    body = b"\x01\x07" + len(payload).to_bytes(2, "little") + payload
    a = b = 0
    for byte in body:
        a = (a + byte) & 255
        b = (b + a) & 255
    return b"\xb5\x62" + body + bytes([a, b])


RTCM_1005 = bytes.fromhex("d300133ed7d30202980edeef34b4bd62ac0941986f33360b98")
"""The example frame of RTCM 10403, with its CRC-24Q."""


def test_binary_frames_among_the_sentences_are_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.ubx"
    gga = sentence(GGA).encode() + b"\r\n"
    rmc = sentence(RMC).encode() + b"\r\n"
    path.write_bytes(ubx(b"$GPGGA,\n\n*00") + rmc + RTCM_1005 + gga + ubx(b"\n" * 9))
    rec = opened(path)
    assert not rec.losses
    assert len(rec["Gps/Fix"]) == len(rec["Gps/Velocity"]) == 1
    assert rec.all_notes == ("binary frames that were skipped: 1 RTCM 3, 2 UBX",)


def test_a_log_without_checksums_is_read_and_said_so(tmp_path: Path) -> None:
    path = tmp_path / "a.nmea"
    path.write_text(f"${RMC}\n${GGA}\n${GGA[:20]}")
    rec = opened(path)
    assert len(rec["Gps/Fix"]) == 1
    assert rec.losses[0].line == 3
    assert any("no checksums" in note for note in rec.all_notes)


def test_text_before_a_sentence_is_ignored_and_noted(tmp_path: Path) -> None:
    path = tmp_path / "a.nmea"
    path.write_text(f"[gps] {sentence(RMC)}\n[gps] {sentence(GGA)}\n")
    rec = opened(path)
    assert len(rec["Gps/Fix"]) == 1
    assert any("2 sentences have text in front" in note for note in rec.all_notes)


def test_clocks_that_jump_back_and_repeated_times_are_kept_in_order(tmp_path: Path) -> None:
    times = ("123520.00", "123520.00", "123510.00")
    rec = opened(log(tmp_path / "a.nmea", RMC, *(GGA.replace("123519.50", t) for t in times)))
    timing = rec["Gps/Fix"].timing
    assert (timing.count, timing.repeated, timing.backwards) == (3, 1, 1)


def test_a_log_without_positions_or_velocities_is_refused_with_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(ParseError) as refused:
        opened(log(tmp_path / "a.nmea", "PAIR001,004,0", "GPGSV,1,1,00"))
    assert "PAIR001" in refused.value.why


def test_recognition_gives_a_reason(tmp_path: Path) -> None:
    sure = nmea.recognises(source_of(log(tmp_path / "a.log", "GPTXT,hello", GGA)))
    unsure = nmea.recognises(source_of(log(tmp_path / "b.log", "PAIR001,1")))
    near = nmea.recognises(source_of(log(tmp_path / "c.nmea", "=nothing")))
    assert sure.confidence >= 0.9
    assert "GPGGA" in sure.reason
    assert 0 < unsure.confidence < 0.5
    assert not near
    assert " but " in near.reason


def test_the_path_alone_is_enough(tmp_path: Path) -> None:
    rec = transect.open(log(tmp_path / "a.log", RMC, GGA))
    assert (rec.format, rec.name, [s.name for s in rec]) == ("nmea", "a", ["Gps/Fix", "Gps/Velocity"])


def same(a: Stream, b: Stream) -> bool:
    """Return whether two streams have the same samples, NaN equal to NaN, bit for bit otherwise."""
    if a.columns != b.columns or not np.array_equal(a.t_ns, b.t_ns):
        return False
    left, right = a.to_numpy(), b.to_numpy()
    return all(
        left[n] == right[n]
        if isinstance(left[n], list)
        else np.array_equal(left[n], right[n], equal_nan=True)
        for n in a.columns
    )


def rewritten(rec: Recording, path: Path) -> Recording:
    assert formats.write(rec, path, "nmea") == ()
    return opened(path)


def test_writing_and_opening_again_changes_nothing(tmp_path: Path) -> None:
    path = log(
        tmp_path / "a.nmea",
        RMC,
        GGA,
        "GPGST,123519.50,,,,,0.012,0.034,0.056",
        GGA.replace("4807.038,N", "0007.03812345,S").replace("123519.50", "123519.75"),
        "GNGGA,123520.00,,,,,0,,,,,,,,",
        RMC.replace("123519.50", "235959.99"),
        GGA.replace("123519.50", "000000.01"),
    )
    first = opened(path)
    again = rewritten(first, tmp_path / "b.nmea")
    assert not first.losses
    assert all(same(first[name], again[name]) for name in ("Gps/Fix", "Gps/Velocity"))


def test_a_stamped_log_is_written_stamped(tmp_path: Path) -> None:
    path = tmp_path / "gps.log"
    path.write_text(f"1514301955.465123 {sentence(GGA)}\n1514301955.665 {sentence(RMC)}\n")
    again = rewritten(opened(path), tmp_path / "b.log")
    assert all(same(opened(path)[name], again[name]) for name in ("Gps/Fix", "Gps/Velocity"))


def test_positions_alone_get_an_rmc_for_their_date(tmp_path: Path) -> None:
    t_ns = np.array([ns_from_iso("2022-07-01T23:59:59"), ns_from_iso("2022-07-02")])
    fix = stream_of_values(
        "Gnss", t_ns, {"lat": np.zeros(2), "lon": np.zeros(2), "alt": np.zeros(2)}, type=NavFix
    )
    rec = Recording("r", (fix,))
    again = rewritten(rec, tmp_path / "b.nmea")
    assert again["Gps/Fix"].t_ns.tolist() == t_ns.tolist()
    assert b"RMC,235959.00" in (tmp_path / "b.nmea").read_bytes()


def test_positions_far_from_any_velocity_keep_their_date(tmp_path: Path) -> None:
    t_ns = np.array([ns_from_iso(f"2022-07-{day}") for day in ("01T01:00:00", "01T23:00:00", "05T12:00:00")])
    values = {name: np.zeros(3) for name in ("lat", "lon", "alt")}
    fix = stream_of_values("Gps/Fix", t_ns, values, type=NavFix)
    still = {name: np.zeros(1) for name in ("vx", "vy", "vz")}
    velocity = stream_of_values("Gps/Velocity", t_ns[:1], still, type=Twist, frame="NED")
    again = rewritten(Recording("r", (fix, velocity)), tmp_path / "b.nmea")
    assert again["Gps/Fix"].t_ns.tolist() == t_ns.tolist()
    assert again["Gps/Velocity"].t_ns.tolist() == t_ns[:1].tolist()


def test_what_nmea_cannot_carry_is_said(tmp_path: Path) -> None:
    t_ns = np.array([ns_from_iso("2022-07-01")])
    zero = np.zeros(1)
    fix = stream_of_values("Gnss", t_ns, {"lat": zero, "lon": zero, "alt": zero, "yaw": zero}, type=NavFix)
    body = stream_of_values("Body", t_ns, {"vx": zero, "vy": zero, "vz": zero}, type=Twist, frame="Platform")
    said = formats.write(Recording("r", (fix, body)), tmp_path / "out", "nmea")
    assert (tmp_path / "out" / "gps.nmea").is_file()
    assert len(said) == 2
    assert "Body" in said[0]
    assert "attitude" in said[1]


def test_writing_refuses_an_existing_file_and_a_recording_without_positions(tmp_path: Path) -> None:
    rec = opened(log(tmp_path / "a.nmea", GGA))
    with pytest.raises(UsageError, match="exists already"):
        formats.write(rec, tmp_path / "a.nmea", "nmea")
    with pytest.raises(UsageError, match="no positions"):
        formats.write(Recording("r", ()), tmp_path / "b.nmea", "nmea")


LATITUDES = st.floats(-math.pi / 2, math.pi / 2)


@given(
    st.lists(
        st.tuples(
            st.integers(10**17, 3 * 10**18), LATITUDES, st.floats(-math.pi, math.pi), st.floats(-500, 9000)
        ),
        min_size=1,
        max_size=5,
    )
)
def test_any_position_survives_to_the_precision_of_the_format(
    rows: list[tuple[int, float, float, float]],
) -> None:
    t, lat, lon, alt = (np.array(column) for column in zip(*rows, strict=True))
    fix = stream_of_values("Gps/Fix", t.astype(np.int64), {"lat": lat, "lon": lon, "alt": alt}, type=NavFix)
    again = read_log(log_text(fix, None), "x").fix.table.to_pydict()
    assert again["t_ns"] == t.tolist()
    np.testing.assert_allclose(again["lat"], lat, rtol=0, atol=1.5e-12)
    np.testing.assert_allclose(again["lon"], lon, rtol=0, atol=1.5e-12)
    np.testing.assert_allclose(again["alt"], alt, rtol=0, atol=5.1e-5)


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4))
def test_mutated_bytes_raise_nothing_untyped_and_lose_nothing_silently(
    changes: list[tuple[int, int]],
) -> None:
    clean = "".join(sentence(b) + "\r\n" for b in (RMC, GGA, GGA, RMC, GGA)).encode()
    data = bytearray(clean)
    for at, byte in changes:
        data[at % len(data)] = byte
    result = read_log(bytes(data), "x")
    kept = result.fix.table.num_rows + result.velocity.table.num_rows
    lost = sum(loss.count for loss in result.fix.losses)
    assert kept + lost >= 5 or result.fix.notes


def test_pynmea2_agrees_on_a_thousand_positions() -> None:
    rng = np.random.default_rng(1)
    bodies = [
        f"GPGGA,000000.00,{d:02d}{m:011.8f},S,{e:03d}{n:011.8f},E,1,08,0.9,1.0,M,0.0,M,,"
        for d, m, e, n in zip(
            rng.integers(0, 90, 1000),
            rng.uniform(0, 59, 1000),
            rng.integers(0, 180, 1000),
            rng.uniform(0, 59, 1000),
            strict=True,
        )
    ]
    table = read_log("\n".join(map(sentence, bodies)).encode(), "x").fix.table
    oracle = [pynmea2.parse(body) for body in bodies]
    np.testing.assert_array_equal(table["lat"].to_pylist(), np.radians([m.latitude for m in oracle]))
    np.testing.assert_array_equal(table["lon"].to_pylist(), np.radians([m.longitude for m in oracle]))

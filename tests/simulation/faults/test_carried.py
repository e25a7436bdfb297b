"""A fault that labels claim is in the files: written, opened again, and compared.

What is read back is compared here with the same recording written without a fault, not with `carried`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.simulation.faults.scene import labelled_rows, same_payload, scene

import transect
from transect import formats
from transect.errors import UnsupportedError
from transect.recording import Recording, Stream, arrow, stream_of_values
from transect.simulation.faults import FAULTS, LABELS, calibration, descriptions, signals, timing
from transect.simulation.faults.written import find_stream, write_injected
from transect.types import NavFix

ON_STREAMS = [name for name, fault in FAULTS.items() if fault.apply is not None]
FORMATS = ("sdi", "carmen", "euroc", "kitti", "nmea", "mcap")
"""Each carries another part of the scene, parquet all of it; `bench_inject` tries the others."""


@cache
def short() -> Recording:
    """Two seconds with a stream of every kind of sensor."""
    names = (
        "LaserHorizontal",
        "RadarRangeBearing",
        "VideoVisual",
        "Lidar",
        "Imu",
        "Gnss",
        "Wheels",
        "Odometry",
    )
    return scene(*names).slice("+0s", "+2s")


@cache
def described() -> Recording:
    """Two seconds of streams whose description can be wrong: pairs, covariances, joints, mounts."""
    pairs = ("StereoLeft", "StereoRight", "Arm/Encoders", "Arm/Potentiometers")
    return scene(*pairs, "Imu", "Gnss", "Estimate").slice("+0s", "+2s")


ON_DESCRIBED = [
    fault.name
    for fault in (
        *timing.ORDER_FAULTS,
        *calibration.COVARIANCE_FAULTS,
        *descriptions.FAULTS,
        *signals.JOINT_FAULTS,
    )
    if fault.apply is not None
]


def assert_in_the_files(folder: Path, clean: Recording, original: Recording) -> set[str]:
    """Compare what was written with a fault and without; return the streams that labels claim."""
    again = transect.open(folder)
    labels = again[LABELS].table
    claimed = set(arrow.texts(labels, "stream"))
    for name in claimed:
        stream, other = find_stream(again, original[name]), find_stream(clean, original[name])
        assert stream is not None, name
        assert other is not None, name
        assert differing(other, stream) & labelled_rows(labels, name), name
    return claimed


def differing(before: Stream, after: Stream) -> set[int]:
    """Return the samples of a stream that are others now, or gone; later ones count as others."""
    if len(before) < len(after):
        return {int(np.searchsorted(before.t_ns, t)) for t in after.t_ns[1:][np.diff(after.t_ns) == 0]}
    if len(before) != len(after):
        left = set(after.t_ns.tolist())
        return {i for i, t in enumerate(before.t_ns.tolist()) if t not in left}
    rows, new = before.table.to_pylist(), after.table.to_pylist()
    found = {i for i, (a, b) in enumerate(zip(rows, new, strict=True)) if repr(a) != repr(b)}
    if before.loader is not None:
        found |= {i for i in range(len(before)) if not same_payload(before[i].value, after[i].value)}
    return found


def write_all(faults: Sequence[str], format: str, folder: Path, original: Recording) -> dict[str, set[str]]:
    """Write faults in a format; return the streams that each claims, none if it was refused."""
    formats.write_folder(original, folder / "clean", format)
    inside = [p for p in folder.iterdir() if p.name.startswith("clean")]
    clean = transect.open(*inside)
    claimed: dict[str, set[str]] = {}
    for fault in faults:
        try:
            written = write_injected(original, folder / fault, fault, 0.9, 3, format=format, start="+0.5s")
        except UnsupportedError:
            assert not (folder / fault).exists()
            claimed[fault] = set()
        else:
            claimed[fault] = assert_in_the_files(written.path, clean, original)
    return claimed


def test_every_fault_is_in_a_format_that_holds_everything(tmp_path: Path) -> None:
    faults = [name for name in ON_STREAMS if name not in ON_DESCRIBED]
    claimed = write_all(faults, "parquet", tmp_path, short())
    for fault, streams in claimed.items():
        able = {s.name for s in short() if issubclass(s.type, FAULTS[fault].types)}
        assert streams, fault
        assert streams <= able
    assert claimed["stuck"] == {s.name for s in short()}


def test_every_mistake_of_a_description_is_in_a_format_that_holds_everything(tmp_path: Path) -> None:
    claimed = write_all(ON_DESCRIBED, "parquet", tmp_path, described())
    every = {s.name for s in described()}
    cameras, declaring = {"StereoLeft", "StereoRight"}, {"Gnss", "Estimate"}
    assert claimed == {
        "disorder": every - cameras,  # each has one picture in the window
        "repeated_rows": every,
        "covariance_indefinite": declaring,
        "covariance_zero": declaring,
        "covariance_huge": declaring,
        "inert_gate": declaring,
        "acceleration_in_g": {"Imu"},
        "rates_in_degrees": {"Imu", "Estimate"},
        "times_in_milliseconds": every,
        "times_in_microseconds": every,
        "time_zone": every,
        "swapped_coordinates": {"Gnss"},
        "flipped_axis": {"Imu"},
        "exchanged_cameras": cameras,
        "copied_stream": {"StereoRight", "Arm/Potentiometers"},
        "encoder_drift": {"Arm/Encoders"},
        "potentiometer_drift": {"Arm/Potentiometers"},
    }


def test_a_moved_mount_is_in_a_format_that_has_frames_and_refused_by_others(tmp_path: Path) -> None:
    recording = scene("LaserHorizontal").slice("+0s", "+0.5s")
    old = recording.frames.lookup("Body", "LaserHorizontal")
    # An SDI folder has no frames: read again, they are those of the robot.
    written = write_injected(recording, tmp_path / "moved", "lever_arm", 0.4, 2)
    assert written.format == "parquet"
    assert any("sdi cannot store lever_arm" in sentence for sentence in written.said)
    moved = transect.open(tmp_path / "moved").frames.lookup("Body", "LaserHorizontal") - old
    assert np.linalg.norm(moved[:2, 3]) == pytest.approx(0.4 * 0.5)
    moved[:2, 3] = 0.0
    np.testing.assert_allclose(moved, 0.0, atol=1e-12)
    assert written.labels.num_rows == len(recording["LaserHorizontal"])
    with pytest.raises(UnsupportedError, match="its mount is that without the fault"):
        write_injected(recording, tmp_path / "log", "lever_arm", 0.4, 2, format="sdi")


@pytest.mark.parametrize("format", FORMATS)
def test_a_format_holds_what_its_labels_claim_or_the_fault_is_refused(format: str, tmp_path: Path) -> None:
    claimed = write_all(("dropout", "clock_jump", "noise", "dust", "gnss_float"), format, tmp_path, short())
    assert any(claimed.values()), claimed
    assert claimed["gnss_float"] == ({"Gnss"} if format in ("nmea", "mcap") else set())


def test_where_the_own_format_cannot_hold_the_fault_another_one_does(tmp_path: Path) -> None:
    # The scene is of the format sdi, which has no place for a satellite receiver.
    written = write_injected(short(), tmp_path / "float", "gnss_float", 1.0, streams=("Gnss",))
    assert written.format == "parquet"
    assert any("sdi cannot store gnss_float: Gnss: " in sentence for sentence in written.said)
    again = transect.open(tmp_path / "float")
    assert set(again["Gnss"].column("fix")) == {"rtk fixed", "rtk float"}
    # Named together with a stream that it does hold, too: both were asked for.
    both = write_injected(short(), tmp_path / "both", "stuck", 1.0, streams=("Gnss", "LaserHorizontal"))
    assert both.format == "parquet"


def test_a_stream_that_does_not_hold_the_fault_has_no_labels(tmp_path: Path) -> None:
    written = write_injected(short(), tmp_path / "stuck", "stuck", 1.0)
    assert written.format == "sdi"
    claimed = set(arrow.texts(written.labels, "stream"))
    assert claimed == {"LaserHorizontal", "RadarRangeBearing", "VideoVisual"}
    assert any("stuck of Gnss: it is not stored" in sentence for sentence in written.said)
    assert set(arrow.texts(transect.open(tmp_path / "stuck")[LABELS].table, "stream")) == claimed


def test_a_gap_in_a_track_without_times_is_not_claimed(tmp_path: Path) -> None:
    # Rosario's published odometry has no times: without its first half it is a track that begins elsewhere.
    with pytest.raises(UnsupportedError, match="late_start would not be in the output") as error:
        write_injected(
            short(), tmp_path / "track", "late_start", 0.9, streams=("Odometry",), format="rosario_tracks"
        )
    assert "Odometry: its times are not stored (index clock)" in str(error.value)


def test_a_change_that_the_format_rounds_away_is_not_claimed(tmp_path: Path) -> None:
    # Eight digits of a minute are 0.02 mm; a receiver that wanders by less stands still in the file.
    t_ns = np.arange(20, dtype=np.int64) * 10**8 + 1_224_199_788 * 10**9
    columns = {name: np.full(20, value) for name, value in (("lat", 0.6), ("lon", 0.2), ("alt", 100.0))}
    rec = Recording("r", (stream_of_values("Gps/Fix", t_ns, columns, type=NavFix),), format="nmea")
    with pytest.raises(UnsupportedError, match="noise would not be in the output") as error:
        write_injected(rec, tmp_path / "out", "noise", 1e-9, format="nmea")
    assert "lat" in str(error.value)
    assert write_injected(rec, tmp_path / "other", "noise", 1e-9).format == "parquet"

"""SICK logs ACES, fr079 and MIT-CSAIL in CARMEN's format, as packed by bzip2."""

from __future__ import annotations

import bz2
import gzip
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import transect
from transect.recording import Recording

# SOURCE.txt: scans and beams
LOGS = {"aces": (7374, 180), "fr079": (4934, 360), "mit-csail": (1988, 361)}


@cache
def opened(folder: Path, name: str) -> Recording:
    return transect.open(folder / f"{name}.clf.bz2")


@pytest.fixture
def folder(real_data: Path) -> Path:
    return real_data / "carmen_2dlaser"


@cache
def lines(folder: Path, name: str, word: bytes) -> list[list[bytes]]:
    text = bz2.decompress((folder / f"{name}.clf.bz2").read_bytes())
    return [line.split() for line in text.split(b"\n") if line.startswith(word + b" ")]


@pytest.mark.parametrize("name", LOGS)
def test_a_log_holds_as_many_scans_and_beams_as_its_source_says(folder: Path, name: str) -> None:
    recording = opened(folder, name)
    assert (recording.format, recording.name) == ("carmen", name)
    assert recording["FLASER"].column("ranges").shape == LOGS[name]
    assert recording.losses == ()


@pytest.mark.parametrize("name", LOGS)
def test_every_reading_is_the_one_in_the_text(folder: Path, name: str) -> None:
    _, beams = LOGS[name]
    found = opened(folder, name)["FLASER"].column("ranges")
    words = b" ".join(b" ".join(line[2 : 2 + beams]) for line in lines(folder, name, b"FLASER"))
    readings = np.fromstring(words, sep=" ").reshape(-1, beams)
    # 81.9x: a SICK saw nothing; 50 m stand 11139 times in ACES and almost no other reading beyond 49 m
    expected = np.where(readings >= {"aces": 50.0}.get(name, 81.83), np.nan, readings)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", LOGS)
def test_times_are_exact(folder: Path, name: str) -> None:
    stamps = [line[-3].decode() for line in lines(folder, name, b"FLASER")]
    expected = [int(s.replace(".", "")) * 1000 for s in stamps]  # microseconds in the text
    assert {len(s.partition(".")[2]) for s in stamps} == {6}
    assert opened(folder, name)["FLASER"].t_ns.tolist() == expected


@pytest.mark.parametrize("name", ["aces", "fr079"])
def test_odometry_is_the_one_in_the_text(folder: Path, name: str) -> None:
    rows = np.array([[float(v) for v in line[1:7]] for line in lines(folder, name, b"ODOM")])
    odometry = opened(folder, name)["ODOM"]
    np.testing.assert_array_equal(odometry.array("x", "y", "theta", "vx", "wz", "accel"), rows)


@pytest.mark.parametrize(("name", "ahead"), [("aces", 0.0), ("fr079", -0.04), ("mit-csail", 0.0)])
def test_the_laser_is_where_the_odometry_puts_it(folder: Path, name: str, ahead: float) -> None:
    """SOURCE.txt: poses equal raw odometry; in fr079 but for its PARAM robot_frontlaser_offset, -0.04."""
    scans = opened(folder, name)["FLASER"]
    laser, robot = scans.array("x", "y", "theta"), scans.array("odom_x", "odom_y", "odom_theta")
    forward = np.column_stack([np.cos(robot[:, 2]), np.sin(robot[:, 2])])
    np.testing.assert_allclose(laser[:, :2] - robot[:, :2], ahead * forward, atol=2e-6)
    np.testing.assert_array_equal(laser[:, 2], robot[:, 2])


def test_the_scans_cover_half_a_turn(folder: Path) -> None:
    for name, steps in (("aces", 180), ("fr079", 360), ("mit-csail", 360)):
        scan = opened(folder, name)["FLASER"][0].value
        assert scan.start_angle == -np.pi / 2
        assert scan.angle_increment == pytest.approx(np.pi / steps)


def test_clocks_are_named_by_what_they_count(folder: Path) -> None:
    assert [opened(folder, name)["FLASER"].clock for name in LOGS] == ["device", "device", "utc"]


def test_the_relations_name_times_of_the_aces_log(folder: Path) -> None:
    """aces.relations: pairs of scan times; they are those of the log, so the truth can be joined to it."""
    seconds = np.loadtxt(folder / "aces.relations", usecols=(0, 1))
    t_ns = np.round(seconds * 1e6).astype(np.int64) * 1000
    times = np.concatenate([opened(folder, "aces")[name].t_ns for name in ("FLASER", "ODOM")])
    assert np.isin(t_ns, times).mean() > 0.9


# Times of arrival


def with_noise(folder: Path, name: str, scans: int, target: Path) -> tuple[Path, Path]:
    """Write the start of a log as it is, and with 0.6 s of noise on its stamps; logger times stay."""
    text = bz2.decompress((folder / f"{name}.clf.bz2").read_bytes()).decode()
    random, sound, noisy = np.random.default_rng(8), list[str](), list[str]()
    for line in text.splitlines():
        words = line.split()
        if words and words[0] in ("FLASER", "ODOM"):
            words[-3] = words[-1]
            sound.append(" ".join(words))
            words[-3] = f"{float(words[-1]) + random.normal(0, 0.6):.6f}"
        else:
            sound.append(line)
        noisy.append(" ".join(words))
        scans -= bool(words) and words[0] == "FLASER"
        if not scans:
            break
    files = target / "sound.clf", target / "noisy.clf"
    for file, lines in zip(files, (sound, noisy), strict=True):
        file.write_text("\n".join(lines) + "\n")
    return files


def test_noisy_stamps_change_nothing_of_a_map(folder: Path, tmp_path: Path) -> None:
    sound, noisy = (transect.run("LaserSlam", file) for file in with_noise(folder, "fr079", 150, tmp_path))
    back = np.diff(transect.open(tmp_path / "noisy.clf")["FLASER"].t_ns) < 0
    assert back.sum() > 50
    assert (sound.config["time"]["played_by"], noisy.config["time"]["played_by"]) == ("sample", "log")
    assert sound.digest == noisy.digest
    assert not any(each.bad for each in noisy.conclusions)


def test_logs_with_sound_clocks_are_played_by_their_stamps(folder: Path) -> None:
    from transect.engine.arrival import describe_noisy_stamps

    for name in LOGS:
        assert describe_noisy_stamps(opened(folder, name).streams, 500_000_000) == "", name


def test_scans_of_a_clock_that_stands_still_keep_their_order(real_data: Path) -> None:
    """In belgioioso all scans have one stamp."""
    from transect.engine.arrival import describe_noisy_stamps

    recording = transect.open(real_data / "carmen_corrected" / "belgioioso-corrected.log.gz")
    scans = recording["FLASER"]
    assert len(np.unique(scans.t_ns)) == 1
    assert (np.diff(scans.log_ns) > 0).all()
    assert "equal to the one before" in describe_noisy_stamps(recording.streams)


def corrected_log(real_data: Path, scans: int, target: Path) -> tuple[Path, np.ndarray]:
    """Write the start of belgioioso, which has no clock; return it and the corrected poses (n, 3)."""
    packed = real_data / "carmen_corrected" / "belgioioso-corrected.log.gz"
    kept, poses = list[str](), list[list[float]]()
    for line in gzip.decompress(packed.read_bytes()).decode().splitlines(keepends=True):
        kept.append(line)
        if line.startswith("FLASER "):
            words = line.split()
            poses.append([float(word) for word in words[-9:-6]])
            if len(poses) == scans:
                break
    file = target / "belgioioso.log"
    file.write_text("".join(kept))
    return file, np.array(poses)


def test_a_log_without_a_clock_is_mapped_as_its_corrected_poses_have_it(
    real_data: Path, tmp_path: Path
) -> None:
    """They are of a particle filter. On the spot the robot turns by up to 1.4 rad from scan to scan."""
    file, corrected = corrected_log(real_data, 130, tmp_path)
    [path] = transect.run("LaserSlam", file)["trajectory"].values
    assert len(path) == len(corrected)
    headings = 2 * np.arctan2(path.orientations[:, 2], path.orientations[:, 3])
    turns, expected = (np.angle(np.exp(1j * np.diff(each))) for each in (headings, corrected[:, 2]))
    assert np.abs(np.angle(np.exp(1j * (turns - expected)))).max() < 0.3
    steps, told = (
        np.linalg.norm(np.diff(each[:, :2], axis=0), axis=1) for each in (path.positions, corrected)
    )
    assert np.abs(steps - told).max() < 0.3

"""LaserSlam in simulated corridors: loop closures, localisation, determinism, reports of bad maps."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.algorithms.slam.rooms import ROUND, SCAN_BEAMS, block, odometry_of, record, row, walk
from tests.commands import transect as command_line

import transect
from transect.algorithms.registration.scan_matching import flatten_pose
from transect.engine import Run
from transect.errors import UsageError
from transect.formats import write
from transect.nodes._attempts import lower_bound
from transect.recording import Recording, arrow
from transect.recording.place_maps import read_map, write_map
from transect.types import PlaceMap, Trajectory

pytest.importorskip("gtsam")
SET = {"places.min_loop_path": 6.0}


@cache
def driven() -> np.ndarray:
    return walk([*ROUND, (3.0, 0.0)], step=0.15)


@cache
def mapped() -> Run:
    return transect.run("LaserSlam", record(block(), driven()), set=SET)


def errors(path: Trajectory, truth: np.ndarray) -> np.ndarray:
    """Return the error of each position, after alignment of the first poses."""
    c, s = np.cos(truth[0, 2]), np.sin(truth[0, 2])
    placed = path.positions[:, :2] @ np.array([[c, s], [-s, c]]) + truth[0, :2]
    return np.linalg.norm(placed - truth[:, :2], axis=1)


def test_a_loop_around_a_block_is_closed() -> None:
    run, truth = mapped(), driven()
    [path], [places] = run["trajectory"].values, run["map"].values
    wheels = np.linalg.norm(odometry_of(truth)[:, :2] - truth[:, :2], axis=1)
    assert isinstance(places, PlaceMap)
    assert "loop" in places.edges.what
    assert "doubted" not in places.edges.what
    assert np.sqrt(np.mean(errors(path, truth) ** 2)) < 0.1 * np.sqrt(np.mean(wheels**2))
    assert errors(path, truth).max() < 0.15
    loops = [n for n, what in enumerate(places.edges.what) if what == "loop"]
    at = {int(t): truth[n] for n, t in enumerate(path.t_ns)}
    for n in loops:
        a, b = (at[int(places.t_ns[k])] for k in (places.edges.a[n], places.edges.b[n]))
        c, s = np.cos(a[2]), np.sin(a[2])
        x, y, turn = b - a
        measured = flatten_pose(places.edges.T_a_b[n])
        assert np.hypot(measured[0] - c * x - s * y, measured[1] - c * y + s * x) < 0.1
        assert abs((measured[2] - turn + np.pi) % (2 * np.pi) - np.pi) < 0.06


def test_scans_suffice_without_odometry() -> None:
    truth = walk([(0.0, 0.0), (8.0, 0.0)], step=0.15)
    run = transect.run("LaserSlam", record(block(), truth, odometry=False), set=SET)
    [path] = run["trajectory"].values
    assert errors(path, truth).max() < 0.2


def test_a_second_drive_is_localised_and_two_jobs_give_the_same_result(tmp_path: Path) -> None:
    recording = record(block(), driven())
    made = transect.run("LaserSlam", recording, set=SET, out=tmp_path / "map", jobs=2)
    assert made.digest == mapped().digest
    kept = read_map(tmp_path / "map", "LaserSlam")
    again = walk([(5.0, 0.2), (12.0, 0.2), (12.0, 4.0)], step=0.15)
    there = record(block(), again, seed=5, start_ns=10**12)
    run = transect.run("LaserSlam", there, set=SET, map=tmp_path / "map")
    assert run.config["map"]["kind"] == "LaserSlam"
    located = np.array(run["located"].values)
    assert located[len(located) // 3 :].all()
    [path] = run["trajectory"].values
    truth = again[located]
    assert np.linalg.norm(path.positions[:, :2] - truth[:, :2], axis=1).max() < 0.2
    assert "map" not in [name for name, output in run.outputs.items() if len(output)]
    assert any(each.text.startswith("FOUND") for each in run.conclusions)
    both = transect.run("LaserSlam", there, set=SET, map=tmp_path / "map", extend=True)
    [joined] = both["map"].values
    assert sorted(set(joined.session.tolist())) == [0, 1]
    assert len(joined) > len(kept)


def test_a_robot_at_another_place_is_reported_as_lost(tmp_path: Path) -> None:
    transect.run("LaserSlam", record(block(), driven()[:60]), set=SET, out=tmp_path / "map")
    other = record(block(seed=8, niches=30) * 1.9, walk([(8.0, -0.2), (12.0, 0.0)], step=0.2))
    run = transect.run("LaserSlam", other, set=SET, map=tmp_path / "map")
    assert not any(run["located"].values)
    assert any(each.bad and each.text.startswith("LOST") for each in run.conclusions)
    with pytest.raises(UsageError, match="no map"):
        transect.run("LaserSlam", other, map=tmp_path / "nothing")


def test_a_kidnapped_robot_is_relocalised_in_the_whole_map(tmp_path: Path) -> None:
    write_map(mapped()["map"].values[0], tmp_path / "map")
    ways = [walk([(4.0, 0.1), (7.0, 0.1)], step=0.15), walk([(8.0, 8.1), (2.0, 8.1)], step=0.15)]
    parts = [record(block(), way, seed=n, start_ns=10**12 * (n + 1)) for n, way in enumerate(ways)]
    run = transect.run("LaserSlam", transect.join(parts), set=SET, map=tmp_path / "map")
    located, truth = np.array(run["located"].values), np.concatenate(ways)
    assert located[len(ways[0]) - 1]
    assert not located[len(ways[0])]
    assert located[-10:].all()
    [path] = run["trajectory"].values
    assert np.linalg.norm(path.positions[:, :2] - truth[located, :2], axis=1).max() < 0.2


def test_a_lost_robot_among_equal_houses_is_reported_as_lost(tmp_path: Path) -> None:
    way = walk([(-4.0, 0.0), (20.0, 0.0)], step=0.25)
    write_map(transect.run("LaserSlam", record(row(), way))["map"].values[0], tmp_path / "map")
    again = record(row(), walk([(13.8, 0.2), (18.8, 0.2)], step=0.25), seed=4)
    run = transect.run("LaserSlam", again, map=tmp_path / "map")
    assert not any(run["located"].values)


# Logs with a noisy clock, pauses, and scans that do not match


def restamped(recording: Recording, stamps: list[np.ndarray]) -> Recording:
    """Return a recording with other sample times; the original ones become log times."""
    streams = []
    for stream, t_ns in zip(recording.streams, stamps, strict=True):
        table = stream.table.set_column(0, stream.table.schema.field(0), arrow.from_numpy(t_ns))
        field = arrow.field_with_unit("log_ns", arrow.from_numpy(t_ns).type, "ns")
        streams.append(stream.replace(source=table.add_column(1, field, arrow.from_numpy(stream.t_ns))))
    return recording.replace(streams=tuple(streams))


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a CARMEN log of a drive, and a copy with 0.5 s of noise in its stamps."""
    folder = tmp_path_factory.mktemp("logs")
    sound = record(block(), walk([(0.0, 0.0), (9.0, 0.0)], step=0.15))
    random = np.random.default_rng(2)
    stamps = [stream.t_ns + random.normal(0, 5e8, len(stream)).astype(np.int64) for stream in sound.streams]
    for name, recording in (("sound", restamped(sound, [s.t_ns for s in sound.streams])),
                            ("noisy", restamped(sound, stamps))):  # fmt: skip
        write(recording, folder / f"{name}.clf", "carmen")
    return folder / "sound.clf", folder / "noisy.clf"


def digest_of(output: str) -> str:
    return next(line.split()[1] for line in output.splitlines() if line.startswith("digest "))


def test_a_noisy_clock_does_not_change_the_map(logs: tuple[Path, Path], tmp_path: Path) -> None:
    sound, noisy = (command_line("run", "LaserSlam", log) for log in logs)
    assert sound.returncode == noisy.returncode == 0, noisy.stderr
    assert digest_of(sound.stdout) == digest_of(noisy.stdout)
    assert "played by log times" in noisy.stdout
    assert "played by log times" not in sound.stdout
    assert "sessions" not in noisy.stdout
    assert digest_of(command_line("run", "LaserSlam", logs[1], "--clock", "log").stdout) == digest_of(
        noisy.stdout
    )


def lines_of_result(output: str) -> list[str]:
    """Return what is printed after the wiring."""
    return output.split("\n\n", 2)[2].splitlines()


def test_a_map_of_unmatched_scans_is_a_failed_result(tmp_path: Path) -> None:
    way = walk([(0.0, 0.0), (9.0, 0.0)], step=0.15)
    random = np.random.default_rng(4)
    sound = record(block(), way)
    scan = sound["scan"]
    nonsense = arrow.ragged([random.uniform(1.0, 9.0, SCAN_BEAMS) for _ in way])
    at = scan.table.column_names.index("ranges")
    table = scan.table.set_column(at, scan.table.schema.field(at), arrow.column(nonsense))
    write(sound.replace(streams=(scan.replace(source=table), sound["wheels"])), tmp_path / "day", "parquet")
    done = command_line("run", "LaserSlam", tmp_path / "day", "-o", tmp_path / "run")
    assert done.returncode == 4
    first = lines_of_result(done.stdout)[0]
    assert first.startswith("BAD: ")
    assert "scans did not match" in first
    assert (tmp_path / "run" / "map" / "map.json").is_file()  # it is written all the same


@pytest.mark.parametrize(("every", "code"), [(6, 4), (60, 0)])
def test_a_map_that_many_scans_contradict_is_a_failed_result(tmp_path: Path, every: int, code: int) -> None:
    """Good maps of real logs have 0.4 to 0.8 % of such scans, a wrong one 8.6 %."""
    way = walk([(0.0, 0.0), (9.0, 0.0)], step=0.075)
    random = np.random.default_rng(4)
    sound = record(block(), way)
    scan = sound["scan"]
    ranges = list(np.vstack(scan["ranges"]))
    ranges[every - 1 :: every] = [random.uniform(1.0, 9.0, SCAN_BEAMS) for _ in ranges[every - 1 :: every]]
    at = scan.table.column_names.index("ranges")
    table = scan.table.set_column(at, scan.table.schema.field(at), arrow.column(arrow.ragged(ranges)))
    write(sound.replace(streams=(scan.replace(source=table), sound["wheels"])), tmp_path / "day", "parquet")
    done = command_line("run", "LaserSlam", tmp_path / "day")
    assert done.returncode == code
    assert ("contradict the map" in lines_of_result(done.stdout)[0]) is (code == 4)


@pytest.mark.parametrize(("count", "total"), [(1, 10), (6, 61), (90, 1000)])
def test_the_lower_bound_is_exceeded_by_chance_in_one_percent(count: int, total: int) -> None:
    from scipy.stats import binom

    assert binom.sf(count - 1, total, lower_bound(count, total)) == pytest.approx(0.01)
    assert lower_bound(0, total) == 0.0


def test_a_map_with_noisy_stamps_is_a_failed_result(logs: tuple[Path, Path], tmp_path: Path) -> None:
    done = command_line("run", "LaserSlam", logs[1], "--clock", "sample", "-o", tmp_path / "run")
    assert done.returncode == 4
    assert lines_of_result(done.stdout)[0].startswith("BAD: played by stamps that are not in order")
    assert command_line("run", "LaserSlam", logs[0], "--clock", "sample").returncode == 0


def test_the_largest_failed_ratio_is_a_parameter(logs: tuple[Path, Path]) -> None:
    run = transect.run("LaserSlam", logs[0], set={"places.max_failed_ratio": 0.0, "places.max_range": 1.3})
    assert [each.text for each in run.conclusions if each.bad]


def paused(metres: float) -> Recording:
    """Return a drive with a pause of the recorder of half a minute, in which the robot moves some metres."""
    one, two = walk([(0.0, 0.0), (4.0, 0.0)], step=0.15), walk([(4.0 + metres, 0.0), (8.0, 0.0)], step=0.15)
    sound = record(block(), np.concatenate([one, two]))
    late = np.where(np.arange(len(one) + len(two)) >= len(one), 30 * 10**9, 0)
    streams = []
    for stream in sound.streams:
        table = stream.table.set_column(0, stream.table.schema.field(0), arrow.from_numpy(stream.t_ns + late))
        streams.append(stream.replace(source=table))
    return sound.replace(streams=tuple(streams))


@pytest.mark.parametrize("metres", [0.0, 0.5])
def test_a_pause_bridged_by_odometry_starts_no_session(metres: float) -> None:
    [places] = transect.run("LaserSlam", paused(metres))["map"].values
    assert set(places.session.tolist()) == {0}
    assert np.hypot(*places.poses[-1][:2, 3] - (8.0, 0.0)) < 0.3


def test_the_largest_bridged_distance_is_a_parameter() -> None:
    [places] = transect.run("LaserSlam", paused(0.5), set={"places.max_bridged_distance": 0.3})["map"].values
    assert set(places.session.tolist()) == {0, 1}


def test_a_robot_carried_in_a_pause_starts_a_session() -> None:
    """The wheels do not turn while it is carried to the other side of the block."""
    ways = [walk([(4.0, 0.1), (7.0, 0.1)], step=0.15), walk([(8.0, 8.1), (5.0, 8.1)], step=0.15)]
    parts = [record(block(), way, seed=n, start_ns=10**12 * (n + 1)) for n, way in enumerate(ways)]
    [places] = transect.run("LaserSlam", transect.join(parts))["map"].values
    assert set(places.session.tolist()) == {0, 1}

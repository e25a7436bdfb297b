"""Same input, same output: hash seed, locale, time zone, chunks, threads, and the traps of libraries.

Run as a script it prints what its tests compare: ``python test_determinism.py NAME [JOBS ...]``.
"""

from __future__ import annotations

import json
import locale
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping
from itertools import cycle
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.engine import Batch, Latest, Node, node
from transect.engine.compounds import Compound, compound
from transect.engine.output_files import Output, PortWriter
from transect.engine.replay import Replay
from transect.engine.runs import run
from transect.recording import Recording
from transect.recording.stream import stream_of_values
from transect.types import Imu, Pose, Twist

if TYPE_CHECKING:
    import pytest  # costs the script more time than all its runs

T0_NS = 1_600_000_000_000_000_000


def recording(seconds: float) -> Recording:
    """An IMU at 100 Hz and a speed at 10 Hz, some of their stamps equal."""
    n, m = round(seconds * 100), round(seconds * 10)
    angles = np.arange(n) * 0.37
    columns = {f"{kind}_{axis}": np.sin(angles + k)
               for k, (kind, axis) in enumerate((a, b) for a in ("acc", "gyro") for b in "xyz")}  # fmt: skip
    imu = stream_of_values("imu", T0_NS + np.arange(n) * 10_000_000, columns, type=Imu)
    speeds = {"vx": np.linspace(0, 1, m), "vy": np.zeros(m), "vz": np.zeros(m)}
    return Recording(
        "made", (imu, stream_of_values("wheels", T0_NS + np.arange(m) * 100_000_000, speeds, type=Twist))
    )


@node
def names(imu: Imu) -> dict:
    """Numbers and letters as text, in a mapping: what locales and hash seeds may change."""
    return {f"İi{value:.3f}".casefold(): value for value in imu.acceleration.tolist()}


class Heading(Node):
    """Integrates the turn rate."""

    def reset(self) -> None:
        self.yaw = 0.0

    def process(self, imu: Imu) -> float:
        self.yaw += 0.01 * float(imu.angular_velocity[2])
        return self.yaw


class Track(Node):
    """Dead reckoning."""

    def reset(self) -> None:
        self.position = np.zeros(3)

    def process(self, twist: Twist, yaw: Latest[float], all: Batch[float]) -> Pose:
        step = 0.1 * float(twist.velocity[0]) * np.array([np.cos(yaw), np.sin(yaw), len(all)])
        self.position = self.position + step + self.ctx.rng.normal(scale=1e-3, size=3)
        return Pose(self.position, np.array([0, 0, np.sin(yaw / 2), np.cos(yaw / 2)]), t_ns=self.ctx.time)


def odometry() -> Compound:
    return compound(
        "Odometry", {"names": names, "heading": Heading, "track": Track},
        ["imu -> heading.imu", "imu -> names.imu", "twist -> track.twist", "heading.out -> track.yaw",
         "heading.out -> track.all", "track.out -> pose", "names.out -> names"],
    )  # fmt: skip


class LongSums(Node):
    """Trap 2: these give other bits with two OpenBLAS threads than with one."""

    def reset(self) -> None:
        rng = np.random.default_rng(0)
        self.long, self.square = rng.normal(size=400_001), rng.normal(size=(300, 300))
        self.start = np.linalg.solve(self.square, self.square[0])

    def process(self, twist: Twist) -> np.ndarray:
        right = self.square[:, :3] + float(twist.velocity[0])
        solved = np.linalg.solve(self.square, right)
        fitted = np.linalg.lstsq(self.square[:, :200], right, rcond=None)[0]
        return np.concatenate([[np.dot(self.long, self.long)], self.start, solved.ravel(), fitted.ravel()])


@node
def threads(twist: Twist) -> list:
    """How many threads libraries would use, as a node sees it."""
    return sorted(threads_now())


def threads_now() -> set[int]:
    """Of every library that has threads, called from this thread."""
    from threadpoolctl import threadpool_info

    return {pool["num_threads"] for pool in threadpool_info()}


class Clusters(Node):
    """Trap 3: `cv2.kmeans` advances a hidden random generator."""

    def reset(self) -> None:
        self.points = np.random.default_rng(0).random((300, 3)).astype(np.float32)

    def process(self, twist: Twist) -> np.ndarray:
        return kmeans(self.points)

    def finish(self) -> np.ndarray:
        return kmeans(self.points[::2])


def kmeans(points: np.ndarray) -> np.ndarray:
    """Centres from random starts, far from converged."""
    import cv2

    stop = (cv2.TERM_CRITERIA_MAX_ITER, 2, 0.0)
    return cv2.kmeans(points, 8, None, stop, 1, cv2.KMEANS_RANDOM_CENTERS)[2]


@node
def matches(twist: Twist) -> np.ndarray:
    """Trap 3: so does FLANN's locality-sensitive hashing."""
    import cv2

    query, train = np.random.default_rng(1).integers(0, 256, (2, 200, 32), dtype=np.uint8)
    lsh = {"algorithm": 6, "table_number": 4, "key_size": 10, "multi_probe_level": 1}
    found = cv2.FlannBasedMatcher(lsh, {"checks": 32}).match(query, train)
    return np.array([(m.queryIdx, m.trainIdx, m.distance) for m in found])


def side_by_side(**nodes: Any) -> Compound:
    """Nodes that all get the wheels' speed: as many tasks as there are."""
    wires = [f"twist -> {name}.twist" for name in nodes] + [f"{name}.out -> {name}_out" for name in nodes]
    return compound("SideBySide", nodes, wires)


COMPOUNDS = {
    "odometry": odometry,
    "blas": lambda: side_by_side(sums=LongSums, threads=threads),
    "opencv": lambda: side_by_side(clusters=Clusters, matches=matches),
}


def digests(made: Compound, jobs: Iterable[int] = (1, 2, 3)) -> set[str]:
    """The digest of a run with each number of jobs."""
    return {run(made, recording(0.5), jobs=n).digest for n in jobs}


def report(name: str, jobs: list[int]) -> dict[str, Any]:
    """What the script prints."""
    if name == "seed":
        return {"centres": centres_of_calls()}
    locale.setlocale(locale.LC_ALL, "")
    made = COMPOUNDS[name]()
    said: dict[str, Any] = {"cv2 was loaded": "cv2" in sys.modules}
    result = run(made, recording(0.5))
    said["ports"] = dict(result.ports)
    said["digests"] = sorted({result.digest, *digests(made, jobs)})
    if name == "odometry":
        said["pose.tum"] = written(result["pose"])
    if name == "blas":
        said["threads"] = result["threads_out"].values
    return said


def centres_of_calls() -> list[int]:
    """Which earlier call of `kmeans` each one equals: two after loading, in a new thread, and seeded."""
    points = np.random.default_rng(0).random((300, 3)).astype(np.float32)
    found = [kmeans(points).tobytes(), kmeans(points).tobytes()]
    thread = threading.Thread(target=lambda: found.append(kmeans(points).tobytes()))
    thread.start()
    thread.join()
    sys.modules["cv2"].setRNGSeed(0)
    found.append(kmeans(points).tobytes())
    return [found.index(each) for each in found]


def written(poses: Output) -> str:
    """The file of an output port, as a run writes it."""
    with tempfile.TemporaryDirectory() as folder:
        writer = PortWriter(Path(folder), "pose", Pose, "utc")
        for t_ns, pose in poses:
            writer.add(t_ns, pose)
        return writer.close()[0].read_text("utf-8")


def in_children(*calls: tuple[list[str], Mapping[str, str]]) -> list[dict[str, Any]]:
    """Run this file as a script, once for each (arguments, environment), all at the same time."""
    children = [
        subprocess.Popen(
            [sys.executable, __file__, *arguments], env={**os.environ, **environment},
            stdout=subprocess.PIPE, text=True, encoding="utf-8",
        )
        for arguments, environment in calls
    ]  # fmt: skip
    said = [child.communicate(timeout=300)[0] for child in children]
    assert [child.returncode for child in children] == [0] * len(children)
    return [json.loads(text) for text in said]


def installed_locales() -> list[str]:
    """Up to two that write numbers or letters in their own way, where there are any; C and C.UTF-8."""
    listed = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout.split()
    special = [name for name in listed if name.startswith(("de_DE", "tr_TR", "fr_FR", "ar_", "hi_IN"))]
    return [*special[:2], "C", "C.UTF-8"]


def test_hash_seed_locale_time_zone_chunks_and_workers_change_neither_digest_nor_files():
    zones = ["Asia/Kathmandu", "America/St_Johns", "Pacific/Apia"]
    settings = [
        {"PYTHONHASHSEED": seed, "LC_ALL": name, "TZ": zone}
        for seed, name, zone in zip(["0", "1", "random"], cycle(installed_locales()), zones, strict=False)
    ]
    said = in_children(*((["odometry", "2", "3"], setting) for setting in settings))
    here = {run(odometry(), recording(0.5)).digest}
    for chunk in (1, 3, 100):
        replay = Replay(odometry(), recording(0.5), chunk=chunk, jobs=1 + chunk % 2)
        replay.play()
        here.add(replay.flow.digest)
    assert {tuple(each["digests"]) for each in said} == {tuple(here)}
    assert len(here) == 1
    assert {each["pose.tum"] for each in said} == {written(run(odometry(), recording(0.5))["pose"])}
    assert run(odometry(), recording(0.6)).digest not in here


@node
def aligns(twist: Twist) -> np.ndarray:
    """Trap 1: `small_gicp` gives other bits each time with two threads; nodes ask for one."""
    import small_gicp

    plane = np.random.default_rng(2).uniform(-5, 5, (3000, 3)) * [1, 1, 0.02]
    target = np.concatenate([plane, plane[:, [2, 0, 1]], plane[:, [1, 2, 0]]])
    moved = target + np.array([0.1 * float(twist.velocity[0]), 0.05, 0.0])
    return small_gicp.align(target, moved, num_threads=1).T_target_source


def test_trap_1_small_gicp_on_one_thread_gives_the_same_bits_however_many_nodes_run_at_once():
    made = side_by_side(one=aligns, other=aligns)
    first = run(made, recording(0.5))
    found = first["one_out"].values[-1]
    np.testing.assert_allclose(found[:2, 3], [-0.1, -0.05], atol=0.02)
    assert digests(made, (1, 2, 2)) == {first.digest}


def test_trap_2_openblas_gives_the_same_bits_for_any_environment():
    two, one = in_children(
        (["blas", "2"], {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}),
        (["blas", "2"], {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}),
    )
    assert two["ports"] == one["ports"]
    assert two["digests"] == one["digests"]
    assert len(one["digests"]) == 1
    assert two["threads"] == [[1]] * 5, "of every library, as nodes see it"


def test_trap_2_openmp_has_one_thread_in_every_worker():
    """OpenMP keeps a number for each thread that calls it: what the main thread was told does not count."""
    import small_gicp  # noqa: F401 - brings an OpenMP library

    result = run(side_by_side(threads=threads, clusters=Clusters), recording(0.5), jobs=2)
    assert result["threads_out"].values == [[1]] * 5


def test_trap_2_libraries_have_their_threads_back_after_a_run():
    import cv2
    from threadpoolctl import threadpool_info

    before = cv2.getNumThreads(), [pool["num_threads"] for pool in threadpool_info()]
    run(side_by_side(clusters=Clusters), recording(0.5))
    assert (cv2.getNumThreads(), [pool["num_threads"] for pool in threadpool_info()]) == before


class ThreadsBefore(Node, passes=2):
    """How many threads there were in `reset` and in the first pass."""

    def reset(self) -> None:
        self.seen = threads_now()

    def process(self, twist: Twist) -> list:
        if self.ctx.pass_index == 0:
            self.seen |= threads_now()
        return sorted(self.seen)


def test_trap_2_reset_and_the_first_of_several_passes_have_one_thread_too():
    result = run(side_by_side(before=ThreadsBefore), recording(0.5))
    assert result["before_out"].values == [[1]] * 5


def test_trap_3_opencv_has_a_hidden_generator_that_stands_at_seed_0_after_loading():
    """What the engine relies on; the second call shows that the trap is there."""
    assert in_children((["seed"], {}))[0]["centres"] == [0, 1, 0, 0], (
        "loaded, called once, in a new thread, seeded"
    )


def test_trap_3_kmeans_and_flann_are_the_same_again_and_on_any_number_of_threads():
    import cv2

    made = COMPOUNDS["opencv"]()
    first = run(made, recording(0.5))
    cv2.setRNGSeed(17)
    assert digests(made) == {first.digest}
    centres = first["clusters_out"].values
    assert len(centres) == 6
    assert len({values.tobytes() for values in centres[:5]}) == 1, "each call begins again"


def test_trap_3_opencv_that_is_loaded_in_the_middle_of_a_run_gives_what_it_gives_loaded_before():
    fresh, threaded = in_children((["opencv"], {}), (["opencv", "2", "3"], {}))
    assert fresh["cv2 was loaded"] is False
    assert fresh["digests"] == threaded["digests"] == [run(COMPOUNDS["opencv"](), recording(0.5)).digest]


def test_trap_3_a_node_may_be_called_while_another_thread_is_still_loading_opencv(
    monkeypatch: pytest.MonkeyPatch,
):
    made = compound("H", {"heading": Heading}, ["imu -> heading.imu", "heading.out -> yaw"])
    replay, expected = Replay(made, recording(0.5)), run(made, recording(0.5)).digest

    def half_loaded(t_ns: int) -> int:
        monkeypatch.setitem(sys.modules, "cv2", ModuleType("cv2"))
        return t_ns + 1_000_000_000

    replay.player.attend(T0_NS + 100_000_000, half_loaded)
    replay.play()
    assert (replay.flow.digest, replay.flow.errors) == (expected, [])


def stereo_pair() -> tuple[np.ndarray, np.ndarray]:
    """Two grey images of 96 x 160, one shifted by 7 pixels."""
    import cv2

    noise = np.random.default_rng(3).integers(0, 256, (96, 190), dtype=np.uint8)
    wide = cv2.GaussianBlur(noise, (5, 5), 1.5)
    return wide[:, 10:170].copy(), wide[:, 17:177].copy()


@node
def disparity(twist: Twist) -> np.ndarray:
    """Semi-global matching."""
    import cv2

    return cv2.StereoSGBM_create(0, 16, 5).compute(*stereo_pair())


@node
def corners(twist: Twist) -> np.ndarray:
    """ORB's descriptors."""
    import cv2

    return cv2.ORB_create(200).detectAndCompute(stereo_pair()[0], None)[1]


@node
def places(twist: Twist) -> np.ndarray:
    """Where a camera is, from points with a fifth of outliers."""
    import cv2

    rng = np.random.default_rng(4)
    points = rng.uniform([-1, -1, 4], [1, 1, 6], (100, 3))
    camera = np.array([[300.0, 0, 80], [0, 300.0, 48], [0, 0, 1]])
    pixels = cv2.projectPoints(points, np.zeros(3), np.zeros(3), camera, None)[0].reshape(-1, 2)
    pixels[::5] += rng.uniform(-40, 40, (20, 2))
    _, turn, shift, inliers = cv2.solvePnPRansac(points, pixels, camera, None)
    return np.concatenate([turn.ravel(), shift.ravel(), inliers.ravel()])


def test_trap_4_disparity_features_and_poses_of_opencv_are_the_same_for_one_and_two_threads():
    made = side_by_side(disparity=disparity, corners=corners, places=places)
    first = run(made, recording(0.5))
    assert np.median(first["disparity_out"].values[0][:, 30:-10]) == 16 * 7
    assert len(first["corners_out"].values[0]) > 20
    assert len(first["places_out"].values[0]) >= 6 + 75
    assert digests(made, (1, 2)) == {first.digest}


if __name__ == "__main__":
    print(json.dumps(report(sys.argv[1], [int(n) for n in sys.argv[2:]])))

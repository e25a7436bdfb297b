"""The Orchestrator on days with faults, beside fixed compounds: trajectories and maps of each day.

Simulated days without satellites. Rosario: wheels slip; cameras are blinded; both, one after the other. Etna:
dust before the lidar; dust, and wheels that slip. Of each way there is the path, and a height map along it,
of the same stereo pairs or scans and with the same verdicts (`--check`). Faults are of severity 1, at the
times of `DRIVES`. A path is judged after the shift and the turn that fit it best to the truth, since an
odometry does not know what is level; for the same reason all are put upright by the true attitudes before
maps are made along them.

The policy was made on the seeds in `LOOKED_AT`; `SEEDS` were run once, for the page. The n-th of them has the
n-th of the `DRIVES`. Days are kept in `TRANSECT_BENCH_DAYS`, if set. Arguments are seeds, and
names of days (`slipping`, ...) if not all are wanted.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import transect
from benchmarks._grounds import (
    MAX_HEIGHT_ERROR_M,
    SCANS,
    STEREO,
    Ground,
    gather_clouds,
    ground_seen,
    map_along,
    trajectory_of,
)
from benchmarks._harness import quality
from benchmarks._in_turn import MAX_ERROR_RATIO, kept, make_in_turn
from transect.engine import Compound, Run
from transect.evaluation.association import associate
from transect.evaluation.trajectory_errors import absolute_error
from transect.geometry import rotations, se3
from transect.products import ProductQuery, ProductStore, open_store
from transect.products.run_products import stream_of
from transect.recording import Recording, Stream
from transect.simulation.day import WorldOptions
from transect.simulation.faults import inject
from transect.types import Trajectory

LOOKED_AT = (
    1, 921, 922, 923, 744599, 213585, 801801, 430046, 895889, 218673, 307011, 396216, 345259, 586796,
    998907, 397978, 281823,
)  # fmt: skip
UNSEEN_SEEDS = (954856, 334108, 753946)
STREAMS = ("Zed/*", "Imu", "Odometry")
LIDAR_STREAMS = ("Lidar", "Gnss/Imu", "Platform/MotorEncoders")
IMAGE_SCALE, LIDAR_SCALE = 0.3, 0.25
FILTER, BATCH = "PoseFusion/ErrorStateFilter", "PoseFusion/BatchSmoother"
EYES, LIDAR = "VisualOdometry/KltKeyframes", "LidarOdometry/VoxelMap"
OTHER_EYES = ("VisualOdometry/KltFrameToFrame",)
OTHER_LIDAR = ("LidarOdometry/PointToPlane", "PoseFusion/LidarErrorStateFilter")
SLIP, DUST = "wheel_slip", "dust"
FIELD, CRATER = ("slipping", "blinded", "both"), ("dusty", "dusty and slipping")
"""Days on Rosario's field, and on Etna."""


@dataclass(frozen=True)
class Drive:
    """Seconds of a day, where it starts, when wheels slip, when and how cameras are blinded.

    `dust` is when there is dust on Etna, on days of 30 s, where wheels slip from 10 to 16 s.
    """

    seconds: float
    start: str
    slip: tuple[str, str]
    blind: tuple[str, str]
    blinded_by: str
    dust: tuple[str, str]


DRIVES = (
    Drive(20.0, "turn", ("+6s", "+11s"), ("+14s", "+19s"), "overexposure", ("+8s", "+20s")),
    Drive(17.0, "row", ("+10s", "+14s"), ("+4s", "+8s"), "haze", ("+4s", "+14s")),
    Drive(24.0, "turn", ("+15s", "+21s"), ("+6s", "+12s"), "overexposure", ("+12s", "+26s")),
)


def main(seeds: Sequence[int] = UNSEEN_SEEDS, wanted: Sequence[str] = ()) -> None:
    with threadpool_limits(1), tempfile.TemporaryDirectory() as made:
        folder = Path(os.environ.get("TRANSECT_BENCH_DAYS") or made)
        for seed in seeds:
            for names, make_days in ((FIELD, field_days), (CRATER, crater_days)):
                if chosen := [name for name in names if not wanted or name in wanted]:
                    site = make_days(folder, seed, drive_of(seed))
                    for name in chosen:
                        bench_day(f"{name}, seed {seed}", site.days[name], site)


def drive_of(seed: int) -> Drive:
    """Return the drive of a seed: the first one of a seed that was looked at."""
    numbers = {each: number for seeds in (LOOKED_AT[1:], UNSEEN_SEEDS) for number, each in enumerate(seeds)}
    return DRIVES[numbers.get(seed, 0) % len(DRIVES)]


@dataclass(frozen=True)
class Site:
    """Days of one drive, what they are without faults, and what can be used there.

    Attributes
    ----------
    witness : str
        The odometry by cameras or lidar that is also a witness of what wheels do.
    others : tuple of str
        Further fixed compounds.
    clouds : Compound
        What the clouds of a map come from.
    ground : Ground
    """

    clear: Recording
    days: dict[str, Recording]
    witness: str
    others: tuple[str, ...]
    clouds: Compound
    ground: Ground

    @property
    def truth(self) -> Trajectory:
        """Of the body."""
        return trajectory_of(self.clear["truth/trajectory"])


def field_days(folder: Path, seed: int, drive: Drive) -> Site:
    """Three days of one drive: wheels that slip, cameras that are blinded, and both."""
    conditions = {"start": drive.start}
    clear = kept(folder, "rosario", WorldOptions(drive.seconds, seed, IMAGE_SCALE, STREAMS, conditions))
    slipping = break_down(clear, SLIP, seed, "Odometry", drive.slip)
    blinded, both = (
        break_down(day, drive.blinded_by, seed, "Zed/*", drive.blind) for day in (clear, slipping)
    )
    days = dict(zip(FIELD, (slipping, blinded, both), strict=True))
    return Site(clear, days, EYES, OTHER_EYES, STEREO, ground_seen(clear, STEREO))


def crater_days(folder: Path, seed: int, drive: Drive) -> Site:
    """Two days of one drive: dust in front of the lidar, and additionally wheel slip."""
    clear = kept(folder, "etna", WorldOptions(30.0, seed, LIDAR_SCALE, LIDAR_STREAMS))
    dusty = break_down(clear, DUST, seed, "Lidar", drive.dust)
    slipping = break_down(dusty, SLIP, seed, "Platform/MotorEncoders", ("+10s", "+16s"))
    days = dict(zip(CRATER, (dusty, slipping), strict=True))
    return Site(clear, days, LIDAR, OTHER_LIDAR, SCANS, ground_seen(clear, SCANS))


def break_down(day: Recording, fault: str, seed: int, streams: str, when: tuple[str, str]) -> Recording:
    return inject(day, fault, 1.0, seed, streams=[streams], start=when[0], end=when[1])[0]


def bench_day(name: str, day: Recording, site: Site) -> None:
    """Errors of the path and of the map of each way."""
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "day.gpkg") as store:
        made, plan = make_in_turn("Pose", day, store)
        alternatives: dict[str, Stream] = {}
        for product in store.find(ProductQuery(kind="Pose")):
            run = store.get(product.provenance.parents[0])
            if product.payload.format == "tum" and run.name in (FILTER, site.witness):
                alternatives[run.name] = poses_of(store, product.id)
        ours = trajectory_of(poses_of(store, made.id))
    clouds = gather_clouds(day, site.clouds)
    errors = {
        words: (
            path_error(found, site.truth),
            map_error_along(put_upright(found, site.truth), clouds, day, site),
        )
        for words, found in fixed_paths(day, alternatives, site).items()
    }
    for words, (off, wrong) in errors.items():
        quality(f"{name}: path by {words}", off, "m")
        quality(f"{name}: map by {words}", wrong, "m")
    led_by = plan.mapping_step.compound.name
    guide = (
        body_of(trajectory_of(alternatives[led_by]), alternatives[led_by].child, day)
        if led_by in alternatives
        else ours
    )
    off = path_error(ours, site.truth)
    wrong = map_error_along(put_upright(guide, site.truth), clouds, day, site)
    best = [min(each) for each in zip(*errors.values(), strict=True)]
    quality(f"{name}: path in turn / best fixed", off, "m", at_most=MAX_ERROR_RATIO, peer=best[0])
    quality(f"{name}: map in turn / best fixed", wrong, "m", at_most=MAX_ERROR_RATIO, peer=best[1])


def fixed_paths(day: Recording, alternatives: dict[str, Stream], site: Site) -> dict[str, Trajectory]:
    """Return the path of the body by each fixed compound; those with wheels have the verdicts."""
    witness = alternatives[site.witness].replace(name=f"{site.witness}:pose")
    witnessed = day.replace(streams=(*day.streams, witness))
    found = {name: body_of(trajectory_of(stream), stream.child, day) for name, stream in alternatives.items()}
    for name in (FILTER, BATCH, *site.others):
        run = transect.run(name, witnessed, check=True)
        child = run["pose"].values[0].child if run["pose"].values else ""
        found[f"{name} --check"] = body_of(poses_of_run(run), child, day)
    return found


def body_of(track: Trajectory, child: str, day: Recording) -> Trajectory:
    """Return the path of the robot's body by that of another frame on it."""
    body = day["truth/trajectory"].child
    if track.orientations is None or child == body:
        return track
    T_child_body = day.frames.lookup(child, body)
    turned, places = se3.to_quaternion(
        se3.from_quaternion(track.orientations, track.positions) @ T_child_body
    )
    return Trajectory(track.t_ns, places, turned, child=body)


def path_error(found: Trajectory, truth: Trajectory) -> float:
    """Root mean square of the position error of the body, m, after the shift and turn that fit best."""
    return np.inf if is_lost(found) else absolute_error(associate(truth, found), "se3").statistics.rmse


def is_lost(found: Trajectory) -> bool:
    return np.isfinite(found.positions).all(axis=1).sum() < 20


def map_error_along(found: Trajectory, clouds: Stream, day: Recording, site: Site) -> float:
    """Return the error, m, of a map along a path that is turned about the vertical and shifted to fit."""
    if is_lost(found):
        return MAX_HEIGHT_ERROR_M
    assert found.orientations is not None
    T_world_path = absolute_error(associate(site.truth, found), "yaw").alignment
    bodies = T_world_path @ se3.from_quaternion(found.orientations, found.positions)
    turned, places = se3.to_quaternion(bodies)
    made = map_along(Trajectory(found.t_ns, places, turned), clouds, day)
    return site.ground.error(made) if made else MAX_HEIGHT_ERROR_M


def put_upright(found: Trajectory, truth: Trajectory) -> Trajectory:
    """Return the poses that are known, turned as a whole by what their attitudes are off on average."""
    if is_lost(found):
        return found
    assert found.orientations is not None
    known = np.isfinite(found.positions).all(axis=1)
    track = Trajectory(found.t_ns[known], found.positions[known], found.orientations[known])
    pairs = associate(truth, track)
    assert pairs.reference.orientations is not None
    assert pairs.estimate.orientations is not None
    off = rotations.multiply(pairs.reference.orientations, rotations.conjugate(pairs.estimate.orientations))
    R = rotations.nearest_rotation(np.mean(rotations.matrix_from_quaternion(off), axis=0))
    upright = se3.from_matrix(R, np.zeros(3)) @ se3.from_quaternion(
        found.orientations[known], track.positions
    )
    turned, places = se3.to_quaternion(upright)
    return Trajectory(track.t_ns, places, turned)


def poses_of(store: ProductStore, identifier: str) -> Stream:
    return stream_of(store.get(identifier), store.content(identifier), "pose")


def poses_of_run(run: Run) -> Trajectory:
    poses = run["pose"].values
    if not poses:
        return Trajectory(np.empty(0, np.int64), np.empty((0, 3)))
    return Trajectory(
        np.array([pose.t_ns for pose in poses]),
        np.stack([pose.position for pose in poses]),
        np.stack([pose.orientation for pose in poses]),
    )


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[1:] if each.isdigit()]
    main(numbers or UNSEEN_SEEDS, [each for each in sys.argv[1:] if not each.isdigit()])

"""Planar lasers and a radar on a vehicle as clouds in a fixed frame, each beam placed at its own time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.clouds.voxels import VoxelSums
from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.base.timelines import NameTimeline
from transect.engine import Batch, Node, outputs, param
from transect.engine.wiring import WiringError
from transect.errors import UsageError
from transect.recording import FrameTree, Robot
from transect.robots import load
from transect.robots.beams import BeamSamples, Gate, beams_from_scans, transform_beams
from transect.robots.fmcw_radar import find_peaks
from transect.types import LaserScan, Odometry, PointCloud, Pose, RadarSpectrum, RigidBodyState, Twist

from .body_poses import MotionSample, PoseBuffer, PoseIntegrator

Measurement = LaserScan | RadarSpectrum
M = TypeVar("M", LaserScan, RadarSpectrum)
BeamPlacement = Callable[[BeamSamples, str], Floats]
"""Takes beams and a sensor's frame, and returns points (n, 3) in the fixed frame, NaN without a pose."""
LASERS = ("scan", "horizontal", "port", "starboard", "vertical")
SENSORS = (*LASERS, "spectrum")
LASER, RADAR, BOTH = "laser", "radar", "laser+radar"


@outputs
class Assembled:
    """Downsampled returns of lasers and radar, when the inputs end."""

    # Of the lasers: `count` is the number of returns of a point. If checks rejected a laser in the run,
    # `score` is the mean integrity of the returns. If `use` selects sensors by time, `source` is 0 for lasers
    # and 1 for the radar.
    map: PointCloud | None = None
    # The strongest peak of each spectrum, with `intensity` as the radar scales it.
    radar: PointCloud | None = None


class LaserAssembly(Node, interface=True, every=0.1):
    """Clouds of all returns in a fixed frame; any of the sensors may be missing.

    Beams without a return, ranges beyond the sensors' limits and points without a pose are dropped.

    Inputs
    ------
    scan
        Of lasers with any name; the four that follow are those of a vehicle that names them so.
    nav, odometry, pose, twist
        Motion of the vehicle; one of them is enough, and recorded frames need none.
    """

    robot: str = param(
        "",
        doc="robot with the range limits and mirror rates: a name, or a YAML file like argo.yaml; if empty,"
        " the robot of the recording, or the limits of the scans",
    )
    voxel: float = param(0.1, gt=0, unit="m", doc="voxel size to which the clouds are downsampled")
    false_alarm: float = param(
        1e-3,
        gt=0,
        le=1,
        doc="false alarm probability of a radar echo; 1: the strongest peak of every spectrum",
    )
    use: str = param(
        "",
        doc="sensor of the map by time: `laser; TIME_NS radar; ...`, or laser+radar; if empty,"
        " lasers make it, and the radar one of its own",
    )
    min_placed_ratio: float = param(
        0.5, ge=0, le=1, doc="smallest ratio of returns with a pose in a map that can be trusted"
    )

    def reset(self) -> None:
        self.schedule = NameTimeline.parse(self.use, (LASER, RADAR, BOTH)) if self.use else None
        self.lasers, self.radar = VoxelSums(self.voxel), VoxelSums(self.voxel)
        self.frame = ""
        self.return_count = self.placed_count = 0
        self.assumed: dict[str, None] = {}
        self.ports: dict[str, str] = {}

    def ready(self) -> None:
        """Refuse a recording without laser and radar."""
        if not any(map(self.ctx.is_fed, SENSORS)):
            raise WiringError(
                "there is no laser and no radar to make a map of",
                why="no stream of LaserScan or RadarSpectrum feeds an input",
                hint="transect info lists the streams; clouds of a 3D lidar are for LidarOdometry",
            )

    def process(
        self,
        horizontal: Batch[LaserScan] = (),
        port: Batch[LaserScan] = (),
        starboard: Batch[LaserScan] = (),
        vertical: Batch[LaserScan] = (),
        spectrum: Batch[RadarSpectrum] = (),
        nav: Batch[RigidBodyState] = (),
        scan: Batch[LaserScan] = (),
        odometry: Batch[Odometry] = (),
        pose: Batch[Pose] = (),
        twist: Batch[Twist] = (),
    ) -> Assembled | None:
        batches = zip(LASERS, (scan, horizontal, port, starboard, vertical), strict=True)
        scans = [each for name, batch in batches for each in self._trusted(name, batch)]
        self.collect(scans, spectrum, [*nav, *odometry, *pose, *twist])

    def _trusted(self, port: str, scans: Sequence[LaserScan]) -> list[LaserScan]:
        """Return the scans of an input, without those of a laser that is BAD while others are not."""
        others = [name for name in LASERS if name != port]
        self.ports.update({each.frame: port for each in scans})
        return [each for each in scans if not self.ctx.is_rejected(port, each.t_ns, others)]

    def collect(
        self, scans: list[LaserScan], spectra: Sequence[RadarSpectrum], path: Sequence[MotionSample]
    ) -> None:
        """Add new measurements, and place those whose poses are known."""
        raise NotImplementedError

    def finish(self) -> Assembled | None:
        """Return the clouds."""
        if self.return_count:
            ratio = self.placed_count / self.return_count
            summary = f"{self.placed_count} of {self.return_count} returns are placed ({ratio:.1%})"
            bad = self.placed_count < self.min_placed_ratio * self.return_count
            self.ctx.conclude(f"{summary}, in the frame {self.frame}" if self.frame else summary, bad=bad)
        for assumption in self.assumed:
            self.ctx.conclude(assumption)
        lasers = self._cloud(self.lasers, LASER, any(map(self.ctx.is_fed, LASERS)), "score")
        radar = self._cloud(self.radar, RADAR, self.ctx.is_fed("spectrum"), "intensity")
        return Assembled(lasers, radar) if self.schedule is None else Assembled(_join(lasers, radar), radar)

    def _cloud(self, sums: VoxelSums, sensor: str, fed: bool, value: str) -> PointCloud | None:
        count, means = sums.means()
        if not len(count):
            return self.ctx.skip(
                f"no return of the {sensor} could be placed" if fed else f"there is no {sensor}"
            )
        fields: dict[str, NDArray[np.generic]] = {"count": count}
        if value != "score" or means[:, 3].min() < 1.0:
            fields[value] = means[:, 3].astype(np.float32)
        return PointCloud(means[:, :3], fields, frame=self.frame)

    @property
    def robot_model(self) -> Robot | None:
        """The robot whose limits and rates are used."""
        return _load_robot(self.robot) if self.robot else self.ctx.robot

    def add(
        self, scans: Sequence[LaserScan], spectra: Sequence[RadarSpectrum], place_beams: BeamPlacement
    ) -> None:
        """Add measurements with known poses."""
        robot_model = self.robot_model
        scans, spectra = self._scheduled(LASER, scans), self._scheduled(RADAR, spectra)
        for scan in self._with_angles(scans):
            points = self._count_returns(place_beams(_beams_of_scan(scan, robot_model), scan.frame))
            self.lasers.add(points, np.full((len(points), 1), self._score(scan)))
        if spectra:
            beams = _beams_of_spectra(spectra, _gate(robot_model, "radar"), self.false_alarm)
            self.radar.add(
                self._count_returns(place_beams(beams, spectra[0].frame)), beams.intensity[:, None]
            )

    def _scheduled(self, sensor: str, measured: Sequence[M]) -> list[M]:
        """Return measurements of the times in which the sensor is used."""
        schedule = self.schedule
        return [each for each in measured if schedule is None or sensor in schedule.at(each.t_ns).split("+")]

    def _score(self, scan: LaserScan) -> float:
        """Return the integrity score of the laser of a scan at its time; 1 if unknown."""
        verdict = self.ctx.integrity(self.ports[scan.frame], scan.t_ns) if scan.frame in self.ports else None
        return 1.0 if verdict is None or verdict.score is None else verdict.score

    def _with_angles(self, scans: Sequence[LaserScan]) -> list[LaserScan]:
        """Return scans with beam directions; report what the others lack."""
        found: list[LaserScan] = []
        for scan in scans:
            angles = {"start_angle": scan.start_angle, "angle_increment": scan.angle_increment}
            missing = [name for name, angle in angles.items() if not np.isfinite(angle)]
            if not missing:
                found.append(scan)
                continue
            laser, missing_text = scan.frame or "a laser", " and no ".join(missing)
            keys = ", ".join(f"{name}: {{value: DEGREES, unit: deg}}" for name in missing)
            self.assumed[
                f"scans of {laser} are ignored: they have no {missing_text}, so the direction of their "
                f"beams is unknown. In recording.yaml add to the stream's columns: {keys}"
            ] = None
        return found

    def _count_returns(self, points: Floats) -> Floats:
        self.return_count += len(points)
        self.placed_count += int(np.count_nonzero(np.isfinite(points).all(axis=1)))
        return points


class RecordedFrames(LaserAssembly):
    """Placement by the frames of the recording, in which the vehicle moves."""

    target: str = param("", doc="name of the fixed frame; if empty, the root of all others")

    def ready(self) -> None:
        """Refuse a recording whose frames do not determine the poses of its sensors."""
        super().ready()
        names = [name for port in SENSORS for name in self.ctx.frames_of(port)]
        errors = [why for name in dict.fromkeys(names) if (why := self._placement_error(name))]
        if errors and len(errors) == len(set(names)):
            raise WiringError(
                "the frames of the recording do not determine the poses of the sensors",
                why="; ".join(errors),
                hint="connect the motion of the vehicle: --wire odometry=, nav=, pose= or twist=",
            )

    def _placement_error(self, sensor: str) -> str:
        """Return why a sensor cannot be placed, an empty string if it can."""
        frames, label = self.ctx.frames, sensor or "the sensor's frame"
        if sensor not in frames:
            return f"{label} is not among them" if len(frames) else "there are none"
        ancestors = frames.ancestry(sensor)
        if self.target:
            return "" if self.target in frames else f"{self.target} is not among them"
        moving = {edge.child for edge in frames.edges if edge.moving}
        return "" if moving.intersection(ancestors) else f"nothing moves between {sensor} and {ancestors[-1]}"

    def collect(
        self, scans: list[LaserScan], spectra: Sequence[RadarSpectrum], path: Sequence[MotionSample]
    ) -> None:
        frames = self.ctx.frames
        self.frame = self.frame or self.target
        if not self.frame:
            known = [each.frame for each in (*scans, *spectra) if each.frame in frames]
            self.frame = frames.ancestry(known[0])[-1] if known else ""
        self.add(self._connected(scans, frames), self._connected(spectra, frames), self._place_by_frames)

    def _connected(self, measured: Sequence[M], frames: FrameTree) -> list[M]:
        """Return measurements in frames that are connected with the fixed one; report the others."""
        found: list[M] = []
        for each in measured:
            if each.frame in frames and self.frame in frames.ancestry(each.frame):
                found.append(each)
            else:
                self.assumed[f"{each.frame or 'a sensor'} is ignored: no frames lead to {self.frame}"] = None
        return found

    def _place_by_frames(self, beams: BeamSamples, sensor: str) -> Floats:
        return transform_beams(beams, self.ctx.frames, self.frame, sensor)


class NavStates(LaserAssembly):
    """Placement by states, odometry, poses or velocities of the vehicle, for which measurements wait."""

    max_gap: float = param(
        1.0, gt=0, unit="s", doc="largest time between two vehicle states that are interpolated"
    )

    def reset(self) -> None:
        super().reset()
        self.pose_buffer = PoseBuffer(round(self.max_gap * NS), self.assumed)
        self.pose_integrator = PoseIntegrator(self.assumed)
        self.scans: list[LaserScan] = []
        self.spectra: list[RadarSpectrum] = []

    def collect(
        self, scans: list[LaserScan], spectra: Sequence[RadarSpectrum], path: Sequence[MotionSample]
    ) -> None:
        self.scans += scans
        self.spectra += spectra
        first_ns = min((each.t_ns for each in (*self.scans, *self.spectra)), default=self.ctx.time)
        poses = self.pose_integrator.poses(path)
        self.pose_buffer.add(poses, first_ns)
        self.frame = poses[-1].frame or "odom" if poses else self.frame
        pose_ns = poses[-1].t_ns if poses else 0
        self._place(max(pose_ns, self.ctx.time - round(self.max_gap * NS)))

    def finish(self) -> Assembled | None:
        """Return the clouds, with the measurements that still waited."""
        self._place(None)
        return super().finish()

    def _place(self, end_ns: int | None) -> None:
        """Place measurements before a time (ns), or all."""

        def is_due(each: Measurement) -> bool:
            return end_ns is None or _last_beam_ns(each, self.robot_model) <= end_ns

        self.add(list(filter(is_due, self.scans)), list(filter(is_due, self.spectra)), self._place_by_states)
        self.scans = [each for each in self.scans if not is_due(each)]
        self.spectra = [each for each in self.spectra if not is_due(each)]

    def _place_by_states(self, beams: BeamSamples, sensor: str) -> Floats:
        t_ns = int(beams.t_ns.min(initial=self.ctx.time))
        cloud = PointCloud(beams.points, t_ns=t_ns, frame=sensor)
        points = self.pose_buffer.place_points(cloud, beams.t_ns - t_ns, self.ctx.frames)
        return np.full((len(beams), 3), np.nan) if points is None else points


def _join(lasers: PointCloud | None, radar: PointCloud | None) -> PointCloud | None:
    """Return both clouds as one, with `source` 0 for points of lasers and 1 for the radar's."""
    clouds = [(number, cloud) for number, cloud in enumerate((lasers, radar)) if cloud is not None]
    if not clouds:
        return None
    fields = {
        "count": np.concatenate([cloud.fields["count"] for _, cloud in clouds]),
        "source": np.concatenate([np.full(len(cloud), number, np.uint8) for number, cloud in clouds]),
    }
    points = np.concatenate([cloud.points for _, cloud in clouds])
    return PointCloud(points, fields, frame=clouds[0][1].frame)


@cache
def _load_robot(name: str) -> Robot:
    robot = load(name)
    if not {"laser", "radar"} & robot.constants.keys():
        raise UsageError(
            f"the robot {name} has neither laser nor radar", hint="leave the parameter robot empty"
        )
    return robot


def _gate(robot: Robot | None, sensor: str) -> Gate:
    return Gate.of(robot, sensor) if robot and sensor in robot.constants else Gate()


def _mirror_rate(scan: LaserScan, robot: Robot | None) -> float | None:
    """Return revolutions of the mirror per second; None if all beams have the time of the scan."""
    step = scan.time_increment
    if step is not None and step > 0:
        return abs(scan.angle_increment) / (2 * np.pi * step)
    laser = robot.constants.get("laser", {}) if robot else {}
    return float(laser["mirror_rate"]) if step is None and "mirror_rate" in laser else None


def _last_beam_ns(measured: Measurement, robot: Robot | None) -> int:
    """Return the time of the last beam."""
    rate = _mirror_rate(measured, robot) if isinstance(measured, LaserScan) else None
    if rate is None or not isinstance(measured, LaserScan):
        return measured.t_ns
    angle = abs(measured.angle_increment) * max(len(measured.ranges) - 1, 0) / (2 * np.pi)
    return measured.t_ns + round(angle / rate * NS)


def _beams_of_scan(scan: LaserScan, robot: Robot | None) -> BeamSamples:
    """Return the returns of one scan, each with its time."""
    beams = beams_from_scans(
        np.array([scan.t_ns]),
        scan.measured,
        np.array([0, len(scan.ranges)]),
        np.array([scan.start_angle]),
        np.array([scan.angle_increment]),
        mirror_rate=_mirror_rate(scan, robot),
    )
    return beams.where(_gate(robot, "laser").passes(beams.range))


def _beams_of_spectra(spectra: Sequence[RadarSpectrum], gate: Gate, false_alarm: float) -> BeamSamples:
    """Return the strongest peak of each spectrum, if it is significant; all spectra are of one radar."""
    width, offset = spectra[0].bin_width, spectra[0].range_offset
    same_scale = [s for s in spectra if (s.bin_width, s.range_offset) == (width, offset)]
    values = np.stack([s.reflectivity for s in same_scale])
    inside = np.flatnonzero(gate.passes(np.arange(1, values.shape[1] + 1) * width + offset)) + 1
    peaks = find_peaks(values, bins=(int(inside[0]), int(inside[-1])) if len(inside) else (1, 0))
    beams = BeamSamples(
        t_ns=np.array([s.t_ns for s in same_scale]),
        angle=np.array([float(s.angle) for s in same_scale]),
        range=peaks.bin[:, 0] * width + offset,
        intensity=peaks.reflectivity[:, 0],
    )
    found = np.isfinite(beams.range)
    at = np.where(found, peaks.bin[:, 0], 1.0).round().astype(np.int64) - 1
    height_db = np.take_along_axis(values, at[:, None], axis=1)[:, 0] - np.median(values, axis=1)
    return beams.where(found & (height_db >= _noise_margin_db(values.shape[1], false_alarm)))


def _noise_margin_db(bins: int, false_alarm: float) -> float:
    """Return the detection threshold in dB over the median of bins of noise, by false alarm probability.

    The power of noise is distributed exponentially: its median is ln 2 of the mean, and the maximum of n is
    below ``ln n - ln(-ln(1 - p))`` of the mean with probability 1 - p (Gumbel).
    """
    if false_alarm >= 1.0:
        return -np.inf
    largest = np.log(bins) - np.log(-np.log1p(-false_alarm))
    return float(10 * np.log10(max(largest, np.log(2)) / np.log(2)))

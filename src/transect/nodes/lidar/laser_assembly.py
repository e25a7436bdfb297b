"""Planar lasers and a radar on a vehicle as clouds of a fixed frame, each beam placed at its own time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.engine import Batch, Node, outputs, param
from transect.recording import Robot
from transect.robots import load
from transect.robots.argo.clouds import Beams, Gate, beams_of_scans, place
from transect.robots.argo.radar import find_peaks
from transect.types import LaserScan, PointCloud, Pose, RadarSpectrum, RigidBodyState

from ._accumulation import VoxelSums
from ._passing import PassingPoses

Placing = Callable[[Beams, str], Floats]
"""Gives points (n, 3) of beams of a sensor's frame in the fixed frame, NaN where that is not known."""
PERIOD = 0.1
"""Seconds between two looks at what has come."""


@outputs
class Assembled:
    """What lasers and radar saw, thinned, when the inputs end.

    Attributes
    ----------
    map : PointCloud
        Of the lasers; `count` says how many returns made a point.
    radar : PointCloud
        The strongest peak of each spectrum, with `intensity` as the radar scales it.
    """

    map: PointCloud | None = None
    radar: PointCloud | None = None


class LaserAssembly(Node, interface=True, every=PERIOD):
    """Clouds of all returns in a fixed frame; any of the sensors may be missing.

    Beams without a return, ranges that the vehicle's sensors cannot measure and points whose place is not
    known at their time are left out.
    """

    robot: str = param(
        "argo", doc="robot with the range limits and mirror rates: a name, or a YAML file like argo.yaml"
    )
    voxel: float = param(0.1, gt=0, unit="m", doc="edge length of the voxels to which the clouds are thinned")

    def reset(self) -> None:
        self.lasers, self.radar = VoxelSums(self.voxel), VoxelSums(self.voxel)
        self.frame = ""

    def process(
        self,
        horizontal: Batch[LaserScan] = (),
        port: Batch[LaserScan] = (),
        starboard: Batch[LaserScan] = (),
        vertical: Batch[LaserScan] = (),
        spectrum: Batch[RadarSpectrum] = (),
        nav: Batch[RigidBodyState] = (),
    ) -> Assembled | None:
        self.gather([*horizontal, *port, *starboard, *vertical], spectrum, nav)

    def gather(
        self, scans: list[LaserScan], spectra: Sequence[RadarSpectrum], nav: Sequence[RigidBodyState]
    ) -> None:
        """Take what came since the last call, and `add` what can be placed by now."""
        raise NotImplementedError

    def finish(self) -> Assembled | None:
        """Return the clouds."""
        return Assembled(map=self._cloud(self.lasers), radar=self._cloud(self.radar, "intensity"))

    def _cloud(self, sums: VoxelSums, value: str = "") -> PointCloud | None:
        count, means = sums.means()
        if not len(count):
            return self.ctx.skip("nothing could be placed")
        fields: dict[str, NDArray[np.generic]] = {"count": count}
        if value:
            fields[value] = means[:, 3].astype(np.float32)
        return PointCloud(means[:, :3], fields, frame=self.frame)

    def add(self, scans: Sequence[LaserScan], spectra: Sequence[RadarSpectrum], placed: Placing) -> None:
        """Add measurements, as far as it is known where they are."""
        machine = _machine(self.robot)
        for scan in scans:
            self.lasers.add(placed(_beams_of_scan(scan, machine), scan.frame))
        if spectra:
            beams = _beams_of_spectra(spectra, Gate.of(machine, "radar"))
            self.radar.add(placed(beams, spectra[0].frame), beams.intensity[:, None])


class RecordedFrames(LaserAssembly):
    """By the frames of the recording, in which the vehicle moves."""

    target: str = param("Navigation", doc="name of the fixed frame")

    def gather(
        self, scans: list[LaserScan], spectra: Sequence[RadarSpectrum], nav: Sequence[RigidBodyState]
    ) -> None:
        self.frame = self.target
        self.add(scans, spectra, lambda beams, sensor: place(beams, self.ctx.frames, self.target, sensor))


class NavStates(LaserAssembly):
    """By states of the vehicle; measurements wait for the state after them."""

    max_gap: float = param(
        1.0, gt=0, unit="s", doc="largest time between two vehicle states that are interpolated"
    )

    def reset(self) -> None:
        super().reset()
        self.passing = PassingPoses(round(self.max_gap * NS))
        self.scans: list[LaserScan] = []
        self.spectra: Sequence[RadarSpectrum] = ()

    def gather(
        self, scans: list[LaserScan], spectra: Sequence[RadarSpectrum], nav: Sequence[RigidBodyState]
    ) -> None:
        first_ns = min((each.t_ns for each in (*self.scans, *self.spectra)), default=self.ctx.time)
        states = [Pose(s.position, s.orientation, s.t_ns, s.frame, s.child) for s in nav]
        self.passing.add(states, first_ns)
        self.frame = states[-1].frame if states else self.frame
        self.add(self.scans, self.spectra, self._at_states)
        self.scans, self.spectra = scans, spectra

    def _at_states(self, beams: Beams, sensor: str) -> Floats:
        t_ns = int(beams.t_ns.min(initial=self.ctx.time))
        cloud = PointCloud(beams.points, t_ns=t_ns, frame=sensor)
        placed = self.passing.place(cloud, beams.t_ns - t_ns, self.ctx.frames)
        return np.full((len(beams), 3), np.nan) if placed is None else placed


@cache
def _machine(name: str) -> Robot:
    return load(name)


def _beams_of_scan(scan: LaserScan, robot: Robot) -> Beams:
    """Return the returns of one scan, each with its time."""
    beams = beams_of_scans(
        np.array([scan.t_ns]),
        scan.measured,
        np.array([0, len(scan.ranges)]),
        np.array([scan.start_angle]),
        np.array([scan.angle_increment]),
        mirror_rate=float(robot.constants["laser"]["mirror_rate"]),
    )
    return beams.where(Gate.of(robot, "laser").passes(beams.range))


def _beams_of_spectra(spectra: Sequence[RadarSpectrum], gate: Gate) -> Beams:
    """Return the strongest peak of each spectrum; spectra are alike, as one radar gives them."""
    width, offset = spectra[0].bin_width, spectra[0].range_offset
    alike = [s for s in spectra if (s.bin_width, s.range_offset) == (width, offset)]
    values = np.stack([s.reflectivity for s in alike])
    inside = np.flatnonzero(gate.passes(np.arange(1, values.shape[1] + 1) * width + offset)) + 1
    peaks = find_peaks(values, bins=(int(inside[0]), int(inside[-1])) if len(inside) else (1, 0))
    beams = Beams(
        t_ns=np.array([s.t_ns for s in alike]),
        angle=np.array([float(s.angle) for s in alike]),
        range=peaks.bin[:, 0] * width + offset,
        intensity=peaks.reflectivity[:, 0],
    )
    return beams.where(np.isfinite(beams.range))

"""Projection of other sensors' points into the image of a camera.

Each sample is transformed with the pose of its sensor at its own time and of the camera at the time of the
image; a sweep has the time of its stamp. Occlusion is ignored.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transect.base import clocks
from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS, TimeLike
from transect.draw.overlay import Dots, ObjectOutline, Triad
from transect.errors import FrameError, StreamError, TransectError, did_you_mean
from transect.geometry import se3
from transect.geometry.camera import project_points
from transect.geometry.colours import fit_camera, rgb_of
from transect.geometry.interpolation import nearest_index
from transect.geometry.planar import points_from_polar
from transect.recording import FrameTree, Recording, Sample, Stream
from transect.types import CameraModel, Image, LaserScan, PointCloud, RadarRange, RadarSpectrum

from .description import PointShape, shapes_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROLES = ("measurement", "derived")
"""Roles of streams that are drawn by default: no truth, no estimates."""
AXIS_LENGTH_M = 0.15
"""Length of the axes of drawn frames."""


@dataclass(frozen=True, eq=False)
class Sighting:
    """Points of one stream in the camera frame and in the image."""

    stream: Stream
    points: Floats  # (n, 3), in the camera's frame (x right, y down, z forward), m
    pixels: Floats  # (n, 2), distorted; NaN behind the camera and outside the lens model
    inside: Mask  # (n,) bool, whether in the image
    dt: float  # time of the sample minus that of the image, s
    value: Any = None  # the sample; None for several
    T_camera_sensor: Floats | None = None  # (4, 4) or None


@dataclass(frozen=True, eq=False)
class CameraOverlay:
    """An image with projected points, frames and shapes."""

    stream: Stream  # of the camera
    image: Image
    rgb: NDArray[np.uint8]  # (h, w, 3) uint8
    camera: CameraModel  # for pixels of this image
    sightings: tuple[Sighting, ...]
    triads: tuple[Triad, ...]  # frames whose origin is in the image
    outlines: tuple[ObjectOutline, ...]  # of the robot's shapes in the image
    notes: tuple[str, ...]  # uncertainties, and streams that could not be drawn

    def figure(self, title: str = "") -> Figure:
        """Draw the overlay."""
        from transect.draw.overlay import overlay_figure

        dots = [
            Dots(s.stream.name, s.pixels[s.inside], s.points[s.inside, 2], len(s.points), s.dt)
            for s in self.sightings
        ]
        when = clocks.text_from_ns(self.image.t_ns, self.stream.clock)
        axes = (f"axes of frames are {AXIS_LENGTH_M:g} m long",) if self.triads else ()
        return overlay_figure(
            self.rgb,
            dots,
            self.triads,
            self.outlines,
            title=f"{title}{self.stream.name} at {when}",
            notes=(*self.notes, *axes),
        )


def camera_streams(recording: Recording) -> tuple[Stream, ...]:
    """Return the image streams with calibrated cameras."""
    return tuple(s for s in recording.streams if s.type is Image and s.camera in recording.cameras and len(s))


def camera_stream(recording: Recording, name: str | None = None) -> Stream:
    """Return the camera stream of a name, or the only one."""
    available = {stream.name: stream for stream in camera_streams(recording)}
    if name is None and len(available) == 1:
        return next(iter(available.values()))
    if name is None or not available:
        raise StreamError(
            f"{recording.name} has {len(available) or 'no'} calibrated cameras with images",
            why=", ".join(available) or "a camera needs images, intrinsics and a frame",
            hint=" or ".join(f"--camera {shlex.quote(each)}" for each in available)
            or f"transect info {recording.typed} lists what there is",
        )
    exact = [s for s in available.values() if name.lower() in (s.name.lower(), s.camera.lower())]
    near = exact or [s for s in available.values() if name.lower() in s.name.lower()]
    if len(near) != 1:
        raise StreamError(f"{recording.name} has no camera {name!r}", hint=did_you_mean(name, available))
    return near[0]


def view(
    recording: Recording,
    camera: str | None = None,
    time: TimeLike = "+0s",
    *,
    streams: Sequence[str] = (),
    tolerance: float = 0.1,
) -> CameraOverlay:
    """Return the image nearest to a time with the projected points of the other sensors.

    Parameters
    ----------
    camera : str, optional
        Name of its stream; optional if there is only one.
    time : time-like
        `+60s` counts from the recording's first sample.
    streams : sequence of str
        Shell patterns; default: all measured or derived scans, clouds and radars.
    tolerance : float
        Maximum time between sample and image, and extrapolation of moving frames, s. All radar ranges within
        it are used, since each has only one bearing.
    """
    stream = camera_stream(recording, camera)
    first = recording.spans().get(stream.clock, (0, 0))[0]
    image: Image = stream.at(clocks.resolve(time, first, stream.clock)).value
    model, camera_notes = fit_camera(recording.cameras[stream.camera], image.width, image.height)
    scene = _Scene(recording.frames, model.frame or stream.frame, stream.clock, image.t_ns, tolerance, model)
    sightings: list[Sighting] = []
    notes = list(camera_notes)
    others = _range_streams(recording, streams)
    if not others:
        notes.append(f"{recording.name} has no scans, clouds or radars to draw")
    for other in others:
        try:
            sightings.append(scene.sighting(other))
        except TransectError as error:
            notes.append(f"{other.name} is not drawn: {error.what}")
    outlines = scene.outlines(shapes_of(recording.robot)) if recording.robot else ()
    return CameraOverlay(
        stream, image, rgb_of(image), model, tuple(sightings), scene.triads(), outlines, tuple(notes)
    )


def _range_streams(recording: Recording, patterns: Sequence[str]) -> list[Stream]:
    kinds = (PointCloud, LaserScan, RadarRange, RadarSpectrum)
    chosen = recording.select(*patterns).streams if patterns else recording.streams
    found = [s for s in chosen if s.type in kinds and len(s) and (patterns or s.role in ROLES)]
    if patterns and not found:
        raise StreamError(
            f"{' and '.join(patterns)} are no scans, clouds or radars", hint="leave --streams out for all"
        )
    # the spectra of a radar repeat its ranges
    ranged = {s.frame for s in found if s.type is RadarRange}
    return [s for s in found if patterns or not (s.type is RadarSpectrum and s.frame in ranged)]


@dataclass(frozen=True, eq=False)
class _Scene:
    """A camera at the time of its image, and the transforms to it."""

    frames: FrameTree
    frame: str
    clock: str
    t_ns: int
    tolerance: float
    camera: CameraModel

    def sighting(self, stream: Stream) -> Sighting:
        if stream.type is RadarRange:
            return self._bearings(stream)
        sample, dt = sample_near(stream, self.clock, self.t_ns, self.tolerance)
        value = sample.value
        T = self._to_camera(stream.frame, sample.t_ns)
        points = se3.apply(T, points_of(value))
        return Sighting(stream, points, *self._project(points), dt, value, T)

    def _bearings(self, stream: Stream) -> Sighting:
        """Project all ranges within the tolerance, each with the pose of the radar at its time."""
        refuse_clock(stream, self.clock)
        margin_ns = round(self.tolerance * NS)
        near = stream.between(self.t_ns - margin_ns, self.t_ns + margin_ns + 1)
        if not len(near):
            dt = (stream.at(self.t_ns).t_ns - self.t_ns) / NS
            raise StreamError(f"its nearest sample is {dt:+.3f} s away")
        local = points_from_polar(*near.array("range", "angle").T)
        points = se3.apply(self._to_camera(stream.frame, near.t_ns), local)
        dt = (near.at(self.t_ns).t_ns - self.t_ns) / NS
        return Sighting(stream, points, *self._project(points), dt)

    def _project(self, points: Floats) -> tuple[Floats, Mask]:
        return project_points(points, np.eye(4), self.camera)

    def _to_camera(self, frame: str, t_ns: int | Ints) -> Floats:
        """T_camera_frame from the frame at its own time to the camera at the time of the image.

        Both are looked up in the root of the tree, which is static while the robot drives. Without poses at
        these times the sensors are assumed to be fixed to each other.
        """
        root = self.frames.ancestry(frame)[-1]
        try:
            T_root_camera = self.frames.lookup(root, self.frame, self.t_ns, tolerance=self.tolerance)
            T_root_frame = self.frames.lookup(root, frame, t_ns, tolerance=self.tolerance)
        except FrameError:
            return self.frames.lookup(self.frame, frame, t_ns, tolerance=self.tolerance)
        return se3.invert(T_root_camera) @ T_root_frame

    def triads(self) -> tuple[Triad, ...]:
        """Frames other than the camera's whose origin is in the image."""
        found: list[Triad] = []
        steps = np.linspace(0.0, AXIS_LENGTH_M, 12)
        # the origin, then each axis as a line, which is curved by lens distortion
        local = np.concatenate([np.zeros((1, 3)), (steps[:, None] * np.eye(3)[:, None]).reshape(-1, 3)])
        for name in self.frames.frames:
            try:
                T = self.frames.lookup(self.frame, name, self.t_ns, tolerance=self.tolerance)
            except FrameError:
                continue  # its pose is unknown at this time
            pixels, inside = project_points(local, T, self.camera)
            if name != self.frame and inside[0] and T[2, 3] > 0:
                x, y, z = pixels[1:].reshape(3, -1, 2)
                found.append(Triad(name, pixels[0], (x, y, z)))
        return tuple(found)

    def outlines(self, shapes: Sequence[PointShape]) -> tuple[ObjectOutline, ...]:
        """Shapes with a line in the image, with the age of their poses."""
        found: list[ObjectOutline] = []
        for shape in shapes:
            try:
                T = self.frames.lookup(self.frame, shape.frame, self.t_ns, tolerance=self.tolerance)
            except FrameError:
                continue  # its pose is unknown at this time
            ends = shape.points[shape.lines]  # (lines, 2, 3)
            steps = np.linspace(0.0, 1.0, 12)[:, None]
            points = ends[:, :1] + steps * (ends[:, 1:] - ends[:, :1])
            pixels, inside = project_points(points.reshape(-1, 3), T, self.camera)
            if inside.any():
                name = f"{shape.name} (invented)" if shape.invented else shape.name
                found.append(
                    ObjectOutline(name, pixels.reshape(*points.shape[:2], 2), self._age(shape.frame))
                )
        return tuple(found)

    def _age(self, frame: str) -> float | None:
        """Time (s) of the pose between camera and frame that is farthest from the time of the image.

        None if the frame is fixed to the camera. This is DT of AMEDS Figure 5.
        """
        paths = [self.frames.ancestry(name) for name in (self.frame, frame)]
        parts = [edge for edge in self.frames.edges if sum(edge.child in path for path in paths) == 1]
        axes = [edge.motion.t_ns for edge in parts if edge.motion is not None and len(edge.motion)]
        offsets = [axis[nearest_index(axis, [self.t_ns])] - self.t_ns for axis in axes]
        return max((float(each[0]) / NS for each in offsets), key=abs, default=None)


def sample_near(stream: Stream, clock: str, t_ns: int, tolerance: float) -> tuple[Sample, float]:
    """Return the sample nearest to a time, and its time difference in s.

    The difference is at most `tolerance`, except on the clock `index`.
    """
    refuse_clock(stream, clock)
    sample = stream.at(t_ns)
    dt = (sample.t_ns - t_ns) / NS
    if abs(dt) > tolerance and clock != "index":
        raise StreamError(f"its nearest sample is {dt:+.3f} s away")
    return sample, dt


def refuse_clock(stream: Stream, clock: str) -> None:
    """Raise if the times of a stream are on another clock."""
    if stream.clock != clock:
        raise StreamError(f"it is on the {stream.clock} clock")


def points_of(value: Any) -> Floats:
    """Points (n, 3) in the sensor frame, m; NaN for beams without return.

    For radar spectra, the strongest return at each bearing.
    """
    if isinstance(value, PointCloud):
        return np.asarray(value.points, dtype=np.float64)
    if isinstance(value, LaserScan):
        return points_from_polar(value.measured, value.angles)
    if isinstance(value, RadarSpectrum):
        spectra = np.atleast_2d(value.reflectivity)
        return points_from_polar(value.ranges[np.argmax(spectra, axis=-1)], np.atleast_1d(value.angle))
    raise StreamError(f"a {type(value).__name__} has no points")

"""Animations of recordings: an arm in motion, or a rover on its map."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS, text_from_ns
from transect.draw.replay.stage import Pixels, SignalCurve, VerdictInterval
from transect.draw.robots import RobotScene
from transect.errors import TransectError, UsageError
from transect.evaluation.inputs import map_of, open_ground
from transect.evaluation.positions.common_frame import MapLayout, lay_out
from transect.evaluation.positions.paths import RecordedPath, guides_of, path_of
from transect.evaluation.positions.streams import best_stream
from transect.recording import Recording, Robot, Stream
from transect.robots.pictures import scene_of
from transect.robots.urdf import RobotArm, arms_of
from transect.types import GridMap, JointState

if TYPE_CHECKING:
    from transect.integrity.table import VerdictTable

FRAME_RATE_HZ = 25
MAX_DEFAULT_DURATION_S = 40.0
"""The default speed is chosen so that a film is not longer."""
SPEED_FACTORS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
SMOOTHING_WINDOW_S = 1.0
"""Moving average of positions for distance, speed and heading, against receiver noise."""
MIN_HEADING_SPEED_M_S = 0.03
"""A slower robot keeps its last heading."""
MAX_TRACK_POINTS = 4000
STATES_WORST_FIRST = ("BAD", "SUSPECT", "OK", "UNKNOWN")


@dataclass(frozen=True, eq=False)
class ReplayFilm:
    """An animation whose frames are drawn on demand."""

    # takes ascending seconds after the start, and yields a picture (h, w, 3) for each
    frames: Callable[[Iterable[float]], Iterator[Pixels]]
    duration: float  # of the recording, s
    speed: float  # times real time
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> list[float]:
        """The time of each frame, including the last one."""
        count = max(int(self.duration / self.speed * FRAME_RATE_HZ), 1)
        return np.linspace(0.0, self.duration, count + 1).tolist()

    def write(self, path: Path, seconds: Iterable[float]) -> None:
        """Write a film (H.264 in MP4) of frames at some times."""
        from transect.formats.video import encode_film

        pictures = enumerate(self.frames(seconds))
        encode_film(((k * 1_000_000 // FRAME_RATE_HZ, pixels, "rgb24") for k, pixels in pictures), path)


def replay(
    recording: Recording,
    *,
    over: str | None = None,
    verdicts: VerdictTable | None = None,
    speed: float | None = None,
) -> ReplayFilm:
    """Return the animation of a recording: of its arm if it has joints and no positions, else of its drive.

    Parameters
    ----------
    over : str, optional
        Background map of a drive, as for `transect draw track`; by default one of the recording.
    verdicts : VerdictTable, optional
        Verdicts on the sensors, for colours.
    speed : float, optional
        Times real time; by default so that the film lasts at most 40 s.
    """
    try:
        stream = best_stream(recording)
    except TransectError as error:
        moved = _find_arm(recording)
        if moved is None:
            raise UsageError(
                f"{recording.name} has nothing to replay",
                why="no stream has positions of the robot, or joints of an arm of its description",
                hint=f"transect info {recording.typed} lists the streams",
            ) from error
        if over is not None:
            raise UsageError(
                f"--over {over} is for rovers", why="this recording is replayed as an arm"
            ) from error
        return _replay_arm(recording, *moved, verdicts, speed)
    return _replay_drive(recording, stream, over, verdicts, speed)


def _choose_speed(duration: float, speed: float | None) -> float:
    if speed is not None:
        return speed
    return float(
        next((s for s in SPEED_FACTORS if duration / s <= MAX_DEFAULT_DURATION_S), SPEED_FACTORS[-1])
    )


def _subtitle(recording: Recording, what: str, speed: float) -> str:
    title = recording.robot.title if recording.robot else ""
    pace = "real time" if speed == 1 else f"{speed:g} x real time"
    return "  \N{MIDDLE DOT}  ".join(part for part in (title, what, pace) if part)


def _judge(
    verdicts: VerdictTable | None, clock: str, start_ns: int, end_ns: int, recording: Recording
) -> list[VerdictInterval]:
    """Return intervals of the worst state of all streams on a clock, s after a start."""
    if verdicts is None:
        return []
    windows = [
        window
        for name, each in verdicts.by_stream.items()
        if name in recording and recording[name].clock == clock
        for window in each
    ]
    edges = sorted(
        {start_ns, end_ns, *(t for w in windows for t in (w.t0_ns, w.t1_ns) if start_ns < t < end_ns)}
    )
    rank = {state: k for k, state in enumerate(STATES_WORST_FIRST)}
    found: list[VerdictInterval] = []
    firsts = np.searchsorted(edges, [w.t0_ns for w in windows])
    lasts = np.searchsorted(edges, [w.t1_ns for w in windows])
    present = np.zeros(
        (len(STATES_WORST_FIRST), len(edges) + 1), np.int64
    )  # starts minus ends of windows of a state
    ranks = np.array([rank[w.state] for w in windows], np.int64)
    np.add.at(present, (ranks, firsts), 1)
    np.add.at(present, (ranks, lasts), -1)
    is_present = np.cumsum(present, axis=1) > 0
    for k, (begin, end) in enumerate(pairwise(edges)):
        state = STATES_WORST_FIRST[int(np.argmax(is_present[:, k]))] if is_present[:, k].any() else "UNKNOWN"
        if found and found[-1].state == state:
            found[-1] = VerdictInterval(found[-1].start, (end - start_ns) / NS, state)
        else:
            found.append(VerdictInterval((begin - start_ns) / NS, (end - start_ns) / NS, state))
    return found


# Rover


def _replay_drive(
    recording: Recording, stream: Stream, over: str | None, verdicts: VerdictTable | None, speed: float | None
) -> ReplayFilm:
    from transect.draw.replay.rover import DriveFilm, drive_frames
    from transect.draw.tracks import PlottedTrack, TrackStyle

    path = _subsample(path_of(stream, stream.name))
    truth = recording.truth
    also = [] if truth is None or truth.name == stream.name or truth.clock != stream.clock else [truth]
    layout = _lay_out(recording, [path, *(_subsample(path_of(s, s.name)) for s in also)], over)
    start, end = int(path.t_ns[0]), int(path.t_ns[-1])
    seconds = (path.t_ns - start) / NS
    if path.clock == "index" or end == start:
        raise UsageError(f"{stream.name} has no times", hint="an animation needs timestamped positions")
    points = layout.tracks[0].points
    pace = _choose_speed((end - start) / NS, speed)
    drive = DriveFilm(
        recording.name,
        _subtitle(recording, stream.name, pace),
        PlottedTrack(stream.name, points, seconds),
        _headings(points, seconds),
        layout.tracks[1:],
        layout.ground,
        TrackStyle("", layout.caption, layout.view.names, layout.is_north_up),
        _drive_curves(path, points, seconds),
        _judge(verdicts, path.clock, start, end, recording),
        (end - start) / NS,
        partial(_clock_text, path.clock, start),
    )
    return ReplayFilm(partial(drive_frames, drive), drive.duration, pace, tuple(layout.notes))


def _subsample(path: RecordedPath) -> RecordedPath:
    """Return a path of at most `MAX_TRACK_POINTS` points with distinct times."""
    rows = np.unique(np.linspace(0, len(path.t_ns) - 1, min(len(path.t_ns), MAX_TRACK_POINTS)).astype(int))
    _, first = np.unique(path.t_ns[rows], return_index=True)
    rows = rows[first]
    orientations = None if path.orientations is None else path.orientations[rows]
    return RecordedPath(path.name, path.t_ns[rows], path.places[rows], orientations, path.frame, path.clock)


def _lay_out(recording: Recording, paths: Sequence[RecordedPath], over: str | None) -> MapLayout:
    """Place tracks on a map: the given one, else one of the recording, else none."""
    maps = sorted((s for s in recording if s.type is GridMap and len(s)), key=lambda s: s.role == "truth")
    own = [partial(_own_map, recording, stream.name) for stream in maps]
    grounds = [partial(open_ground, over)] if over else [*own, lambda: (None, [], [])]
    for ground in grounds[:-1]:
        try:
            return _lay_on(recording, paths, *ground())
        except TransectError:
            continue  # this map does not overlap: try the next one, or none
    return _lay_on(recording, paths, *grounds[-1]())


def _own_map(recording: Recording, name: str) -> tuple[object, list[RecordedPath], list[str]]:
    return map_of(recording, name), [], [f"the background is {name}"]


def _lay_on(
    recording: Recording,
    paths: Sequence[RecordedPath],
    below: object,
    guides: list[RecordedPath],
    notes: list[str],
) -> MapLayout:
    frame = "" if below is None or getattr(below, "crs", "") else str(getattr(below, "frame", ""))
    more = list(guides_of(recording, frame)) if frame else []
    layout = lay_out(paths, below, [*guides, *more])  # pyright: ignore[reportArgumentType]
    layout.notes[:0] = notes
    return layout


def _headings(points: Floats, seconds: Floats) -> Floats:
    """Return the direction of travel (n,), rad; at standstill the last one."""
    speed = np.gradient(_smooth(points, seconds), seconds, axis=0)
    moving = np.linalg.norm(speed, axis=1) > MIN_HEADING_SPEED_M_S
    if not moving.any():
        return np.zeros(len(points))
    last: Ints = np.maximum.accumulate(np.where(moving, np.arange(len(points)), int(np.argmax(moving))))
    return np.arctan2(speed[last, 1], speed[last, 0])


def _smooth(points: Floats, seconds: Floats) -> Floats:
    """Return a moving average of points (n, 2)."""
    width = (
        int(np.clip(SMOOTHING_WINDOW_S / max(float(np.median(np.diff(seconds))), 1e-6), 1, len(points) // 4))
        | 1
    )
    padded = np.pad(points, ((width // 2, width // 2), (0, 0)), mode="reflect", reflect_type="odd")
    return np.column_stack([np.convolve(column, np.ones(width) / width, "valid") for column in padded.T])


def _drive_curves(path: RecordedPath, points: Floats, seconds: Floats) -> list[SignalCurve]:
    smooth = _smooth(points, seconds)
    steps = np.linalg.norm(np.diff(smooth, axis=0), axis=1)
    speed = np.linalg.norm(np.gradient(smooth, seconds, axis=0), axis=1)
    distance = np.concatenate([[0.0], np.cumsum(steps)])
    return [
        SignalCurve("distance", "m", seconds, distance),
        SignalCurve("speed", "m/s", seconds, speed),
        SignalCurve("height", "m", seconds, path.places[:, 2]),
    ]


def _clock_text(clock: str, start_ns: int, second: float) -> str:
    text = text_from_ns(start_ns + round(second * NS), clock)
    return f"{text.replace('T', '  ')[:24]} {'' if clock == 'device' else clock.upper()}".rstrip()


# Arm


def _find_arm(recording: Recording) -> tuple[RobotArm, Stream] | None:
    """Return the arm with recorded joints, and the longest stream of them."""
    if recording.robot is None:
        return None
    for arm in arms_of(recording.robot):
        candidates = [s for s in recording if s.type is JointState and len(s) > 1 and _has_joints_of(s, arm)]
        if candidates:
            return arm, max(
                candidates, key=lambda s: (s.tag != "potentiometer", int(s.t_ns.max() - s.t_ns.min()))
            )
    return None


def _has_joints_of(stream: Stream, arm: RobotArm) -> bool:
    known = "position" in stream.columns and stream.role != "truth"
    return known and stream["position"].shape[1:] == (arm.chain.joints,)


def _replay_arm(
    recording: Recording, arm: RobotArm, stream: Stream, verdicts: VerdictTable | None, speed: float | None
) -> ReplayFilm:
    from transect.draw.replay.arm import ArmFilm, move_frames

    robot = _with_fixed_frames(recording)
    known = np.flatnonzero(np.isfinite(stream["position"]).all(axis=1))
    _, first = np.unique(stream.t_ns[known], return_index=True)
    rows = known[first]
    t_ns, joints = stream.t_ns[rows], stream["position"][rows]
    start, end = int(t_ns[0]), int(t_ns[-1])
    seconds = (t_ns - start) / NS
    pace = _choose_speed((end - start) / NS, speed)
    degrees = np.degrees(joints)
    move = ArmFilm(
        recording.name,
        _subtitle(recording, f"joints of {stream.name}", pace),
        partial(_scene_at, robot, arm, seconds, joints),
        _tools(robot, arm),
        [SignalCurve(name, "\N{DEGREE SIGN}", seconds, degrees[:, k]) for k, name in enumerate(arm.joints)],
        _judge(verdicts, stream.clock, start, end, recording),
        (end - start) / NS,
        partial(_clock_text, stream.clock, start),
    )
    return ReplayFilm(partial(move_frames, move), move.duration, pace)


def _with_fixed_frames(recording: Recording) -> Robot:
    """Return the robot with additional static frames of the recording, such as tools."""
    robot = recording.robot
    if robot is None:
        raise UsageError(f"the robot of {recording.name} is not known")
    tree = robot.frames.copy()
    for edge in recording.frames.edges:
        if edge.matrix is not None and edge.child not in tree:
            tree.add_static(edge.parent, edge.child, edge.matrix, source=edge.source)
    return dataclasses.replace(robot, frames=tree)


def _scene_at(robot: Robot, arm: RobotArm, seconds: Floats, joints: Floats, second: float) -> RobotScene:
    """Return the robot with interpolated joints; links are rigid."""
    q = [float(np.interp(second, seconds, column)) for column in joints.T]
    return scene_of(robot, {arm.frames[0]: q})


def _tools(robot: Robot, arm: RobotArm) -> list[str]:
    """Return the frames fixed to the arm's end, the scoop or the most distant one first."""
    fixed = [edge for edge in robot.frames.edges if edge.parent == arm.frames[-1] and edge.matrix is not None]
    far = {edge.child: float(np.linalg.norm(edge.matrix[:3, 3])) for edge in fixed if edge.matrix is not None}
    return sorted(far, key=lambda name: (name.lower() != "scoop", -far[name]))

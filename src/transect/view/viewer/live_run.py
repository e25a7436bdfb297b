"""A run that is controlled and shown by the viewer's page.

The thread that calls `ReplayController.process_commands` plays the run; threads of the server send commands
and read its state. Samples are not modified, so the digest is that of a normal run.
"""

from __future__ import annotations

import math
import signal
import threading
import time
import webbrowser
from array import array
from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from types import FrameType
from typing import Any, Literal

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.engine import NodeError, Replay
from transect.engine.digest import digest_of_ports
from transect.engine.flow import NEVER_NS
from transect.engine.player import END
from transect.engine.ports import type_name
from transect.errors import UsageError
from transect.types import (
    DepthMap,
    GridMap,
    Image,
    Odometry,
    PointCloud,
    Pose,
    RigidBodyState,
    Trajectory,
    Verdict,
)

from .scene import ViewerScene, kind_of
from .server import Viewer

MAX_KEPT_SAMPLES = 24
"""Newest images, clouds and maps of a port that are kept, which limits memory."""
MAX_VALUE_CHARACTERS = 120
MAX_ARRAY_ELEMENTS = 9
"""Larger arrays are shown by their shape."""
STATISTICS_INTERVAL_S = 0.1
"""Time between updates of the statistics of nodes while playing."""
State = Literal["ready", "playing", "paused", "ended", "failed"]


@dataclass(frozen=True)
class PlaybackCommand:
    """A command: `step` (a number of times), `next` (sample of a channel), `play`, `pause` or `close`."""

    what: str
    number: float = 0.0


class PortMonitor:
    """The outputs of one port of a node so far."""

    def __init__(self, channel: str, name: str, kind: type, start_ns: int) -> None:
        self.channel = channel  # `node.port`
        self.name = name  # of the output of the compound; "" if it is none
        self.type = kind
        self.kind = _kind_of_port(kind)  # picture, points, surface, pose, number or value
        self.width = {"pose": 8, "number": 2}.get(self.kind, 1)  # numbers in a row
        # flattened rows: seconds; seconds and a number; or seconds, position and quaternion
        self.rows = array("d")
        self.count, self.frame, self.child = 0, "", ""
        self.newest: deque[tuple[int, Any]] = deque(maxlen=MAX_KEPT_SAMPLES)  # index and value
        self._start_ns = start_ns

    def add_sample(self, t_ns: int, value: Any) -> None:
        """Add a sample; called by the flow."""
        seconds = (t_ns - self._start_ns) / NS
        self.newest.append((self.count, value))
        if isinstance(value, Trajectory):
            self.rows = _rows_of(value, self._start_ns)
        elif self.kind == "pose":
            self.rows.extend(_row_of(seconds, value))
        else:
            self.rows.extend((seconds, float(value)) if self.kind == "number" else (seconds,))
        self.frame, self.child = getattr(value, "frame", ""), getattr(value, "child", "")
        self.count += 1

    @property
    def is_whole(self) -> bool:
        """Whether each sample replaces the previous one, as a trajectory holds all its poses."""
        return self.type is Trajectory

    def value(self, number: int) -> Any:
        """Return a sample by its index; None if it is no longer kept. IndexError if there was none."""
        if number >= self.count:
            raise IndexError(number)
        return next((value for known, value in tuple(self.newest) if known == number), None)

    def since(self, row: int) -> Floats:
        """Return the rows (n, width) from an index on.

        The bytes are copied, since an array with an exported buffer cannot grow in the thread of the run.
        """
        copied = self.rows[row * self.width :].tobytes()
        return np.frombuffer(copied, np.float64).reshape(-1, self.width)

    def describe(self) -> dict[str, Any]:
        """Return the state of the port for the page."""
        newest = self.newest[-1][1] if self.newest else None
        text = "" if newest is None else _shorten(newest)
        last = self.rows[-self.width] if self.rows else None
        return {"count": self.count, "text": text, "last": last, "frame": self.frame}


class ReplayController:
    """A replay that is controlled by pages.

    Parameters
    ----------
    replay : Replay
        Played in the thread that calls `process_commands`, on one thread only.
    start_ns : int
        The zero of times on the page.
    """

    def __init__(self, replay: Replay, start_ns: int) -> None:
        self.replay, self.start_ns = replay, start_ns
        self.state: State = "ready"
        self.why = ""  # reason of a pause or of the end
        self.speed = 1.0  # times real time; 0: as fast as possible
        self.processed = 0  # number of commands
        self._digest = ""
        self.error: Exception | None = None
        self.verdicts: dict[str, list[tuple[float, float, str, str]]] = {}
        self.ports = [*self._open_ports()]
        self.channels = [*replay.flow.channels.index]
        self._commands: SimpleQueue[PlaybackCommand] = SimpleQueue()
        self._breakpoints: dict[str, bool] = {}
        self._updated, self._nodes, self._streams = 0.0, list[dict[str, Any]](), dict[str, Any]()
        self._actions: Mapping[str, Callable[[float], str]] = {
            "step": self._step, "next": self._next, "play": self._play, "pause": lambda _: "paused",
        }  # fmt: skip
        replay.player.attend(-NEVER_NS, self._before_step)
        self._update_statistics()

    def _open_ports(self) -> list[PortMonitor]:
        """Return monitors of all ports, outputs of the compound first."""
        names = {channel: name for name, channel in self.replay.playback.graph.outputs.items()}
        found: list[PortMonitor] = []
        for channel, outlet in self.replay.flow.outlets.items():
            found.append(PortMonitor(channel, names.get(channel, ""), outlet.port.type, self.start_ns))
            self.replay.flow.tap(channel, found[-1].add_sample)
        return sorted(found, key=lambda port: not port.name)

    # Commands

    def send(self, what: str, number: float = 0.0) -> None:
        """Send a command, from any thread; it is executed after the current step.

        Parameters
        ----------
        what : {"step", "next", "play", "pause", "close"}
        number : float
            Number of steps; index of the channel; or the speed, 0 for as fast as possible.
        """
        if what not in {*self._actions, "close"} or not 0 <= number < math.inf:
            raise ValueError(f"there is no command {what} {number}")
        if what == "next" and int(number) >= len(self.channels):
            raise ValueError(f"there is no channel {number}")
        self._commands.put(PlaybackCommand(what, number))
        if what != "step" or self.state == "playing":
            self.replay.player.pause()

    def process_commands(self) -> None:
        """Execute commands until `close`; then raise the error of the run, if any."""
        while (command := self._commands.get()).what != "close":
            if self.state not in ("ended", "failed"):
                self._advance(command)
            self.processed += 1
        if self.error is not None:
            raise self.error

    def _advance(self, command: PlaybackCommand) -> None:
        self.state, self._digest = "playing", ""
        try:
            self.why = self._actions[command.what](command.number)
        except Exception as error:  # noqa: BLE001 - shown on the page, and raised when it is closed
            self.error, self.state, self.why = error, "failed", str(error)
        else:
            self._digest = digest_of_ports(self.replay.flow.port_digests)
            self.state = "ended" if self.why == END else "paused"
        self._update_statistics()

    def _step(self, count: float) -> str:
        return self.replay.step(max(1, int(count)))

    def _play(self, speed: float) -> str:
        self.speed = speed
        self.replay.player.set_rate(speed or None)
        return self.replay.play()

    def _next(self, number: float) -> str:
        """Play as fast as possible to the next sample of a channel."""
        channel = self.channels[int(number)]
        if channel not in self._breakpoints:
            self.replay.player.break_when(channel, lambda value: self._breakpoints[channel])
        self._breakpoints[channel] = True
        try:
            self.replay.player.set_rate(None)
            return self.replay.play()
        finally:
            self._breakpoints[channel] = False

    def _before_step(self, t_ns: int) -> int:
        """Pause for new commands, and update the statistics at intervals."""
        if self.state == "playing" and not self._commands.empty():
            self.replay.player.pause()
        if time.monotonic() - self._updated > STATISTICS_INTERVAL_S:
            self._update_statistics()
        return t_ns

    # State

    def _update_statistics(self) -> None:
        """Copy statistics and verdicts; in the playing thread, which modifies them."""
        self._updated = time.monotonic()
        statistics = self.replay.statistics
        failed = {e.node: str(e) for e in self.replay.flow.errors if isinstance(e, NodeError)}
        self._nodes = [
            {
                "name": name,
                "calls": node.calls,
                "p50": _known(node.wall_p50),
                "p95": _known(node.wall_p95),
                "share": statistics.shares[name][0],
                "skipped": dict(node.skipped),
                "failed": failed.get(name, ""),
            }
            for name, node in statistics.nodes.items()
        ]
        self._streams = dict(statistics.streams)
        self._note_verdicts()

    def _note_verdicts(self) -> None:
        known, now = self.replay.verdicts, self.replay.flow.now_ns
        if known is None or now == -NEVER_NS:
            return
        for line in self.replay.playback.lines:
            found = known.known_at(line.stream.name, now)
            if found is not None:
                self._note(line.stream.name, found.whole)

    def _note(self, stream: str, verdict: Verdict) -> None:
        start, end = ((t_ns - self.start_ns) / NS for t_ns in (verdict.t0_ns, verdict.t1_ns))
        noted = self.verdicts.setdefault(stream, [])
        if not noted or noted[-1][0] < start:
            noted.append((start, end, verdict.state, verdict.reason))

    @property
    def now(self) -> float | None:
        """Current time, s; None before the first sample."""
        t_ns = self.replay.flow.now_ns
        return None if t_ns <= -NEVER_NS else (t_ns - self.start_ns) / NS

    def describe(self) -> dict[str, Any]:
        """Return the description of the run for the page."""
        replay = self.replay
        span = replay.playback.span or (self.start_ns, self.start_ns)
        return {
            "name": replay.playback.compound.name,
            "folder": str(replay.folder or ""),
            "span": [(t_ns - self.start_ns) / NS for t_ns in span],
            "wiring": [(name, stream.name) for name, stream in replay.playback.wiring.pairs],
            "channels": self.channels,
            "ports": [
                {
                    "name": port.name or port.channel,
                    "channel": port.channel,
                    "output": bool(port.name),
                    "type": type_name(port.type),
                    "kind": port.kind,
                    "width": port.width,
                    "whole": port.is_whole,
                }
                for port in self.ports
            ],
        }

    def status(self) -> dict[str, Any]:
        """Return the state of the run for the page."""
        replay = self.replay
        return {
            "state": self.state,
            "why": self.why,
            "now": self.now,
            "speed": self.speed,
            "wall": replay.wall_s,
            "ports": [port.describe() for port in self.ports],
            "nodes": self._nodes,
            "streams": self._streams,
            "lines": len(replay.notes.log),
            "errors": [str(error) for error in replay.flow.errors],
            "conclusions": [{"text": f"{c.node}: {c.text}", "bad": c.bad} for c in replay.notes.conclusions],
            "digest": self._digest,
        }

    def lines(self, begin: int) -> list[tuple[float, str, str]]:
        """Return the log of nodes from a line on: seconds, node, text."""
        log = self.replay.notes.log[begin:]
        return [((t_ns - self.start_ns) / NS, node, text) for t_ns, node, text in log]


def _kind_of_port(kind: type) -> str:
    if kind in (Pose, RigidBodyState, Odometry, Trajectory):
        return "pose"
    return "number" if kind in (float, int, bool) else kind_of(kind) or "value"


def _row_of(seconds: float, value: Pose | RigidBodyState | Odometry) -> tuple[float, ...]:
    """Return a pose as a row, with NaN for a missing position."""
    place = (math.nan,) * 3 if value.position is None else tuple(map(float, value.position))
    turn = (0.0, 0.0, 0.0, 1.0) if value.orientation is None else tuple(map(float, value.orientation))
    return (seconds, *place, *turn)


def _rows_of(path: Trajectory, start_ns: int) -> array[float]:
    orientations = path.orientations
    if orientations is None:
        orientations = np.tile([0.0, 0.0, 0.0, 1.0], (len(path.t_ns), 1))
    rows = np.column_stack([(path.t_ns - start_ns) / NS, path.positions, orientations])
    return array("d", rows.astype(np.float64).tobytes())


def _shorten(value: Any) -> str:
    """Return a short text of a value: position of a pose, number of points, size of an image."""
    if isinstance(value, Pose | RigidBodyState | Odometry) and value.position is not None:
        text = "at {:.3f}, {:.3f}, {:.3f} m".format(*value.position)
    elif isinstance(value, PointCloud | Trajectory):
        text = f"{len(value):,} {'points' if isinstance(value, PointCloud) else 'poses'}"
    elif isinstance(value, Image | DepthMap):
        text = f"{value.data.shape[1]} x {value.data.shape[0]} pixels"
    elif isinstance(value, GridMap):
        text = "{} x {} cells".format(*next(iter(value.layers.values())).shape)
    elif isinstance(value, np.ndarray) and value.size > MAX_ARRAY_ELEMENTS:
        text = f"array {' x '.join(map(str, value.shape))}"
    else:
        text = f"{value:.6g}" if isinstance(value, float) else " ".join(repr(value).split())
    return text if len(text) <= MAX_VALUE_CHARACTERS else f"{text[: MAX_VALUE_CHARACTERS - 3]}..."


def _known(seconds: float) -> float | None:
    return None if math.isnan(seconds) else seconds


def watch(replay: Replay, *, port: int = 0, show: Callable[[str], object] = webbrowser.open) -> None:
    """Control a replay in a browser; return when the page is closed.

    For `transect.run`: ``transect.run("LidarOdometry", recording, play=watch)``. The digest is that of a
    normal run.

    Parameters
    ----------
    replay : Replay
    port : int
        0 for any free port.
    show : callable
        Called with the address of the page.

    Raises
    ------
    UsageError
        If the replay uses several threads.
    """
    if replay.settings.jobs > 1:
        raise UsageError("a run in the viewer is played on one thread", hint="leave jobs out")
    scene = ViewerScene(replay.recording)
    watched = ReplayController(replay, scene.axis.start_ns)
    viewer = Viewer(scene, port, watch=watched)
    server = threading.Thread(target=_serve, args=(viewer, watched), daemon=True)
    server.start()
    try:
        with _closing_on_interrupt(watched):
            show(viewer.url)
            watched.process_commands()
    finally:
        viewer.close()
        server.join()


def _serve(viewer: Viewer, watched: ReplayController) -> None:
    viewer.serve()
    watched.send("close")


@contextmanager
def _closing_on_interrupt(watched: ReplayController) -> Generator[None]:
    """Close the page on Ctrl-C after the current step; a second one interrupts immediately."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread handles signals
        yield
        return

    def close(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        watched.send("close")

    before = signal.signal(signal.SIGINT, close)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

"""A compound that runs while a page looks on: what the page may order, and what it sees of the run.

One thread plays, the one that calls `Watch.obey`; those of the server order and look. Nothing here touches a
sample, so the digest is that of a run that nobody watched.
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
from transect.engine.flow import NEVER
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

from .scene import Scene, kind_of
from .server import Viewer

KEPT = 24
"""Newest pictures, clouds and maps of a port that can be looked at: memory stays flat."""
LONGEST = 120
"""Signs of a value that the page shows."""
FEW = 9
"""Numbers of an array that are shown as they are."""
LOOKS_S = 0.1
"""Seconds between two looks at what nodes took, while it plays."""
State = Literal["ready", "playing", "paused", "ended", "failed"]


@dataclass(frozen=True)
class Order:
    """What a person wants: `step` some waves, `next` sample of a channel, `play`, `pause` or `close`."""

    what: str
    number: float = 0.0


class Port:
    """What one output port of a node gave so far.

    Attributes
    ----------
    channel, name : str
        `node.port`, and what the compound calls it where it is an output.
    kind : {"picture", "points", "surface", "pose", "number", "value"}
    rows : array of float64
        Seconds, or seconds and a number, or seconds, position and quaternion, one after the other.
    width : int
        Numbers of a row.
    newest : deque of (int, object)
        Number and value of the newest samples.
    """

    def __init__(self, channel: str, name: str, kind: type, start_ns: int) -> None:
        self.channel, self.name, self.type = channel, name, kind
        self.kind = _kind_of_port(kind)
        self.width = {"pose": 8, "number": 2}.get(self.kind, 1)
        self.rows, self.count, self.frame, self.child = array("d"), 0, "", ""
        self.newest: deque[tuple[int, Any]] = deque(maxlen=KEPT)
        self._start_ns = start_ns

    def take(self, t_ns: int, value: Any) -> None:
        """Take a sample, as a tap of the flow."""
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
        """Whether each sample replaces what was there: a trajectory holds all its poses."""
        return self.type is Trajectory

    def value(self, number: int) -> Any:
        """Return a sample by its number; None if it is not kept any more. IndexError if it never was."""
        if number >= self.count:
            raise IndexError(number)
        return next((value for known, value in tuple(self.newest) if known == number), None)

    def since(self, row: int) -> Floats:
        """Return the rows (n, width) from one on.

        The bytes are copied first: an array whose memory is lent cannot grow, and the run is another thread.
        """
        copied = self.rows[row * self.width :].tobytes()
        return np.frombuffer(copied, np.float64).reshape(-1, self.width)

    def describe(self) -> dict[str, Any]:
        """Return what the page is told of it, whenever it asks."""
        newest = self.newest[-1][1] if self.newest else None
        text = "" if newest is None else _shorten(newest)
        last = self.rows[-self.width] if self.rows else None
        return {"count": self.count, "text": text, "last": last, "frame": self.frame}


class Watch:
    """A replay that pages step, play and pause.

    Parameters
    ----------
    replay : Replay
        In the thread of whoever calls `obey`; with one job, since samples are looked at as they pass.
    start_ns : int
        The time that the page calls 0 s.

    Attributes
    ----------
    state : {"ready", "playing", "paused", "ended", "failed"}
    why : str
        Why it paused, or what ended it.
    speed : float
        Times real time; 0 for as fast as possible.
    obeyed : int
        Orders that were carried out, or were not to be any more.
    """

    def __init__(self, replay: Replay, start_ns: int) -> None:
        self.replay, self.start_ns = replay, start_ns
        self.state: State = "ready"
        self.why, self.speed, self.obeyed, self._digest = "", 1.0, 0, ""
        self.trouble: Exception | None = None
        self.verdicts: dict[str, list[tuple[float, float, str, str]]] = {}
        self.ports = [*self._open_ports()]
        self.channels = [*replay.flow.channels.index]
        self._orders: SimpleQueue[Order] = SimpleQueue()
        self._breaks: dict[str, bool] = {}
        self._looked, self._nodes, self._streams = 0.0, list[dict[str, Any]](), dict[str, Any]()
        self._do: Mapping[str, Callable[[float], str]] = {
            "step": self._step, "next": self._next, "play": self._play, "pause": lambda _: "paused",
        }  # fmt: skip
        replay.player.attend(-NEVER, self._attend)
        self._look()

    def _open_ports(self) -> list[Port]:
        """Return the ports, outputs of the compound first; each listens from now on."""
        names = {channel: name for name, channel in self.replay.playback.graph.outputs.items()}
        found: list[Port] = []
        for channel, outlet in self.replay.flow.outlets.items():
            found.append(Port(channel, names.get(channel, ""), outlet.port.type, self.start_ns))
            self.replay.flow.tap(channel, found[-1].take)
        return sorted(found, key=lambda port: not port.name)

    # Orders

    def order(self, what: str, number: float = 0.0) -> None:
        """Ask for something, from any thread; it is done after the wave that is under way.

        Parameters
        ----------
        what : {"step", "next", "play", "pause", "close"}
        number : float
            Of waves to step; of the channel whose next sample is wanted; the speed, 0 for as fast as can be.
        """
        if what not in {*self._do, "close"} or not 0 <= number < math.inf:
            raise ValueError(f"there is no order {what} {number}")
        if what == "next" and int(number) >= len(self.channels):
            raise ValueError(f"there is no channel {number}")
        self._orders.put(Order(what, number))
        if what != "step" or self.state == "playing":
            self.replay.player.pause()

    def obey(self) -> None:
        """Do what is ordered, one thing after the other, until `close`; then raise what went wrong, if so."""
        while (order := self._orders.get()).what != "close":
            if self.state not in ("ended", "failed"):
                self._advance(order)
            self.obeyed += 1
        if self.trouble is not None:
            raise self.trouble

    def _advance(self, order: Order) -> None:
        self.state, self._digest = "playing", ""
        try:
            self.why = self._do[order.what](order.number)
        except Exception as error:  # noqa: BLE001 - shown on the page, and raised when that is closed
            self.trouble, self.state, self.why = error, "failed", str(error)
        else:
            self._digest = digest_of_ports(self.replay.flow.port_digests)
            self.state = "ended" if self.why == END else "paused"
        self._look()

    def _step(self, waves: float) -> str:
        return self.replay.step(max(1, int(waves)))

    def _play(self, speed: float) -> str:
        self.speed = speed
        self.replay.player.set_rate(speed or None)
        return self.replay.play()

    def _next(self, number: float) -> str:
        """Play as fast as possible until a channel has its next sample."""
        channel = self.channels[int(number)]
        if channel not in self._breaks:
            self.replay.player.break_when(channel, lambda value: self._breaks[channel])
        self._breaks[channel] = True
        try:
            self.replay.player.set_rate(None)
            return self.replay.play()
        finally:
            self._breaks[channel] = False

    def _attend(self, t_ns: int) -> int:
        """Look now and then, before each wave; and see that no order is overheard."""
        if self.state == "playing" and not self._orders.empty():
            self.replay.player.pause()
        if time.monotonic() - self._looked > LOOKS_S:
            self._look()
        return t_ns

    # Looking

    def _look(self) -> None:
        """Note what nodes took and which verdicts are known, in the thread that plays: counters change."""
        self._looked = time.monotonic()
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
        if known is None or now == -NEVER:
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
        """Seconds to which it was played; None before the first sample."""
        t_ns = self.replay.flow.now_ns
        return None if t_ns <= -NEVER else (t_ns - self.start_ns) / NS

    def describe(self) -> dict[str, Any]:
        """Return what the page is told when it opens."""
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
        """Return how far it came and what there is to ask for."""
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
        """Return what nodes said, from that line on: seconds, node, text."""
        said = self.replay.notes.log[begin:]
        return [((t_ns - self.start_ns) / NS, node, text) for t_ns, node, text in said]


def _kind_of_port(kind: type) -> str:
    if kind in (Pose, RigidBodyState, Odometry, Trajectory):
        return "pose"
    return "number" if kind in (float, int, bool) else kind_of(kind) or "value"


def _row_of(seconds: float, value: Pose | RigidBodyState | Odometry) -> tuple[float, ...]:
    """Return a pose; NaN where it has none."""
    place = (math.nan,) * 3 if value.position is None else tuple(map(float, value.position))
    turn = (0.0, 0.0, 0.0, 1.0) if value.orientation is None else tuple(map(float, value.orientation))
    return (seconds, *place, *turn)


def _rows_of(path: Trajectory, start_ns: int) -> array[float]:
    turned = path.orientations
    if turned is None:
        turned = np.tile([0.0, 0.0, 0.0, 1.0], (len(path.t_ns), 1))
    rows = np.column_stack([(path.t_ns - start_ns) / NS, path.positions, turned])
    return array("d", rows.astype(np.float64).tobytes())


def _shorten(value: Any) -> str:
    """Return a value in a few words: where a pose is, how many points a cloud has, how large a picture is."""
    if isinstance(value, Pose | RigidBodyState | Odometry) and value.position is not None:
        text = "at {:.3f}, {:.3f}, {:.3f} m".format(*value.position)
    elif isinstance(value, PointCloud | Trajectory):
        text = f"{len(value):,} {'points' if isinstance(value, PointCloud) else 'poses'}"
    elif isinstance(value, Image | DepthMap):
        text = f"{value.data.shape[1]} x {value.data.shape[0]} pixels"
    elif isinstance(value, GridMap):
        text = "{} x {} cells".format(*next(iter(value.layers.values())).shape)
    elif isinstance(value, np.ndarray) and value.size > FEW:
        text = f"array {' x '.join(map(str, value.shape))}"
    else:
        text = f"{value:.6g}" if isinstance(value, float) else " ".join(repr(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _known(seconds: float) -> float | None:
    return None if math.isnan(seconds) else seconds


def watch(replay: Replay, *, port: int = 0, show: Callable[[str], object] = webbrowser.open) -> None:
    """Let a person step, play and pause a replay in a browser; return when the page is closed.

    For `transect.run`: ``transect.run("LidarOdometry", recording, play=watch)``. What is watched gives the
    digest that it gives unwatched.

    Parameters
    ----------
    replay : Replay
    port : int
        0 for any that is free.
    show : callable
        Is given the address of the page.

    Raises
    ------
    UsageError
        If the replay plays on several threads.
    """
    if replay.settings.jobs > 1:
        raise UsageError("a run that is watched plays one wave after the other", hint="leave jobs out")
    scene = Scene(replay.recording)
    watched = Watch(replay, scene.axis.start_ns)
    viewer = Viewer(scene, port, watch=watched)
    server = threading.Thread(target=_serve, args=(viewer, watched), daemon=True)
    server.start()
    try:
        with _closing_on_interrupt(watched):
            show(viewer.url)
            watched.obey()
    finally:
        viewer.close()
        server.join()


def _serve(viewer: Viewer, watched: Watch) -> None:
    viewer.serve()
    watched.order("close")


@contextmanager
def _closing_on_interrupt(watched: Watch) -> Generator[None]:
    """Let Ctrl-C end the watching after the wave that is under way; a second one interrupts at once."""
    if threading.current_thread() is not threading.main_thread():  # others cannot handle signals
        yield
        return

    def close(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        watched.order("close")

    before = signal.signal(signal.SIGINT, close)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

"""What a node may ask while it runs: the time, frames, stored products, the integrity of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from zlib import crc32

from transect.recording import FrameTree, Robot
from transect.types import PlaceMap, Verdict

from .statistics import NodeCount
from .trust import DowngradedSamples, StreamVerdicts, Verdicts, trust_of, worst_of

if TYPE_CHECKING:
    from numpy.random import Generator

    from .graph import PlacedNode


MAP = "map"  # instead of a node, in conclusions about the map that a run was given


class Store(Protocol):
    """A store of products, from which nodes get stored maps."""

    def find(self, **wanted: Any) -> Any:
        """Return matching products."""
        ...

    def get(self, identifier: str) -> Any:
        """Return one product."""
        ...


@dataclass(frozen=True)
class KeptMap:
    """The map of an earlier run, for a run that localises in it or extends it."""

    places: PlaceMap
    path: str  # as the user typed it
    digest: str  # of its content
    extend: bool = False  # whether this run adds to it
    failures: tuple[str, ...] = ()  # why the map must not be trusted
    outdated: str = ""  # names the changed inputs of the run that made it

    def conclude(self) -> list[Conclusion]:
        """Return conclusions for a run that uses the map: its result is no better than the map."""
        found = [Conclusion(MAP, f"the map {self.path}: {text}", bad=True) for text in self.failures]
        return [*found, Conclusion(MAP, self.outdated)] if self.outdated else found

    def describe(self) -> dict[str, Any]:
        """Return which map it is and whether it is extended, as plain values."""
        return {"kind": self.places.kind, "digest": self.digest, "extend": self.extend}


@dataclass(frozen=True)
class Conclusion:
    """A conclusion of a node about the whole run, for the user."""

    node: str
    text: str
    bad: bool = False  # whether the result should not be trusted
    noise: bool = False  # whether it is about the noise of a sensor: declared, estimated or assumed


class Context:
    """The interface of a run to a node, as `self.ctx`.

    Attributes
    ----------
    time : int
        Nanoseconds: the time of the trigger that is being processed.
    frames : FrameTree
        Of the recording.
    robot : Robot or None
        Of the recording, if known.
    store : Store or None
    map : KeptMap or None
        The map of an earlier run that this one uses.
    node : str
        The name of the node in its compound, as `--set` takes it.
    pass_index : int
        Index of the replay, from 0; more than one only for nodes with `passes=n`.
    """

    __slots__ = (
        "_candidates",
        "_concluded",
        "_count",
        "_downgraded",
        "_fed",
        "_logged",
        "_noise",
        "_seed",
        "_sensors",
        "_streams",
        "_verdicts",
        "frames",
        "map",
        "node",
        "pass_index",
        "robot",
        "store",
        "time",
    )

    def __init__(
        self,
        count: NodeCount | None = None,
        frames: FrameTree | None = None,
        store: Store | None = None,
        verdicts: Verdicts | None = None,
        streams: Mapping[str, Sequence[str]] | None = None,
        seed: int = 0,
        logged: Callable[[int, str], None] | None = None,
        fed: Collection[str] | None = None,
        concluded: Callable[[str, bool], None] | None = None,
        robot: Robot | None = None,
        sensors: Mapping[str, Sequence[str]] | None = None,
        downgraded: Callable[[str], DowngradedSamples] | None = None,
        map: KeptMap | None = None,
        node: str = "node",
        noise: Callable[[str], None] | None = None,
        candidates: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.time, self.node = 0, node
        self._noise, self._candidates = noise, candidates or {}
        self.frames = frames if frames is not None else FrameTree()
        self.store, self.robot, self.map = store, robot, map
        self.pass_index = 0
        self._count = count if count is not None else NodeCount()
        self._verdicts, self._seed, self._logged = verdicts, seed, logged
        self._streams = streams or {}
        self._fed, self._concluded, self._sensors = fed, concluded, sensors or {}
        self._downgraded = downgraded

    def is_fed(self, port: str) -> bool:
        """Return whether an optional input is wired; outside of a run every input is."""
        return self._fed is None or port in self._fed

    def frames_of(self, port: str) -> Sequence[str]:
        """Return the frames of the streams behind an input; "" for an unknown one."""
        return self._sensors.get(port, ())

    def wires_of(self, port: str) -> Sequence[str]:
        """Return the options that would wire a stream of the recording to an input that nothing feeds."""
        return self._candidates.get(port, ())

    def integrity(self, port: str, t_ns: int | None = None) -> Verdict | None:
        """Return the combined verdict on the sensor behind an input, None if there is none.

        It is that of the newest window that had ended at `t_ns`, by default now, unless the run has
        hindsight. Behind an input that a node feeds are the streams that feed that node; the worst of them
        counts.
        """
        known = self._known(port, t_ns)
        return None if known is None else known.whole

    def trust(self, port: str, t_ns: int | None = None, others: Collection[str] = ()) -> float:
        """Return the weight of a sample of an input: use sigma / trust, or R / trust^2. 1 without faults.

        Parameters
        ----------
        t_ns : int, optional
            Its time; by default now.
        others : collection of str
            Inputs that can replace this one. If it is BAD, and one of them is wired and not BAD, 0 is
            returned: the sample must not be used. Else at least 0.05.
        """
        if self.is_rejected(port, t_ns, others):
            return 0.0
        known = self._known(port, t_ns)
        trust = 1.0 if known is None else trust_of(known.rest)
        if known is not None and trust < 1 and self._downgraded is not None:
            self._downgraded(port).add_trust(self.time if t_ns is None else t_ns, trust, known.rest.reason)
        return trust

    def is_rejected(self, port: str, t_ns: int | None, others: Collection[str]) -> bool:
        """Return whether a sample must not be used: its sensor is BAD, and another input can replace it."""
        known = self._known(port, t_ns)
        if known is None or known.rest.state != "BAD" or not any(self._is_good(o, t_ns) for o in others):
            return False
        if self._downgraded is not None:
            self._downgraded(port).add_trust(self.time if t_ns is None else t_ns, 0.0, known.rest.reason)
        return True

    def _is_good(self, port: str, t_ns: int | None) -> bool:
        known = self._known(port, t_ns)
        return self.is_fed(port) and (known is None or known.rest.state != "BAD")

    def _known(self, port: str, t_ns: int | None) -> StreamVerdicts | None:
        if self._verdicts is None:
            return None
        at_ns = self.time if t_ns is None else t_ns
        known = [self._verdicts.known_at(stream, at_ns) for stream in self._streams.get(port, ())]
        return worst_of([each for each in known if each is not None])

    def skip(self, reason: str) -> None:
        """Count why nothing is emitted for this sample; ``return self.ctx.skip("too dark")``."""
        self._count.skipped[reason] += 1

    def leave_out(self, port: str, reason: str) -> None:
        """Count a sample of an input that is not used, and why."""
        self._count.samples[port, "used"] -= 1
        self._count.samples[port, reason] += 1

    def log(self, message: str) -> None:
        """Write a line with time and node to the log of the run."""
        if self._logged is not None:
            self._logged(self.time, message)

    def conclude(self, text: str, *, bad: bool = False) -> None:
        """Report the quality of the run; `transect run` prints it last, and exits with 4 if it is bad."""
        if self._concluded is not None:
            self._concluded(text, bad)

    def report_noise(self, text: str) -> None:
        """Report which noise of a sensor was used; results begin with these lines."""
        if self._noise is not None:
            self._noise(text)

    @property
    def rng(self) -> Generator:
        """A random generator seeded by node and time at each call: the same in every replay."""
        import numpy as np

        return np.random.default_rng((self._seed, self.time & 0xFFFF_FFFF_FFFF_FFFF, self.pass_index))


@dataclass(frozen=True)
class NodeEnvironment:
    """Everything except the time that nodes access through `ctx`."""

    frames: FrameTree = field(default_factory=FrameTree)
    store: Store | None = None
    verdicts: Verdicts | None = None
    # By channel, an input of the graph or a node's output: the names of the streams behind it
    streams: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    unwired: Collection[str] = ()  # inputs of the graph that no stream feeds
    logged: Callable[[str, int, str], None] | None = None  # takes (node, time in ns, message)
    concluded: Callable[[Conclusion], None] | None = None  # takes a `Conclusion`
    hashed: bool = True  # whether outputs are hashed; not if they are discarded
    robot: Robot | None = None
    # By input of the graph: the frames of the streams that feed it
    sensors: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    # Returns, for a node and an input, the counts of downgraded samples
    downgraded: Callable[[str, str], DowngradedSamples] | None = None
    map: KeptMap | None = None
    candidates: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    def context_of(self, part: PlacedNode, count: NodeCount) -> Context:
        """Return the context of one node."""
        streams = {port: self.streams[f.source] for port, f in part.feeds.items() if f.source in self.streams}
        logged, concluded, downgraded = self.logged, self.concluded, self.downgraded
        return Context(
            count,
            self.frames,
            self.store,
            self.verdicts,
            streams,
            crc32(part.id.encode()),
            (lambda t_ns, text: logged(part.id, t_ns, text)) if logged else None,
            {port for port, feed in part.feeds.items() if feed.source not in self.unwired},
            (lambda text, bad: concluded(Conclusion(part.id, text, bad))) if concluded else None,
            self.robot,
            {port: self.sensors.get(feed.source, ()) for port, feed in part.feeds.items()},
            (lambda port: downgraded(part.id, port)) if downgraded else None,
            self.map,
            part.id,
            (lambda text: concluded(Conclusion(part.id, text, noise=True))) if concluded else None,
            {port: self.candidates.get(feed.source, ()) for port, feed in part.feeds.items()},
        )

"""Planning: from a kind of product back to the streams of a recording, across the compounds on the shelf.

A compound gives a product if an output port has the kind's name (`DEM`: the port `dem`), or its type. Its
inputs are fed by the recording, or by what another compound gives, and so on backwards. Whatever was not
chosen is refused with a reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from transect.engine import Compound
from transect.engine.overview import CompoundListing, list_compounds
from transect.engine.replay import Options, Replay
from transect.engine.wiring import WiringError, fits
from transect.errors import TransectError, UsageError, did_you_mean
from transect.recording import Recording
from transect.recording.stream import stream_of_values
from transect.types import Pose

from .preferences import Preferences

if TYPE_CHECKING:
    from transect.engine.graph import Graph

    from .rivalry import Rivalry

DEEPEST = 2
"""Compounds that may stand one behind the other."""
CHAINED = (Pose,)
"""Types that one compound may give to another: what was found out about where the robot was."""

ALSO = {"map": ("gridmap",)}
"""Types that a kind means besides those of its name, in small letters: a map may be one of heights."""
JOINING = "PoseSwitching"
"""Makes one product of others: it is told by a policy what to use, and is no way to a product by itself."""


@dataclass(frozen=True)
class Refusal:
    """What was not used, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class Step:
    """A compound that is run.

    Attributes
    ----------
    compound : Compound
    port : str
        The output that is wanted of it.
    wiring : tuple of (str, str)
        Input and stream; the stream of an input that `before` feeds has the name of that step.
    before : tuple of Step
        What must be run first.
    """

    compound: Compound
    port: str
    wiring: tuple[tuple[str, str], ...] = ()
    before: tuple[Step, ...] = ()

    @property
    def name(self) -> str:
        """Also of the stream that another step gets of it."""
        return f"{self.compound.name}:{self.port}"

    def lines(self, indent: str = "") -> Iterator[str]:
        """Say what is run, the first thing first."""
        for step in self.before:
            yield from step.lines(indent)
        fed = ", ".join(f"{port} from {stream}" for port, stream in self.wiring)
        yield f"{indent}run {self.compound.name} ({fed}) for {self.port}"


@dataclass(frozen=True)
class Plan:
    """How a product is made.

    Attributes
    ----------
    kind : str
    step : Step or None
        The last one; None if there is no way.
    refused : tuple of Refusal
    rivalry : Rivalry or None
        What several compounds or sensors make in turn: the product itself, or the poses that it needs.
    """

    kind: str
    step: Step | None
    refused: tuple[Refusal, ...] = ()
    rivalry: Rivalry | None = None

    def steps(self) -> list[str]:
        """Say what is run, the first thing first."""
        if self.step is None:
            return []
        lines = list(self.step.lines())
        if self.rivalry is None or self.step == self.rivalry.last:
            return lines
        return [*self.rivalry.last.lines(), lines[-1]]

    def lines(self, max_refusals: int | None = None) -> list[str]:
        """Say what is run, what takes turns, and what was refused, of that at most so many."""
        steps = self.steps() or [f"there is no way to a {self.kind}"]
        told = self.rivalry.tell() if self.rivalry else []
        return [*steps, *told, *self._list_refusals(max_refusals)]

    def _list_refusals(self, max_refusals: int | None) -> list[str]:
        shown = self.refused[:max_refusals]
        refused = [f"not {refusal.what}: {refusal.why}" for refusal in shown]
        if more := len(self.refused) - len(shown):
            refused.append(f"{more} more were refused: --all lists them")
        return refused

    def refusals(self, max_refusals: int | None = None) -> str:
        """Return what was refused and why, as the reason of an error, which is indented."""
        import textwrap

        lines = self._list_refusals(max_refusals) or ["no compound that gives it can be fed"]
        indent = " " * 9
        return f"\n{indent}".join(
            f"\n{indent}".join(textwrap.wrap(line, 69, subsequent_indent="  ")) for line in lines
        )

    def text(self, max_refusals: int | None = None) -> str:
        """Return the lines, wrapped."""
        import textwrap

        lines = self.lines(max_refusals)
        return "\n".join("\n".join(textwrap.wrap(line, 78, subsequent_indent="  ")) for line in lines)

    def __str__(self) -> str:
        return self.text()


def make_plan(
    kind: str,
    recording: Recording,
    preferences: Preferences,
    refused: Sequence[Refusal] = (),
    rivalry: Rivalry | None = None,
) -> Plan:
    """Return how a product can be made from a recording.

    Parameters
    ----------
    kind : str
        Name of an output port, or of its type: `DEM`, `Pose`, `Trajectory`, `PointCloud`, `map`.
    refused : sequence of Refusal
        What was refused before: streams that are not in `recording` any more.
    rivalry : Rivalry
        What makes poses in turn; compounds that need poses come first, and get them from it.

    Raises
    ------
    UsageError
        If no compound gives such a product at all.
    """
    listed = list_compounds()
    if not any(_ports(compound, kind) for compound in listed):
        known = sorted({name for each in listed for port in each.outputs for name in (port.name, port.type)})
        raise UsageError(f"no compound gives a {kind}", hint=did_you_mean(kind, known))
    planner = _Planner(recording, listed, preferences, list(refused), rivalry.last if rivalry else None)
    step = planner.plan(kind, DEEPEST)
    used = rivalry if rivalry and step and rivalry.last in step.before else None
    return Plan(kind, step, tuple(planner.refused), used)


def try_step(name: str, kind: str, recording: Recording) -> Step | Refusal:
    """Return the step of one compound for a product, or why it cannot be."""
    compound = Compound.of(name)
    planner = _Planner(recording, (), Preferences(), [])
    ports = [port for port in compound.graph().outputs if port.casefold() == kind.casefold()]
    step = planner.try_compound(compound, ports[0], depth=1) if ports else None
    nothing = Refusal(name, f"it gives no {kind}")
    return step or (planner.refused[0] if planner.refused else nothing)


def is_of_kind(kind: str, name: str, type_name: str) -> bool:
    """Tell whether an output, or a product, of a name and a type is what is asked for by a kind."""
    meant = {kind.casefold(), *ALSO.get(kind.casefold(), ())}
    return not meant.isdisjoint({name.casefold(), type_name.casefold()})


def _ports(compound: CompoundListing, kind: str) -> list[str]:
    """Return the outputs of a compound that are of a kind, those of its name first."""
    found = [port.name for port in compound.outputs if is_of_kind(kind, port.name, port.type)]
    return sorted(found, key=lambda name: name.casefold() != kind.casefold())


def _list_wires(replay: Replay) -> tuple[tuple[str, str], ...]:
    return tuple((name, stream.name) for name, stream in replay.playback.wiring.pairs)


def _needs_poses(compound: Compound) -> bool:
    graph = compound.graph()
    return any(graph.inputs[name].type is Pose for name in graph.needed_inputs())


@dataclass
class _Planner:
    recording: Recording
    listed: Sequence[CompoundListing]
    preferences: Preferences
    refused: list[Refusal]
    poses: Step | None = None

    def plan(self, kind: str, depth: int, without: str = "") -> Step | None:
        """Return the first way to a product that the recording can feed, without one compound."""
        for compound, port in self._candidates(kind, without):
            step = self.try_compound(compound, port, depth)
            if step is not None:
                return step
        return None

    def _candidates(self, kind: str, without: str) -> list[tuple[Compound, str]]:
        """Return implementations that could give a product, the preferred ones first."""
        found = [
            (implementation, ports[0])
            for listing in self.listed
            if listing.name not in (without, JOINING) and (ports := _ports(listing, kind))
            for implementation in Compound.of(listing.name).candidates()
        ]
        ranked = sorted(found, key=lambda each: self.preferences.rank(kind, each[0].name))
        return sorted(ranked, key=lambda each: not _needs_poses(each[0])) if self.poses else ranked

    def try_compound(self, compound: Compound, port: str, depth: int) -> Step | None:
        """Return a step if its inputs can be fed, else note why not."""
        graph = compound.graph()
        if port not in graph.outputs:
            return None
        try:
            replay = Replay(compound, self.recording, Options(), in_memory=False)
        except WiringError as error:
            return self._chain(compound, port, depth, graph) or self._refuse(compound, error)
        except TransectError as error:
            return self._refuse(compound, error)
        return Step(compound, port, _list_wires(replay))

    def _chain(self, compound: Compound, port: str, depth: int, graph: Graph) -> Step | None:
        """Return a step whose only missing input another compound can give."""
        missing = [name for name in graph.needed_inputs() if not self._is_there(graph.inputs[name].type)]
        if depth <= 1 or len(missing) != 1 or graph.inputs[missing[0]].type not in CHAINED:
            return None
        [name] = missing
        before = self.poses or self.plan(graph.inputs[name].type.__name__, depth - 1, compound.text.name)
        if before is None:
            return None
        poses = stream_of_values(
            before.name, np.empty(0, np.int64), {}, type=Pose, role="estimate", clock=self.recording.clock
        )
        fed = self.recording.replace(streams=(*self.recording.streams, poses))
        try:
            replay = Replay(compound, fed, Options(wire={name: before.name}), in_memory=False)
        except TransectError:
            return None
        return Step(compound, port, _list_wires(replay), (before,))

    def _is_there(self, kind: type) -> bool:
        return any(stream.role == "measurement" and fits(kind, stream.type) for stream in self.recording)

    def _refuse(self, compound: Compound, error: TransectError) -> None:
        why = error.what if not error.why else f"{error.what}: {error.why}"
        self.refused.append(Refusal(compound.name, " ".join(why.split())))

"""Planning: search backwards from a kind of product to the streams of a recording, across all compounds.

A compound gives a product if one of its output ports has the kind's name (`DEM`: the port `dem`) or its type.
Its inputs are fed by the recording, or by another compound, recursively. Every candidate that is not used is
listed with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from transect.engine import Compound
from transect.engine.overview import CompoundListing, list_compounds
from transect.engine.port_types import kind_of
from transect.engine.replay import Options, Replay
from transect.engine.wiring import WiringError, fits
from transect.errors import TransectError, UsageError, did_you_mean
from transect.recording import Recording
from transect.recording.stream import stream_of_values
from transect.types import Pose

from .preferences import Preferences

if TYPE_CHECKING:
    from transect.engine.graph import Graph

    from .fallback_plans import FallbackPlan

MAX_CHAIN_LENGTH = 2  # compounds of which one feeds the next
CHAINED_TYPES = (Pose,)  # types that one compound may give to another
# Types that a kind includes in addition to its own name, in lower case: a map may be a height map.
KIND_TYPES = {"map": ("gridmap",)}
# Joins the poses of other compounds as a policy demands, and gives no poses by itself.
JOINING_COMPOUND = "PoseSwitching"


@dataclass(frozen=True)
class Refusal:
    """A compound, a stream or a product that was not used, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class PlanStep:
    """A compound that is run for one of its outputs."""

    compound: Compound
    port: str  # the output that is wanted
    # Input and stream; the stream of an input that a step in `before` feeds has the name of that step.
    wiring: tuple[tuple[str, str], ...] = ()
    before: tuple[PlanStep, ...] = ()  # steps that are run first

    @property
    def name(self) -> str:
        """Also the name of the stream that another step gets from it."""
        return f"{self.compound.name}:{self.port}"

    def lines(self, indent: str = "") -> Iterator[str]:
        """Yield a line for each compound, in the order in which they run."""
        for step in self.before:
            yield from step.lines(indent)
        fed = ", ".join(f"{port} from {stream}" for port, stream in self.wiring)
        yield f"{indent}run {self.compound.name} ({fed}) for {self.port}"


@dataclass(frozen=True)
class Plan:
    """How a product is made."""

    kind: str
    step: PlanStep | None  # the last one; None if no compound can make the product
    refused: tuple[Refusal, ...] = ()
    # Redundant compounds or sensors that make the product itself, or the poses that it needs
    fallbacks: FallbackPlan | None = None

    def steps(self) -> list[str]:
        """Return a line for each compound, in the order in which they run."""
        if self.step is None:
            return []
        lines = list(self.step.lines())
        if self.fallbacks is None or self.step == self.fallbacks.final_step:
            return lines
        return [*self.fallbacks.final_step.lines(), lines[-1]]

    def lines(self, max_refusals: int | None = None) -> list[str]:
        """Return what is run, the alternatives, and at most `max_refusals` refusals."""
        steps = self.steps() or [f"no compound can make a {self.kind}"]
        alternatives = self.fallbacks.describe() if self.fallbacks else []
        return [*steps, *alternatives, *self._list_refusals(max_refusals)]

    def _list_refusals(self, max_refusals: int | None) -> list[str]:
        listed = self.refused[:max_refusals]
        refused = [f"not {refusal.what}: {refusal.why}" for refusal in listed]
        if more := len(self.refused) - len(listed):
            refused.append(f"{more} more were refused: --all lists them")
        return refused

    def refusals(self, max_refusals: int | None = None) -> str:
        """Return what was refused and why, as the indented reason of an error."""
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
    fallbacks: FallbackPlan | None = None,
) -> Plan:
    """Return how a product can be made from a recording.

    Parameters
    ----------
    kind : str
        Name of an output port, or of its type: `DEM`, `Pose`, `Trajectory`, `PointCloud`, `map`.
    refused : sequence of Refusal
        Streams that were refused before, and are not in `recording` any more.
    fallbacks : FallbackPlan
        Makes poses from redundant sensors; compounds that need poses are preferred and get them from it.

    Raises
    ------
    UsageError
        If no compound gives such a product at all.
    """
    listed = list_compounds()
    if not any(_matching_ports(compound, kind) for compound in listed):
        known = sorted({name for each in listed for port in each.outputs for name in (port.name, port.type)})
        raise UsageError(f"no compound gives a {kind}", hint=did_you_mean(kind, known))
    planner = _Planner(
        recording, listed, preferences, list(refused), fallbacks.final_step if fallbacks else None
    )
    step = planner.plan(kind, MAX_CHAIN_LENGTH)
    used = fallbacks if fallbacks and step and fallbacks.final_step in step.before else None
    return Plan(kind, step, tuple(planner.refused), used)


def try_step(name: str, kind: str, recording: Recording) -> PlanStep | Refusal:
    """Return the step of one compound for a product, or why it is not possible."""
    compound = Compound.of(name)
    planner = _Planner(recording, (), Preferences(), [])
    ports = [port for port in compound.graph().outputs if port.casefold() == kind.casefold()]
    step = planner.try_compound(compound, ports[0], depth=1) if ports else None
    nothing = Refusal(name, f"it gives no {kind}")
    return step or (planner.refused[0] if planner.refused else nothing)


def is_of_kind(kind: str, name: str, type_name: str) -> bool:
    """Return whether an output, or a product, of a name and a type is of the kind that was asked for."""
    accepted = {kind.casefold(), *KIND_TYPES.get(kind.casefold(), ())}
    return not accepted.isdisjoint({name.casefold(), type_name.casefold()})


def _matching_ports(compound: CompoundListing, kind: str) -> list[str]:
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
    poses: PlanStep | None = None

    def plan(self, kind: str, depth: int, without: str = "") -> PlanStep | None:
        """Return the first candidate that the recording can feed, ignoring one compound."""
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
            if listing.name not in (without, JOINING_COMPOUND) and (ports := _matching_ports(listing, kind))
            for implementation in Compound.of(listing.name).candidates()
        ]
        ranked = sorted(found, key=lambda each: self.preferences.rank(kind, each[0].name))
        return sorted(ranked, key=lambda each: not _needs_poses(each[0])) if self.poses else ranked

    def try_compound(self, compound: Compound, port: str, depth: int) -> PlanStep | None:
        """Return a step if its inputs can be fed; otherwise record the reason."""
        if unfed := self._inputs_without_streams(compound, port):
            self.refused.append(Refusal(compound.name, f"no stream feeds any of its inputs: {unfed}"))
            return None
        graph = compound.graph()
        if port not in graph.outputs:
            return None
        try:
            replay = Replay(compound, self.recording, Options(), in_memory=False)
        except WiringError as error:
            return self._chain(compound, port, depth, graph) or self._refuse(compound, error)
        except TransectError as error:
            return self._refuse(compound, error)
        return PlanStep(compound, port, _list_wires(replay))

    def _inputs_without_streams(self, compound: Compound, port: str) -> str:
        """Return the inputs of a compound if the recording feeds none of them, else "".

        Decided by the description alone, without importing the nodes. Compounds whose inputs another compound
        could feed are not decided here; those that make poses from nothing but poses add no information.
        """
        if compound.chosen.controller:
            return ""
        used = {wire.source for wire in compound.chosen.wires}
        known = {name: kind_of(each.type) for name, each in compound.text.inputs.items() if name in used}
        inputs = {name: kind for name, kind in known.items() if isinstance(kind, type)}
        gives_chained = kind_of(compound.text.outputs[port].type) in CHAINED_TYPES
        if not inputs or len(inputs) < len(known):
            return ""
        if not gives_chained and any(kind in CHAINED_TYPES for kind in inputs.values()):
            return ""
        fed = any(fits(kind, stream.type) for kind in inputs.values() for stream in self.recording)
        return "" if fed else ", ".join(inputs)

    def _chain(self, compound: Compound, port: str, depth: int, graph: Graph) -> PlanStep | None:
        """Return a step whose only missing input another compound can give."""
        missing = [name for name in graph.needed_inputs() if not self._has_stream(graph.inputs[name].type)]
        if depth <= 1 or len(missing) != 1 or graph.inputs[missing[0]].type not in CHAINED_TYPES:
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
        return PlanStep(compound, port, _list_wires(replay), (before,))

    def _has_stream(self, kind: type) -> bool:
        return any(stream.role == "measurement" and fits(kind, stream.type) for stream in self.recording)

    def _refuse(self, compound: Compound, error: TransectError) -> None:
        why = error.what if not error.why else f"{error.what}: {error.why}"
        self.refused.append(Refusal(compound.name, " ".join(why.split())))

"""Plans with alternatives: redundant compounds, or sensors of one compound, for the same product."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from transect.engine import Compound
from transect.types import Odometry, WheelState

from .plans import PlanStep, Refusal, try_step
from .policy import Alternative, FallbackRule, SensorPolicy
from .switches import SuspectSpan, Switch

if TYPE_CHECKING:
    from transect.recording import Recording

JOIN_INPUTS = ("first", "second", "third")  # inputs of the compound that joins trajectories
MOTION_INPUT = "motion"  # input of the smoother for the odometry of another sensor


@dataclass(frozen=True)
class FallbackResults:
    """What running a plan with alternatives gave."""

    switches: tuple[Switch, ...] = ()  # as they were decided
    suspect: tuple[SuspectSpan, ...] = ()  # measurements that the smoother weights by their agreement
    agreement: tuple[str, ...] = ()  # what the smoother reports of these weights
    made: tuple[str, ...] = field(default=(), repr=False)  # ids of the outputs of the last step
    # By the name of an alternative's step: the id of its poses
    poses: dict[str, str] = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True)
class FallbackPlan:
    """Alternatives that can make a product of a recording, and how their outputs are joined."""

    kind: str
    # Makes one product; the steps of alternative compounds are `before` it, none if the joining compound has
    # the sensors itself.
    join: PlanStep
    parameter: str  # of the joining compound: which alternative is used when
    choices: tuple[Alternative, ...]  # those that the recording can feed, the preferred one first
    group_streams: dict[str, list[str]]  # by sensor group: its streams that are used
    dwell: float  # seconds for which an alternative is kept at least
    margin: float = 0.0  # seconds before a suspect window in which a sensor is not used either
    refused: tuple[Refusal, ...] = ()
    smoothing: PlanStep | None = None  # makes the final trajectory; None if the joined output is the product
    set: dict[str, float] = field(default_factory=dict[str, float])  # parameters of the smoothing compound
    origin_ns: int = 0  # from which printed times count
    results: FallbackResults | None = None  # None before the plan is run

    @property
    def alternatives(self) -> tuple[PlanStep, ...]:
        """Compounds behind the choices."""
        return self.join.before

    @property
    def final_step(self) -> PlanStep:
        """The step that gives the product."""
        return self.smoothing or self.join

    @property
    def mapping_step(self) -> PlanStep:
        """The step along whose poses a map is made, once the plan has been run.

        It is the one that gives the product, unless an odometry matched its scans with a map of its own:
        there its scans fit best. If that odometry was suspect, so were its scans.
        """
        suspect = self.results.suspect if self.results else ()
        if self.smoothing is None or any(each.what == MOTION_INPUT for each in suspect):
            return self.final_step
        name = dict(self.smoothing.wiring)[MOTION_INPUT]
        with_map = {choice.use for choice in self.choices if choice.map_radius}
        found = (each for each in self.alternatives if each.name == name and each.compound.name in with_map)
        return next(found, self.final_step)

    def describe(self) -> list[str]:
        """Return lines about the alternatives and, once the plan has been run, the switches between them."""
        rows = [_describe(choice, self.group_streams) for choice in self.choices]
        dwell = f"each choice is kept for {self.dwell:g} s at least"
        margin = f"; {self.margin:g} s before a suspect window are removed, too" if self.margin else ""
        lines = [f"{self.kind} by the first of these; {dwell}{margin}", *rows]
        if self.results is None:
            return lines
        lines.append(f"from the start: {self.choices[0].use}")
        lines += [each.describe(self.origin_ns) for each in self.results.switches] or ["no switch"]
        if self.smoothing:
            spans = " and ".join(each.describe(self.origin_ns) for each in self.results.suspect)
            name = self.smoothing.compound.name
            lines.append(f"in the end: {name} of all sensors; suspect: {spans or 'nothing'}")
            lines += self.results.agreement
        return lines


def _describe(choice: Alternative, group_streams: dict[str, list[str]]) -> str:
    streams = [name for group in choice.unless for name in group_streams.get(group, ())]
    groups = " or ".join(choice.unless)
    return f"- {choice.use}, unless {groups} is BAD ({', '.join(streams)})" if streams else f"- {choice.use}"


def plan_fallbacks(kind: str, recording: Recording, policy: SensorPolicy) -> FallbackPlan | None:
    """Return how several compounds or sensors could make a product; None if only one could."""
    rule = policy.rule_for(kind)
    if rule is None:
        return None
    if "/" in rule.choices[0].use:
        return _plan_compounds(kind, rule, recording, policy)
    return _plan_sensors(kind, rule, recording, policy)


def _plan_compounds(
    kind: str, rule: FallbackRule, recording: Recording, policy: SensorPolicy
) -> FallbackPlan | None:
    found: list[tuple[Alternative, PlanStep]] = []
    refused: list[Refusal] = []
    for choice in rule.choices:
        tried = try_step(choice.use, kind, recording)
        if isinstance(tried, Refusal):
            refused.append(tried)
        elif len(found) < len(JOIN_INPUTS):
            found.append((choice, tried))
    if len(found) < 2:
        return None
    steps = tuple(step for _, step in found)
    wiring = tuple((port, step.name) for port, step in zip(JOIN_INPUTS, steps, strict=False))
    join = PlanStep(Compound.of(rule.joined_by).candidates()[0], kind.lower(), wiring, steps)
    used = {stream for step in steps for _, stream in step.wiring}
    choices = tuple(choice for choice, _ in found)
    return FallbackPlan(
        kind, join, rule.parameter, choices, _group_streams(policy, recording, used), policy.dwell,
        rule.margin, tuple(refused), _plan_smoothing(rule, recording, join), rule.set, _start(recording),
    )  # fmt: skip


def _plan_smoothing(rule: FallbackRule, recording: Recording, join: PlanStep) -> PlanStep | None:
    """Return the step that smooths the sensors and the first odometry without wheels, if it can run."""
    step = try_step(rule.smoothed_by, join.port, recording) if rule.smoothed_by else None
    odometry = next((each for each in join.before if not has_wheels(each, recording)), None)
    if not isinstance(step, PlanStep) or odometry is None or not has_wheels(step, recording):
        return None
    return replace(step, wiring=(*step.wiring, (MOTION_INPUT, odometry.name)), before=(join,))


def has_wheels(step: PlanStep, recording: Recording) -> bool:
    """Return whether a step is fed with wheels: its motion does not reveal wheel slip then."""
    return any(issubclass(recording[name].type, WheelState | Odometry) for _, name in step.wiring)


def _plan_sensors(
    kind: str, rule: FallbackRule, recording: Recording, policy: SensorPolicy
) -> FallbackPlan | None:
    tried = [try_step(each.name, kind, recording) for each in Compound.of(rule.joined_by).candidates()]
    join = next((step for step in tried if isinstance(step, PlanStep)), None)
    if join is None:
        return None
    streams = _group_streams(policy, recording, {stream for _, stream in join.wiring})
    choices = tuple(each for each in rule.choices if any(streams.get(group) for group in each.unless))
    if len(choices) < 2:
        return None
    return FallbackPlan(
        kind, join, rule.parameter, choices, streams, policy.dwell, rule.margin, origin_ns=_start(recording)
    )


def _start(recording: Recording) -> int:
    return recording.span[0] if recording.span else 0


def _group_streams(policy: SensorPolicy, recording: Recording, used: set[str]) -> dict[str, list[str]]:
    """Return by sensor group its streams that are used."""
    return {
        group: [s.name for s in recording if s.name in used and s.type.__name__ in types]
        for group, types in policy.groups.items()
    }

"""What can make a product in turn, compounds or sensors of one compound, as policy and recording allow."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from transect.engine import Compound
from transect.types import Odometry, WheelState

from .planning import Refusal, Step, try_step
from .policy import Choice, Contest, Policy
from .switching import Doubted, Switch

if TYPE_CHECKING:
    from transect.recording import Recording

PORTS = ("first", "second", "third")
"""Inputs of the compound that joins trajectories."""
MOTION = "motion"
"""Input of the smoother for the odometry by another sensor."""


@dataclass(frozen=True)
class Rivalry:
    """What can make a product of a recording, in turn.

    Attributes
    ----------
    kind : str
    join : Step
        What makes one product of it; the compounds behind the choices stand before it, none where the joining
        compound has the sensors itself.
    parameter : str
        Of the joining compound: it is told what is used when.
    choices : tuple of Choice
        Those that the recording can feed, the best first.
    members : mapping of str to list of str
        By group of sensors: the streams that are used of it.
    dwell, margin : float
        Seconds that a choice holds at least, and that are taken out before doubts.
    refused : tuple of Refusal
    switches : tuple of Switch
        Once it has been run: as they were decided.
    smoothing : Step or None
        What makes the trajectory in the end, after `join`; None where what is joined is the product.
    set : mapping of str to float
        Parameters of what smooths.
    doubted : tuple of Doubted
        What counts as far as it agrees with the rest, once it has been run.
    weighed : tuple of str
        How far that was.
    origin_ns : int
        From which the times of switches are counted when they are told.
    made : tuple of str
        Ids of what the last step gave.
    poses : mapping of str to str
        By the name of a rival: the id of its poses.
    """

    kind: str
    join: Step
    parameter: str
    choices: tuple[Choice, ...]
    members: dict[str, list[str]]
    dwell: float
    margin: float = 0.0
    refused: tuple[Refusal, ...] = ()
    switches: tuple[Switch, ...] = ()
    smoothing: Step | None = None
    set: dict[str, float] = field(default_factory=dict[str, float])
    doubted: tuple[Doubted, ...] = ()
    weighed: tuple[str, ...] = ()
    origin_ns: int = 0
    made: tuple[str, ...] = field(default=(), repr=False)
    poses: dict[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def rivals(self) -> tuple[Step, ...]:
        """Compounds behind the choices."""
        return self.join.before

    @property
    def last(self) -> Step:
        """The step that gives the product."""
        return self.smoothing or self.join

    @property
    def guide(self) -> Step:
        """The step whose poses a map is made along, once it has been run.

        What gives the product, but for an odometry that lays its scans on a map of its own: there they fit.
        That one is doubted together with its scans, and is no guide then.
        """
        if self.smoothing is None or any(each.what == MOTION for each in self.doubted):
            return self.last
        name = dict(self.smoothing.wiring)[MOTION]
        mapping = {choice.use for choice in self.choices if choice.reach}
        guides = (each for each in self.rivals if each.name == name and each.compound.name in mapping)
        return next(guides, self.last)

    def tell(self) -> list[str]:
        """Say what stands in for what, and what became of it."""
        rows = [_describe(choice, self.members) for choice in self.choices]
        holds = f"each choice holds for {self.dwell:g} s at least"
        without = f"; {self.margin:g} s before doubts are taken out, too" if self.margin else ""
        told = [f"{self.kind} by the first of these; {holds}{without}", *rows]
        if self.made:
            told.append(f"from the start: {self.choices[0].use}")
            told += [each.line(self.origin_ns) for each in self.switches] or ["no switch"]
        if self.made and self.smoothing:
            doubts = " and ".join(each.describe(self.origin_ns) for each in self.doubted)
            told.append(
                f"in the end: {self.smoothing.compound.name} of everything; doubted: {doubts or 'nothing'}"
            )
            told += self.weighed
        return told


def _describe(choice: Choice, members: dict[str, list[str]]) -> str:
    streams = [name for group in choice.unless for name in members.get(group, ())]
    groups = " or ".join(choice.unless)
    return f"- {choice.use}, unless {groups} is BAD ({', '.join(streams)})" if streams else f"- {choice.use}"


def plan_rivalry(kind: str, recording: Recording, policy: Policy) -> Rivalry | None:
    """Return how several compounds or sensors of a policy could make a product; None if only one could."""
    contest = policy.contest(kind)
    if contest is None:
        return None
    if "/" in contest.choices[0].use:
        return _of_compounds(kind, contest, recording, policy)
    return _of_sensors(kind, contest, recording, policy)


def _of_compounds(kind: str, contest: Contest, recording: Recording, policy: Policy) -> Rivalry | None:
    found: list[tuple[Choice, Step]] = []
    refused: list[Refusal] = []
    for choice in contest.choices:
        tried = try_step(choice.use, kind, recording)
        if isinstance(tried, Refusal):
            refused.append(tried)
        elif len(found) < len(PORTS):
            found.append((choice, tried))
    if len(found) < 2:
        return None
    rivals = tuple(step for _, step in found)
    wiring = tuple((port, step.name) for port, step in zip(PORTS, rivals, strict=False))
    join = Step(Compound.of(contest.joined_by).candidates()[0], kind.lower(), wiring, rivals)
    used = {stream for step in rivals for _, stream in step.wiring}
    members = _members(policy, recording, used)
    choices = tuple(choice for choice, _ in found)
    return Rivalry(
        kind, join, contest.parameter, choices, members, policy.dwell, contest.margin, tuple(refused),
        smoothing=_plan_smoothing(contest, recording, join), set=contest.set, origin_ns=_start(recording),
    )  # fmt: skip


def _plan_smoothing(contest: Contest, recording: Recording, join: Step) -> Step | None:
    """Return what smooths what the sensors and the first odometry without wheels say; None if nothing can."""
    step = try_step(contest.smoothed_by, join.port, recording) if contest.smoothed_by else None
    witness = next((each for each in join.before if not has_wheels(each, recording)), None)
    if not isinstance(step, Step) or witness is None or not has_wheels(step, recording):
        return None
    return replace(step, wiring=(*step.wiring, (MOTION, witness.name)), before=(join,))


def has_wheels(step: Step, recording: Recording) -> bool:
    """Tell whether a step is fed with wheels: then it is no witness of what they do."""
    return any(issubclass(recording[name].type, WheelState | Odometry) for _, name in step.wiring)


def _of_sensors(kind: str, contest: Contest, recording: Recording, policy: Policy) -> Rivalry | None:
    tried = [try_step(each.name, kind, recording) for each in Compound.of(contest.joined_by).candidates()]
    join = next((step for step in tried if isinstance(step, Step)), None)
    if join is None:
        return None
    members = _members(policy, recording, {stream for _, stream in join.wiring})
    choices = tuple(each for each in contest.choices if any(members.get(group) for group in each.unless))
    if len(choices) < 2:
        return None
    return Rivalry(
        kind, join, contest.parameter, choices, members, policy.dwell, contest.margin,
        origin_ns=_start(recording),
    )  # fmt: skip


def _start(recording: Recording) -> int:
    return recording.span[0] if recording.span else 0


def _members(policy: Policy, recording: Recording, used: set[str]) -> dict[str, list[str]]:
    """Return by group the streams that are used of it."""
    return {
        group: [s.name for s in recording if s.name in used and s.type.__name__ in types]
        for group, types in policy.groups.items()
    }

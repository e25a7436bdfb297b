"""A product that several compounds, or sensors, make in turn, as the verdicts on their sensors demand.

All rivals run from the start, so that one that is needed knows its biases and its map already. What they
found is also a witness: an odometry by camera shows that wheels slip. At a switch the new one goes on from
the last pose that nobody doubted. Every switch is kept as a product, with its reason.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.engine import Compound
from transect.products import Payload, Product, ProductStore
from transect.products.keeping import keep_run, stream_of
from transect.types.provenance import Provenance

from .planning import Refusal, Step, try_step
from .policy import Choice, Contest, Policy
from .switching import Switch, decide, timelines_of

if TYPE_CHECKING:
    from transect.base.arrays import Floats
    from transect.recording import FrameTree, Recording

SWITCH = "Switch"
"""Kind of the product that a change of what is used is."""
PORTS = ("first", "second", "third")
SINCE = "switch.since"
MOUNTED = "switch.mounted"


@dataclass(frozen=True)
class Rivalry:
    """What can make a product of a recording, in turn.

    Attributes
    ----------
    kind : str
    join : Step
        What makes one product of it.
    parameter : str
        Of the joining compound: it is told what is used when.
    choices : tuple of Choice
        Those that the recording can feed, the best first.
    rivals : tuple of Step
        Compounds behind the choices; none where the joining compound has the sensors itself.
    members : mapping of str to list of str
        By group of sensors: the streams that are used of it.
    dwell, margin : float
        Seconds that a choice holds at least, and that are taken out before doubts.
    refused : tuple of Refusal
    switches : tuple of Switch
        Once it has been run.
    origin_ns : int
        From which the times of switches are counted when they are told.
    """

    kind: str
    join: Step
    parameter: str
    choices: tuple[Choice, ...]
    rivals: tuple[Step, ...]
    members: dict[str, list[str]]
    dwell: float
    margin: float = 0.0
    refused: tuple[Refusal, ...] = ()
    switches: tuple[Switch, ...] = ()
    origin_ns: int = 0
    made: tuple[str, ...] = field(default=(), repr=False)

    def lines(self) -> list[str]:
        """Say what stands in for what, and what became of it."""
        steps = [line for step in (*self.rivals, self.join) for line in step.lines()]
        rows = [_describe(choice, self.members) for choice in self.choices]
        holds = f"each choice holds for {self.dwell:g} s at least"
        without = f"; {self.margin:g} s before doubts are taken out, too" if self.margin else ""
        told = [f"{self.kind} by the first of these; {holds}{without}", *rows]
        if self.made:
            told.append(f"from the start: {self.choices[0].use}")
            told += [each.line(self.origin_ns) for each in self.switches] or ["no switch"]
        return [*steps, *told, *(f"not {each.what}: {each.why}" for each in self.refused)]

    def __str__(self) -> str:
        import textwrap

        return "\n".join("\n".join(textwrap.wrap(line, 78, subsequent_indent="  ")) for line in self.lines())


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
    join = Step(Compound.of(contest.joined_by).candidates()[0], kind.lower(), wiring)
    used = {stream for step in rivals for _, stream in step.wiring}
    members = _members(policy, recording, used)
    choices = tuple(choice for choice, _ in found)
    return Rivalry(
        kind, join, contest.parameter, choices, rivals, members, policy.dwell, contest.margin,
        tuple(refused), origin_ns=_start(recording),
    )  # fmt: skip


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
        kind, join, contest.parameter, choices, (), members, policy.dwell, contest.margin,
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


def run_rivalry(
    rivalry: Rivalry, recording: Recording, store: ProductStore, folder: Path, mission: str, **span: Any
) -> Rivalry:
    """Run all rivals, decide by the checks, join what they gave, and keep everything.

    Parameters
    ----------
    folder : Path
        For the runs, before they are kept.
    **span
        `start` and `end` of what is played.
    """
    from transect.integrity import check, run

    plain, parents = recording, list[str]()
    frames: dict[str, FrameTree] = {}
    children: dict[str, str] = {}
    for number, step in enumerate(rivalry.rivals):
        # Without verdicts: a fault is acted on once, by the switch. One that is not used may be led astray by
        # its BAD sensor; were that weighed down instead, it would drift, and need long to find back.
        made = run(step.compound, plain, out=folder / f"rival{number}", **span)
        ids = keep_run(store, folder / f"rival{number}", mission)
        given = _poses_of(step, store, ids)
        stream = stream_of(given, store.content(given.id), step.name)
        recording = recording.replace(streams=(*recording.streams, stream))
        parents.append(given.id)
        children[step.name] = stream.child
        frames[step.name] = made.replay.frames if made.replay else recording.frames
    windows = check(recording.slice(span.get("start"), span.get("end"))).by_stream
    used = {name for names in rivalry.members.values() for name in names}
    judged = {name: each for name, each in windows.items() if name in used}
    switches = decide(rivalry.choices, rivalry.members, judged, rivalry.dwell)
    settings = _settings(rivalry, switches)
    if rivalry.rivals:
        settings[MOUNTED] = _mounted(rivalry, children, frames)
    run(
        rivalry.join.compound, recording, check=not rivalry.rivals, out=folder / "joined", set=settings,
        wire=dict(rivalry.join.wiring) if rivalry.rivals else {}, **span,
    )  # fmt: skip
    made_ids = keep_run(store, folder / "joined", mission, parents=parents)
    joined = store.get(made_ids[0])
    store.put_many([_product_of(each, rivalry.kind, joined) for each in switches])
    return replace(rivalry, switches=tuple(switches), made=tuple(made_ids))


def _poses_of(step: Step, store: ProductStore, ids: Sequence[str]) -> Product:
    made = [product for product in map(store.get, ids) if product.name == step.port]
    return min(made, key=lambda product: product.payload.format != "tum")


def _settings(rivalry: Rivalry, switches: Sequence[Switch]) -> dict[str, str]:
    """Return what the joining compound is told of what is used when."""
    names = {choice.use: choice.use for choice in rivalry.choices}
    if rivalry.rivals:
        names = {choice.use: port for choice, port in zip(rivalry.choices, PORTS, strict=False)}
    decided, doubted = timelines_of(rivalry.choices[0].use, switches, names, rivalry.margin)
    # A map is given once, at the end, so that it may leave out what was doubted before the switch.
    return {rivalry.parameter: decided, SINCE: doubted} if rivalry.rivals else {rivalry.parameter: doubted}


def _mounted(rivalry: Rivalry, children: dict[str, str], frames: dict[str, FrameTree]) -> str:
    """Return where the bodies of the other odometries are on that of the first."""
    first, *others = (step.name for step in rivalry.rivals)
    return "; ".join(_written(frames[name].lookup(children[first], children[name])) for name in others)


def _written(T_first_other: Floats) -> str:
    from transect.geometry import se3

    quaternion, place = se3.to_quaternion(T_first_other)
    return " ".join(repr(float(number)) for number in (*place, *quaternion))


def _product_of(switch: Switch, kind: str, run: Product) -> tuple[Product, bytes]:
    """Return a switch as a product of the joining run."""
    content = json.dumps({"kind": kind, **switch.to_dict()}, indent=1, sort_keys=True).encode()
    product = Product(
        SWITCH, Payload.of(content, "json"), f"{switch.before} -> {switch.after}", robot=run.robot,
        mission=run.mission, clock=run.clock, t0_ns=switch.since_ns, t1_ns=switch.t_ns,
        provenance=Provenance(tool=run.provenance.tool, parents=(run.id,)),
    )  # fmt: skip
    return product, content

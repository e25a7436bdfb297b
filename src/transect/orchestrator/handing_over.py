"""A product that several compounds, or sensors, make in turn, as the verdicts on their sensors demand.

All rivals run from the start, so that one that is needed knows its biases and its map already. What they
found is also a witness: an odometry by camera shows that wheels slip. At a switch the new one goes on from
the last pose that nobody doubted. Every switch is kept as a product, with its reason. In the end, when all
verdicts are known, a smoother makes the trajectory of everything but what was doubted.
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
from transect.types import Odometry, WheelState
from transect.types.provenance import Provenance

from .planning import Refusal, Step, try_step
from .policy import Choice, Contest, Policy
from .switching import Doubted, Switch, Windows, decide, find_doubted, timelines_of

if TYPE_CHECKING:
    from transect.base.arrays import Floats
    from transect.recording import FrameTree, Recording, Stream

SWITCH = "Switch"
"""Kind of the product that a change of what is used is."""
PORTS = ("first", "second", "third")
SINCE, MOUNTED, DOUBTED = "switch.since", "switch.mounted", "fusion.doubted"
"""Parameters of the compounds that join trajectories, and smooth them."""
MOTION, COVARIANCE = "motion", "motion_covariance"
"""Inputs of the smoother for the odometry by another sensor, and for what that tells of its errors."""
TOLD = ("covariance", "ndarray")
"""Name and kind of the output of an odometry that has them."""
WEIGHED = "weighed: "
"""What the smoother's sentences about weights begin with."""


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

        An odometry by the sensor that maps: its errors from scan to scan, or pair to pair, are the smallest.
        Where that was doubted, what gives the product.
        """
        if self.smoothing is None or any(each.what == MOTION for each in self.doubted):
            return self.last
        name = dict(self.smoothing.wiring)[MOTION]
        return next(step for step in self.rivals if step.name == name)

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
    witness = next((each for each in join.before if not _has_wheels(each, recording)), None)
    if not isinstance(step, Step) or witness is None or not _has_wheels(step, recording):
        return None
    return replace(step, wiring=(*step.wiring, (MOTION, witness.name)), before=(join,))


def _has_wheels(step: Step, recording: Recording) -> bool:
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

    given = _run_rivals(rivalry, recording, store, folder, mission, **span)
    witnesses = [each.stream for each in given if not _has_wheels(each.step, recording)]
    witnessed = recording.replace(streams=(*recording.streams, *witnesses))
    windows = check(witnessed.slice(span.get("start"), span.get("end"))).by_stream
    used = {name for names in rivalry.members.values() for name in names}
    judged = {name: each for name, each in windows.items() if name in used}
    switches = decide(rivalry.choices, rivalry.members, judged, rivalry.dwell)
    fed = recording.replace(streams=(*recording.streams, *(each.stream for each in given)))
    settings = _settings(rivalry, switches) | _mount(given)
    wire, out = dict(rivalry.join.wiring) if given else {}, folder / "joined"
    run(rivalry.join.compound, fed, check=not given, set=settings, wire=wire, out=out, **span)
    made = keep_run(store, out, mission, parents=[each.product.id for each in given])
    store.put_many([_product_of(each, rivalry.kind, store.get(made[0])) for each in switches])
    poses = {each.step.name: each.product.id for each in given}
    done = replace(rivalry, switches=tuple(switches), made=tuple(made), poses=poses)
    return _smooth(done, given, judged, recording, store, folder, mission, **span) if done.smoothing else done


def _smooth(
    rivalry: Rivalry, given: Sequence[_Given], windows: Windows, recording: Recording, store: ProductStore,
    folder: Path, mission: str, **span: Any,
) -> Rivalry:  # fmt: skip
    """Run the smoother on everything but what was doubted, and keep what it gives."""
    from transect.integrity import run

    assert rivalry.smoothing is not None
    wiring = dict(rivalry.smoothing.wiring)
    [witness] = (each for each in given if each.step.name == wiring[MOTION])
    doubted = find_doubted(_sensors_of(rivalry, witness.step), windows)
    text = "; ".join(f"{each.what} {each.t0_ns} {each.t1_ns}" for each in doubted)
    streams, parents = [witness.stream], [witness.product.id]
    if witness.errors:
        streams.append(witness.errors[1])
        parents.append(witness.errors[0].id)
        wiring[COVARIANCE] = witness.errors[1].name
    fed, out = recording.replace(streams=(*recording.streams, *streams)), folder / "smoothed"
    settings = {**rivalry.set, DOUBTED: text}
    made = run(rivalry.smoothing.compound, fed, wire=wiring, set=settings, out=out, **span)
    parents.append(_poses_of(rivalry.join, store, rivalry.made).id)
    weighed = tuple(each.text for each in made.conclusions if each.text.startswith(WEIGHED))
    kept = keep_run(store, out, mission, parents=parents)
    return replace(rivalry, doubted=tuple(doubted), weighed=weighed, made=tuple(kept))


def _sensors_of(rivalry: Rivalry, witness: Step) -> dict[str, list[str]]:
    """Return the streams behind each input of the smoother that is judged."""
    assert rivalry.smoothing is not None
    judged = {name for names in rivalry.members.values() for name in names}
    behind = {port: [stream] for port, stream in rivalry.smoothing.wiring} | {
        MOTION: [stream for _, stream in witness.wiring]
    }
    return {port: found for port, names in behind.items() if (found := [n for n in names if n in judged])}


@dataclass(frozen=True)
class _Given:
    """What a rival gave: its poses and what it told of their errors, and the frames that it knew.

    Attributes
    ----------
    product, stream
        Of its poses.
    errors : (Product, Stream) or None
        Covariances of its steps, where it tells them.
    """

    step: Step
    product: Product
    stream: Stream
    frames: FrameTree
    errors: tuple[Product, Stream] | None = None


def _run_rivals(
    rivalry: Rivalry, recording: Recording, store: ProductStore, folder: Path, mission: str, **span: Any
) -> list[_Given]:
    """Run the compounds behind the choices, without verdicts: a fault is acted on once, by the switch.

    One that is not used may be led astray by its BAD sensor; were that weighed down instead, it would drift,
    and need long to find back.
    """
    from transect.engine import run

    given: list[_Given] = []
    for number, step in enumerate(rivalry.rivals):
        out = folder / f"rival{number}"
        made = run(step.compound, recording, out=out, **span)
        kept = keep_run(store, out, mission)
        product = _poses_of(step, store, kept)
        stream = stream_of(product, store.content(product.id), step.name)
        frames = made.replay.frames if made.replay else recording.frames
        given.append(_Given(step, product, stream, frames, _errors_of(step, store, kept)))
    return given


def _errors_of(step: Step, store: ProductStore, ids: Sequence[str]) -> tuple[Product, Stream] | None:
    """Return the covariances of the steps between poses, if an odometry tells them."""
    made = [product for product in map(store.get, ids) if (product.name, product.kind) == TOLD]
    if not made:
        return None
    return made[0], stream_of(made[0], store.content(made[0].id), f"{step.compound.name}:{made[0].name}")


def _poses_of(step: Step, store: ProductStore, ids: Sequence[str]) -> Product:
    made = [product for product in map(store.get, ids) if product.name == step.port]
    return min(made, key=lambda product: product.payload.format != "tum")


def _settings(rivalry: Rivalry, switches: Sequence[Switch]) -> dict[str, str]:
    """Return what the joining compound is told of what is used when."""
    names = {choice.use: choice.use for choice in rivalry.choices}
    names |= {step.compound.name: port for step, port in zip(rivalry.rivals, PORTS, strict=False)}
    decided, doubted = timelines_of(rivalry.choices[0].use, switches, names, rivalry.margin)
    # A map is given once, at the end, so that it may leave out what was doubted before the switch.
    return {rivalry.parameter: decided, SINCE: doubted} if rivalry.rivals else {rivalry.parameter: doubted}


def _mount(given: Sequence[_Given]) -> dict[str, str]:
    """Return where the bodies of the other odometries are on that of the first, as a setting."""
    if not given:
        return {}
    child = given[0].stream.child
    return {MOUNTED: "; ".join(_write(each.frames.lookup(child, each.stream.child)) for each in given[1:])}


def _write(T_first_other: Floats) -> str:
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

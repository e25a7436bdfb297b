"""Making a product by several compounds, or sensors, in turn, as the verdicts on their sensors demand.

All rivals run from the start, so that one that is needed knows its biases and its map already. What they
found is also a witness: an odometry by camera shows that wheels slip. At a switch the new one goes on from
the last pose that nobody doubted. Every switch is kept as a product, with its reason. In the end, when all
verdicts are known, a smoother makes the trajectory of everything, as far as it agrees.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.products import Payload, Product, ProductStore
from transect.products.run_products import stream_of
from transect.types.provenance import Provenance

from .planning import Step
from .results import keep_result, wanted_of
from .rivalry import MOTION, PORTS, Rivalry, has_wheels
from .switching import Switch, Windows, decide, find_doubted, timelines_of

if TYPE_CHECKING:
    from transect.base.arrays import Floats
    from transect.recording import FrameTree, Recording, Stream

SWITCH = "Switch"
"""Kind of the product that a change of what is used is."""
SINCE, MOUNTED, DOUBTED, REACH = "switch.since", "switch.mounted", "fusion.doubted", "fusion.reach"
"""Parameters of the compounds that join trajectories, and smooth them."""
COVARIANCE = "motion_covariance"
"""Input of the smoother for what an odometry tells of its errors."""
TOLD = ("covariance", "ndarray")
"""Name and kind of the output of an odometry that has them."""
WEIGHED = "weighed: "
"""What the smoother's sentences about weights begin with."""


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
    from transect.engine import run
    from transect.integrity import check

    given = _run_rivals(rivalry, recording, store, folder, mission, **span)
    witnesses = [each.stream for each in given if not has_wheels(each.step, recording)]
    witnessed = recording.replace(streams=(*recording.streams, *witnesses))
    windows = check(witnessed.slice(span.get("start"), span.get("end"))).by_stream
    used = {name for names in rivalry.members.values() for name in names}
    judged = {name: each for name, each in windows.items() if name in used}
    switches = decide(rivalry.choices, rivalry.members, judged, rivalry.dwell)
    fed = recording.replace(streams=(*recording.streams, *(each.stream for each in given)))
    settings = _settings(rivalry, switches) | _mount(given)
    wire, out = dict(rivalry.join.wiring) if given else {}, folder / "joined"
    joined = run(rivalry.join.compound, fed, check=not given, set=settings, wire=wire, out=out, **span)
    made = keep_result(rivalry.join, joined, out, store, mission, [each.product.id for each in given])
    store.put_many([_product_of(each, rivalry.kind, store.get(made[0])) for each in switches])
    poses = {each.step.name: each.product.id for each in given}
    done = replace(rivalry, switches=tuple(switches), made=tuple(made), poses=poses)
    return _smooth(done, given, judged, recording, store, folder, mission, **span) if done.smoothing else done


def _smooth(
    rivalry: Rivalry, given: Sequence[_Given], windows: Windows, recording: Recording, store: ProductStore,
    folder: Path, mission: str, **span: Any,
) -> Rivalry:  # fmt: skip
    """Run the smoother on everything but what was doubted, and keep what it gives."""
    from transect.engine import run

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
    settings = {**rivalry.set, DOUBTED: text, REACH: witness.reach}
    made = run(rivalry.smoothing.compound, fed, wire=wiring, set=settings, out=out, **span)
    parents.append(wanted_of(rivalry.join, store, rivalry.made).id)
    weighed = tuple(each.text for each in made.conclusions if each.text.startswith(WEIGHED))
    kept = keep_result(rivalry.smoothing, made, out, store, mission, parents)
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
        Covariances of its steps, where they tell its drift.
    reach : float
        Of its own map, m.
    """

    step: Step
    product: Product
    stream: Stream
    frames: FrameTree
    errors: tuple[Product, Stream] | None = None
    reach: float = 0.0


def _run_rivals(
    rivalry: Rivalry, recording: Recording, store: ProductStore, folder: Path, mission: str, **span: Any
) -> list[_Given]:
    """Run the compounds behind the choices, without verdicts: a fault is acted on once, by the switch.

    One that is not used may be led astray by its BAD sensor; were that weighed down instead, it would drift,
    and need long to find back.
    """
    from transect.engine import run

    given: list[_Given] = []
    for number, (choice, step) in enumerate(zip(rivalry.choices, rivalry.rivals, strict=False)):
        out = folder / f"rival{number}"
        made = run(step.compound, recording, out=out, **span)
        kept = keep_result(step, made, out, store, mission)
        product = wanted_of(step, store, kept)
        stream = stream_of(product, store.content(product.id), step.name)
        frames = made.replay.playback.frames if made.replay else recording.frames
        errors = _errors_of(step, store, kept) if choice.tells_drift else None
        given.append(_Given(step, product, stream, frames, errors, choice.reach))
    return given


def _errors_of(step: Step, store: ProductStore, ids: Sequence[str]) -> tuple[Product, Stream] | None:
    """Return the covariances of the steps between poses, if an odometry tells them."""
    made = [product for product in map(store.get, ids) if (product.name, product.kind) == TOLD]
    if not made:
        return None
    return made[0], stream_of(made[0], store.content(made[0].id), f"{step.compound.name}:{made[0].name}")


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

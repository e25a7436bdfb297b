"""Execution of a plan with alternatives: all of them run, and verdicts decide whose output is used when.

All alternatives run from the start, so that one that takes over has estimated its biases and its map already.
Their motions are also cross-checks: visual odometry reveals wheel slip. After a switch, the next alternative
continues from the last pose that was not suspect. Every switch is kept as a product with its reason. Once all
verdicts are known, a smoother estimates the trajectory from all sensors, weighted by their agreement.
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

from .fallback_plans import JOIN_INPUTS, MOTION_INPUT, FallbackPlan, FallbackResults, has_wheels
from .plans import PlanStep
from .results import keep_result, product_of_step
from .switches import Switch, VerdictWindows, decide_switches, find_suspect_spans, timelines_of

if TYPE_CHECKING:
    from transect.base.arrays import Floats
    from transect.recording import FrameTree, Recording, Stream

SWITCH = "Switch"  # kind of the product that records a switch
# Parameters of the compounds that join trajectories and smooth them
SINCE, MOUNTED, SUSPECT, MAP_RADIUS = "switch.since", "switch.mounted", "fusion.suspect", "fusion.map_radius"
MOTION_COVARIANCE_INPUT = "motion_covariance"  # of the smoother
COVARIANCE_OUTPUT = ("covariance", "ndarray")  # name and kind of an odometry's output
AGREEMENT_PREFIX = "variance components: "  # of the smoother's conclusions about its weights


def run_fallbacks(
    plan: FallbackPlan, recording: Recording, store: ProductStore, folder: Path, mission: str, **span: Any
) -> FallbackPlan:
    """Run all alternatives, decide by verdicts which is used when, join their outputs, and keep everything.

    Parameters
    ----------
    folder : Path
        For the runs, before they are kept.
    **span
        `start` and `end` of the part that is played.
    """
    from transect.engine import run
    from transect.integrity import check

    outputs = _run_alternatives(plan, recording, store, folder, mission, **span)
    witnesses = [each.stream for each in outputs if not has_wheels(each.step, recording)]
    witnessed = recording.replace(streams=(*recording.streams, *witnesses))
    windows = check(witnessed.slice(span.get("start"), span.get("end"))).by_stream
    used = {name for names in plan.group_streams.values() for name in names}
    judged = {name: each for name, each in windows.items() if name in used}
    switches = decide_switches(plan.choices, plan.group_streams, judged, plan.dwell)
    extended = recording.replace(streams=(*recording.streams, *(each.stream for each in outputs)))
    settings = _switch_settings(plan, switches) | _mounting_settings(outputs)
    wire, out = dict(plan.join.wiring) if outputs else {}, folder / "joined"
    joined = run(plan.join.compound, extended, check=not outputs, set=settings, wire=wire, out=out, **span)
    made = keep_result(plan.join, joined, out, store, mission, [each.product.id for each in outputs])
    store.put_many([_switch_product(each, plan.kind, store.get(made[0])) for each in switches])
    poses = {each.step.name: each.product.id for each in outputs}
    done = replace(plan, results=FallbackResults(tuple(switches), made=tuple(made), poses=poses))
    return (
        _smooth(done, outputs, judged, recording, store, folder, mission, **span) if done.smoothing else done
    )


def _smooth(
    plan: FallbackPlan, outputs: Sequence[_AlternativeOutput], windows: VerdictWindows, recording: Recording,
    store: ProductStore, folder: Path, mission: str, **span: Any,
) -> FallbackPlan:  # fmt: skip
    """Run the smoother on all sensors, with the suspect spans, and keep its outputs."""
    from transect.engine import run

    assert plan.smoothing is not None
    assert plan.results is not None
    wiring = dict(plan.smoothing.wiring)
    [odometry] = (each for each in outputs if each.step.name == wiring[MOTION_INPUT])
    suspect = find_suspect_spans(_judged_streams(plan, odometry.step), windows)
    text = "; ".join(f"{each.what} {each.t0_ns} {each.t1_ns}" for each in suspect)
    streams, parents = [odometry.stream], [odometry.product.id]
    if odometry.covariances:
        streams.append(odometry.covariances[1])
        parents.append(odometry.covariances[0].id)
        wiring[MOTION_COVARIANCE_INPUT] = odometry.covariances[1].name
    extended, out = recording.replace(streams=(*recording.streams, *streams)), folder / "smoothed"
    settings = {**plan.set, SUSPECT: text, MAP_RADIUS: odometry.map_radius}
    made = run(plan.smoothing.compound, extended, wire=wiring, set=settings, out=out, **span)
    parents.append(product_of_step(plan.join, store, plan.results.made).id)
    agreement = tuple(each.text for each in made.conclusions if each.text.startswith(AGREEMENT_PREFIX))
    identifiers = keep_result(plan.smoothing, made, out, store, mission, parents)
    results = replace(plan.results, suspect=tuple(suspect), agreement=agreement, made=tuple(identifiers))
    return replace(plan, results=results)


def _judged_streams(plan: FallbackPlan, odometry: PlanStep) -> dict[str, list[str]]:
    """Return the judged streams behind each input of the smoother."""
    assert plan.smoothing is not None
    judged = {name for names in plan.group_streams.values() for name in names}
    behind = {port: [stream] for port, stream in plan.smoothing.wiring} | {
        MOTION_INPUT: [stream for _, stream in odometry.wiring]
    }
    return {port: found for port, names in behind.items() if (found := [n for n in names if n in judged])}


@dataclass(frozen=True)
class _AlternativeOutput:
    """The poses of an alternative, as a product and as a stream, and its frames."""

    step: PlanStep
    product: Product
    stream: Stream
    frames: FrameTree
    covariances: tuple[Product, Stream] | None = None  # of its motion steps, if they describe its drift
    map_radius: float = 0.0  # of its own map, m


def _run_alternatives(
    plan: FallbackPlan, recording: Recording, store: ProductStore, folder: Path, mission: str, **span: Any
) -> list[_AlternativeOutput]:
    """Run the compounds behind the choices, without verdicts: only the switch acts on a fault.

    An alternative with a BAD sensor is not used meanwhile, so its error does not matter. If verdicts reduced
    the weight of that sensor, it would drift and take long to recover.
    """
    from transect.engine import run

    outputs: list[_AlternativeOutput] = []
    for number, (choice, step) in enumerate(zip(plan.choices, plan.alternatives, strict=False)):
        out = folder / f"alternative{number}"
        made = run(step.compound, recording, out=out, **span)
        identifiers = keep_result(step, made, out, store, mission)
        product = product_of_step(step, store, identifiers)
        stream = stream_of(product, store.content(product.id), step.name)
        frames = made.replay.playback.frames if made.replay else recording.frames
        covariances = _covariances_of(step, store, identifiers) if choice.drift_covariance else None
        outputs.append(_AlternativeOutput(step, product, stream, frames, covariances, choice.map_radius))
    return outputs


def _covariances_of(step: PlanStep, store: ProductStore, ids: Sequence[str]) -> tuple[Product, Stream] | None:
    """Return the covariances of the motions between poses, if an odometry has such an output."""
    made = [each for each in map(store.get, ids) if (each.name, each.kind) == COVARIANCE_OUTPUT]
    if not made:
        return None
    return made[0], stream_of(made[0], store.content(made[0].id), f"{step.compound.name}:{made[0].name}")


def _switch_settings(plan: FallbackPlan, switches: Sequence[Switch]) -> dict[str, str]:
    """Return the parameters by which the joining compound knows what is used when."""
    names = {choice.use: choice.use for choice in plan.choices}
    names |= {step.compound.name: port for step, port in zip(plan.alternatives, JOIN_INPUTS, strict=False)}
    decided, revised = timelines_of(plan.choices[0].use, switches, names, plan.margin)
    # A map is emitted once, at the end, so that it can omit what was suspect before the switch.
    return {plan.parameter: decided, SINCE: revised} if plan.alternatives else {plan.parameter: revised}


def _mounting_settings(outputs: Sequence[_AlternativeOutput]) -> dict[str, str]:
    """Return the poses of the other odometries' body frames in that of the first one, as a setting."""
    if not outputs:
        return {}
    child = outputs[0].stream.child
    return {
        MOUNTED: "; ".join(_pose_text(each.frames.lookup(child, each.stream.child)) for each in outputs[1:])
    }


def _pose_text(T_first_other: Floats) -> str:
    from transect.geometry import se3

    quaternion, position = se3.to_quaternion(T_first_other)
    return " ".join(repr(float(number)) for number in (*position, *quaternion))


def _switch_product(switch: Switch, kind: str, run: Product) -> tuple[Product, bytes]:
    """Return a switch as a product of the joining run."""
    content = json.dumps({"kind": kind, **switch.to_dict()}, indent=1, sort_keys=True).encode()
    product = Product(
        SWITCH, Payload.of(content, "json"), f"{switch.before} -> {switch.after}", robot=run.robot,
        mission=run.mission, clock=run.clock, t0_ns=switch.since_ns, t1_ns=switch.t_ns,
        provenance=Provenance(tool=run.provenance.tool, parents=(run.id,)),
    )  # fmt: skip
    return product, content

"""Answering a request: from the store if something there is good enough, else by running a plan."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.base.clocks import NS
from transect.engine.replay import Options
from transect.errors import TransectError
from transect.products import Area, Product, ProductStore, Wanted
from transect.products.reproduction import why_another_recording, why_outdated
from transect.products.run_products import RUN, stream_of

from .handing_over import run_rivalry
from .planning import Plan, Refusal, Step, is_of_kind, make_plan
from .policy import Policy, load_policy
from .preferences import Preferences, load_preferences
from .results import keep_result, wanted_of
from .rivalry import Rivalry, plan_rivalry

if TYPE_CHECKING:
    from transect.integrity.table import VerdictTable
    from transect.recording import Recording


class NoPlanError(TransectError):
    """No compound can give the product from this recording; `plan` says why not."""

    plan: Plan


@dataclass(frozen=True)
class Request:
    """What is asked for; None asks for nothing.

    Attributes
    ----------
    kind : str
        `DEM`, `Pose`, `Trajectory`, `PointCloud`, ...: name of an output, or its type.
    time : (int, int)
        [from, to) in ns on the recording's clock.
    area : Area
        What the product's box must meet.
    frame : str
        That it must be in.
    max_age : float
        Seconds by which it may end before the recording does.
    min_quality : float
        Smallest score.
    """

    kind: str
    time: tuple[int, int] | None = None
    area: Area | None = None
    frame: str | None = None
    max_age: float | None = None
    min_quality: float | None = None


@dataclass(frozen=True)
class Answer:
    """What a request gave.

    Attributes
    ----------
    product : Product or None
        None if it was only planned.
    plan : Plan or None
        None if the product was in the store; its rivalry tells what took turns.
    refused : tuple of Refusal
        Products of the store that were not good enough.
    not_met : str
        Which wish of the request the product does not meet; "" if it meets all.
    """

    product: Product | None
    plan: Plan | None = None
    refused: tuple[Refusal, ...] = ()
    not_met: str = ""


def answer(
    request: Request,
    recording: Recording,
    store: ProductStore,
    *,
    preferences: Preferences | None = None,
    check: bool | VerdictTable = False,
    policy: Policy | None = None,
    mission: str = "",
    dry_run: bool = False,
) -> Answer:
    """Return a product of a recording: one that is kept, or one that is made now and kept.

    Parameters
    ----------
    check : bool or VerdictTable
        Check the sensors. Where the policy knows several ways to the product, they take turns as verdicts
        demand; else streams that were BAD for too long, by these verdicts or by a table, are not used.
    policy : Policy
        What stands in for what; by one that is given the product is made anew.
    mission : str
        Which campaign what is made belongs to.
    dry_run : bool
        Only find or plan.

    Raises
    ------
    NoPlanError
        If there is no way to make it.
    """
    preferences = preferences or load_preferences()
    in_turn = (
        _plan_in_turn(request.kind, recording, preferences, policy or load_policy())
        if check is True
        else None
    )
    plan, usable = in_turn, recording
    if plan is None:
        usable, bad = _leave_out_bad(recording, _verdicts_on(recording, check), preferences.most_bad)
        plan = make_plan(request.kind, usable, preferences, bad)
    if plan.step is None:
        error = NoPlanError(
            f"there is no way to a {request.kind} from {recording.name}",
            why=plan.refusals(),
            hint=f"another recording, or more of this one; transect info {recording.typed} lists its streams",
        )
        error.plan = plan
        raise error
    found, refused = _look(request, plan, plan.step, recording, store) if policy is None else (None, ())
    if found is not None:
        return Answer(found, refused=refused, not_met=_why_not_good(request, recording, found))
    if dry_run:
        return Answer(None, plan, refused)
    product, plan = _make(plan, plan.step, request, usable, store, mission)
    return Answer(product, plan, refused, _why_not_good(request, recording, product))


def _plan_in_turn(kind: str, recording: Recording, preferences: Preferences, policy: Policy) -> Plan | None:
    """Return how several ways take turns to make a product, or the poses that it needs; None if none do."""
    rivalry = plan_rivalry(kind, recording, policy)
    if rivalry is not None:
        return Plan(kind, rivalry.last, rivalry.refused, rivalry)
    poses = plan_rivalry("Pose", recording, policy)
    plan = make_plan(kind, recording, preferences, rivalry=poses) if poses else None
    return plan if plan and plan.rivalry else None


def _look(
    request: Request, plan: Plan, step: Step, recording: Recording, store: ProductStore
) -> tuple[Product | None, tuple[Refusal, ...]]:
    """Return the newest product that is what the plan would make now, and why others are not."""
    refused: list[Refusal] = []
    looked = _Looked(request, plan, step, recording, store)
    wanted = Wanted(time=request.time, clock=recording.clock, area=request.area, frame=request.frame)
    for product in store.find(wanted):
        if not is_of_kind(request.kind, product.name, product.kind):
            continue
        why = looked.why_not(product)
        if not why:
            return product, tuple(refused)
        refused.append(Refusal(product.id[:12], why))
    return None, tuple(refused)


@dataclass
class _Looked:
    """Compares products of a store with what a plan would make; what is known of a run is found out once."""

    request: Request
    plan: Plan
    step: Step
    recording: Recording
    store: ProductStore
    _outdated: dict[str, str] = field(default_factory=dict[str, str])

    def why_not(self, product: Product) -> str:
        """Return why a product is no answer, "" if it is one: of the same run of the same inputs."""
        runs = [each for each in _ancestors(self.store, product) if each.kind == RUN]
        made_by = next((each for each in runs if each.id in product.provenance.parents), None)
        if made_by is None:
            return "no run that is known made it"
        if why := why_another_recording(made_by, self.recording) or self._why_other_plan(
            product, made_by, runs
        ):
            return why
        for run in runs:
            if run.id not in self._outdated:
                self._outdated[run.id] = why_outdated(self.store, run, self.recording)
            if self._outdated[run.id]:
                return self._outdated[run.id]
        return ""

    def _why_other_plan(self, product: Product, made_by: Product, runs: list[Product]) -> str:
        """Return how what made a product differs from what is planned."""
        rivalry = self.plan.rivalry
        if rivalry is None:
            return self._why_other_step(product, made_by, self.step)
        if not any(each.name == rivalry.join.compound.name for each in runs):
            return "made without checks"
        if made_by.name != self.step.compound.name or product.name != self.step.port:
            return f"made by {made_by.name}, and {self.step.compound.name} is planned"
        return next((why for run in runs if (why := self._why_other_span(run))), "")

    def _why_other_step(self, product: Product, made_by: Product, step: Step) -> str:
        said = made_by.provenance.parameters
        asked: Mapping[str, Any] = said["request"]
        if made_by.name != step.compound.name or product.name != step.port:
            return f"made by {made_by.name}, and {step.compound.name} is planned"
        if asked["set"]:
            return f"made with other parameters: {', '.join(sorted(asked['set']))}"
        if {*_wires(said)} != {*step.wiring}:
            return "made from other streams"
        if (asked["clock"], asked["reorder"], asked["offset"]) != (Options().clock, Options().reorder, {}):
            return "played with other clocks"
        if "map" in asked or "verdicts" in said["config"]:
            return "made with a map of places" if "map" in asked else "made with verdicts"
        if why := self._why_other_span(made_by):
            return why
        given = {each.id: each for each in map(self.store.look_up, made_by.provenance.parents) if each}
        for before in step.before:
            found = [each for each in given.values() if each.name == before.port]
            makers = [(each, self._maker_of(each)) for each in found]
            fits = [not self._why_other_step(each, run, before) for each, run in makers if run is not None]
            if not any(fits):
                return f"made from another {before.port} than that of {before.compound.name}"
        return ""

    def _maker_of(self, product: Product) -> Product | None:
        parents = map(self.store.look_up, product.provenance.parents)
        return next((each for each in parents if each is not None and each.kind == RUN), None)

    def _why_other_span(self, run: Product) -> str:
        asked: Mapping[str, Any] = run.provenance.parameters["request"]
        same = (asked["start"], asked["end"]) == (self.request.time or (None, None))
        return "" if same else "made from another part of the recording"


def _why_not_good(request: Request, recording: Recording, product: Product) -> str:
    """Return which wish of a request a product does not meet, "" if it meets all.

    To make it again from the same inputs would not help: it would be the same.
    """
    end = recording.span[1] if recording.span else None
    age = None if end is None or product.t1_ns is None else (end - product.t1_ns) / NS
    if request.max_age is not None and (age is None or age > request.max_age):
        ends = f"it ends {age:.3g} s before the recording" if age is not None else "it has no time"
        return f"{ends}, and at most {request.max_age:g} s were asked for"
    if request.min_quality is None or (product.score is not None and product.score >= request.min_quality):
        return ""
    scored = (
        "it has no score, as nothing judged it"
        if product.score is None
        else f"its score is {product.score:.2g}"
    )
    return f"{scored}, and at least {request.min_quality:g} was asked for"


def _wires(said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Give input and stream of each wire of a run."""
    for port, wire in said["config"]["wiring"].items():
        yield port.partition(" ")[0], wire["stream"]


def _ancestors(store: ProductStore, product: Product) -> list[Product]:
    return [each.product for each in store.lineage(product.id).ancestors if each.product is not None]


def _verdicts_on(recording: Recording, check: bool | VerdictTable) -> VerdictTable | None:
    if isinstance(check, bool):
        from transect import integrity

        return integrity.check(recording) if check else None
    return check


def _leave_out_bad(
    recording: Recording, verdicts: VerdictTable | None, most_bad: float
) -> tuple[Recording, list[Refusal]]:
    """Return the recording without streams that were BAD for too long, and what is said of those."""
    if verdicts is None:
        return recording, []
    refused: list[Refusal] = []
    for name, windows in sorted(verdicts.by_stream.items()):
        bad_ns: Counter[str] = Counter()
        for window in windows:
            if window.state == "BAD":
                bad_ns[window.reason] += window.t1_ns - window.t0_ns
        total_ns = sum(window.t1_ns - window.t0_ns for window in windows)
        if bad_ns.total() > most_bad * total_ns:
            reason = max(sorted(bad_ns), key=bad_ns.__getitem__)
            said = f"BAD for {bad_ns.total() / NS:.0f} of {total_ns / NS:.0f} s ({reason})"
            refused.append(Refusal(name, said))
    left = tuple(s for s in recording.streams if s.name not in {each.what for each in refused})
    return recording.replace(streams=left), refused


def _make(
    plan: Plan, step: Step, request: Request, recording: Recording, store: ProductStore, mission: str
) -> tuple[Product, Plan]:
    """Run a plan, keep everything that it gives, and return the product that was asked for."""
    start, end = request.time or (None, None)
    known: dict[str, Product] = {}
    with tempfile.TemporaryDirectory() as folder:
        if plan.rivalry is not None:
            done = run_rivalry(plan.rivalry, recording, store, Path(folder), mission, start=start, end=end)
            known = {name: store.get(each) for name, each in done.poses.items()}
            known[done.last.name] = wanted_of(done.last, store, done.made)
            step = step if step == done.last else _lead(step, done.last, done.guide)
            plan = replace(plan, step=step, rivalry=done)
        runner = _Runner(recording, store, mission, {"start": start, "end": end}, plan.rivalry, known)
        return runner.run(step, Path(folder)), plan


def _lead(step: Step, planned: Step, guide: Step) -> Step:
    """Return a step that gets its poses from another one than was planned."""
    wiring = tuple((port, guide.name if name == planned.name else name) for port, name in step.wiring)
    return replace(
        step, wiring=wiring, before=tuple(guide if each == planned else each for each in step.before)
    )


@dataclass
class _Runner:
    """Runs the steps of a plan, and keeps what they give; `known` is there already, by the steps' names."""

    recording: Recording
    store: ProductStore
    mission: str
    span: dict[str, Any]
    rivalry: Rivalry | None
    known: dict[str, Product]

    def run(self, step: Step, folder: Path) -> Product:
        """Run a step after those before it; return the product that was wanted of it."""
        from transect.engine import run

        if step.name in self.known:
            return self.known[step.name]
        given: dict[str, Product] = {}
        for number, before in enumerate(step.before):
            inner = folder / f"before{number}"
            inner.mkdir()
            given[before.name] = self.run(before, inner)
        streams = [stream_of(each, self.store.content(each.id), name) for name, each in given.items()]
        fed = self.recording.replace(streams=(*self.recording.streams, *streams))
        wire = {name: stream for name, stream in step.wiring if stream in given}
        made = run(step.compound, fed, wire=wire, check=bool(self.rivalry), out=folder / "run", **self.span)
        # What the verdicts were acted on by is an ancestor, whichever poses were used.
        acted = [self.known[self.rivalry.last.name]] if self.rivalry else []
        parents = list(dict.fromkeys(each.id for each in (*given.values(), *acted)))
        ids = keep_result(step, made, folder / "run", self.store, self.mission, parents)
        return wanted_of(step, self.store, ids)

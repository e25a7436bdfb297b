"""Answering a request: from the store if something there is good enough, else by running a plan."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.base.clocks import NS
from transect.errors import TransectError
from transect.products import Area, Product, ProductStore, Wanted
from transect.products.keeping import keep_run, stream_of

from .handing_over import run_rivalry
from .planning import Plan, Refusal, Step, is_of_kind, make_plan
from .policy import Policy, load_policy
from .preferences import Preferences, load_preferences
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
    """

    product: Product | None
    plan: Plan | None = None
    refused: tuple[Refusal, ...] = ()


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
    maker = in_turn.rivalry.join.compound.name if in_turn and in_turn.rivalry else ""
    found, refused = _look(request, recording, store, maker) if policy is None else (None, ())
    if found is not None:
        return Answer(found, refused=refused)
    plan, usable = in_turn, recording
    if plan is None:
        usable, bad = _leave_out_bad(recording, _verdicts_on(recording, check), preferences.most_bad)
        plan = make_plan(request.kind, usable, preferences, bad)
    if plan.step is None:
        error = NoPlanError(f"there is no way to a {request.kind} from {recording.name}", why=str(plan))
        error.plan = plan
        raise error
    if dry_run:
        return Answer(None, plan, refused)
    return Answer(*_make(plan, plan.step, request, usable, store, mission), refused)


def _plan_in_turn(kind: str, recording: Recording, preferences: Preferences, policy: Policy) -> Plan | None:
    """Return how several ways take turns to make a product, or the poses that it needs; None if none do."""
    rivalry = plan_rivalry(kind, recording, policy)
    if rivalry is not None:
        return Plan(kind, rivalry.last, rivalry.refused, rivalry)
    poses = plan_rivalry("Pose", recording, policy)
    plan = make_plan(kind, recording, preferences, rivalry=poses) if poses else None
    return plan if plan and plan.rivalry else None


def _look(
    request: Request, recording: Recording, store: ProductStore, maker: str
) -> tuple[Product | None, tuple[Refusal, ...]]:
    """Return the newest product of the recording that is good enough, and why others are not."""
    refused: list[Refusal] = []
    wanted = Wanted(time=request.time, clock=recording.clock, area=request.area, frame=request.frame)
    for product in store.find(wanted):
        if not is_of_kind(request.kind, product.name, product.kind):
            continue
        why = _why_not(product, request, recording, store, maker)
        if not why:
            return product, tuple(refused)
        refused.append(Refusal(product.id[:12], why))
    return None, tuple(refused)


def _why_not(
    product: Product, request: Request, recording: Recording, store: ProductStore, maker: str
) -> str:
    """Return why a product is no answer, "" if it is one; if a maker is named, it must be of its runs."""
    ancestors = _ancestors(store, product)
    if maker and not any(each.name == maker for each in ancestors):
        return "made without checks"
    read = [file for each in ancestors for file in each.provenance.sources]
    same = [
        source.sha256(f.path) == f.sha256 for f in read for source in recording.sources if f.path in source
    ]
    if not same or not all(same):
        return "made from other files"
    end = recording.span[1] if recording.span else None
    age = None if end is None or product.t1_ns is None else (end - product.t1_ns) / NS
    if request.max_age is not None and (age is None or age > request.max_age):
        return f"it ends {age:.3g} s before the recording" if age is not None else "it has no time"
    if request.min_quality is not None and (product.score is None or product.score < request.min_quality):
        return f"its score is {product.score}" if product.score is not None else "nobody judged it"
    return ""


def _ancestors(store: ProductStore, product: Product) -> list[Product]:
    pending, found = [store.lineage(product.id)], list[Product]()
    while pending:
        lineage = pending.pop()
        found += [lineage.product] if lineage.product else []
        pending += lineage.parents
    return found


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
        bad = [window for window in windows if window.state == "BAD"]
        if len(bad) > most_bad * len(windows):
            reason = max({each.reason for each in bad}, key=[each.reason for each in bad].count)
            refused.append(Refusal(name, f"BAD for {len(bad)} of {len(windows)} s ({reason})"))
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
            known[done.last.name] = _given(done.last, store, done.made)
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
        from transect.integrity import run

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
        run(step.compound, fed, wire=wire, check=bool(self.rivalry), out=folder / "run", **self.span)
        # What the verdicts were acted on by is an ancestor, whichever poses were used.
        acted = [self.known[self.rivalry.last.name]] if self.rivalry else []
        parents = list(dict.fromkeys(each.id for each in (*given.values(), *acted)))
        return _given(step, self.store, keep_run(self.store, folder / "run", self.mission, parents=parents))


def _given(step: Step, store: ProductStore, ids: Sequence[str]) -> Product:
    """Return the product of a step that was wanted; of several, one that says where it is."""
    made = [product for product in map(store.get, ids) if product.name == step.port]
    return min(made, key=lambda product: product.place is None)

"""Requests for products, answered from the store if it has the product, else by executing a plan."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from transect.base.clocks import NS
from transect.errors import TransectError
from transect.products import Area, Product, ProductQuery, ProductStore

from .plans import Plan, PlanStep, Refusal, is_of_kind, make_plan
from .preferences import Preferences, load_preferences

if TYPE_CHECKING:
    from transect.integrity.table import VerdictTable
    from transect.recording import Recording

    from .policy import SensorPolicy


class NoPlanError(TransectError):
    """No compound can make the product from this recording; `plan` has the reasons."""

    plan: Plan


@dataclass(frozen=True)
class ProductRequest:
    """A kind of product and constraints on it; None is no constraint."""

    kind: str  # name of an output or its type: `DEM`, `Pose`, `Trajectory`, `PointCloud`, ...
    time: tuple[int, int] | None = None  # [from, to) in ns on the recording's clock
    area: Area | None = None  # that the product's bounding box intersects
    frame: str | None = None
    max_age: float | None = None  # seconds by which it may end before the recording does
    min_quality: float | None = None  # smallest score


@dataclass(frozen=True)
class Answer:
    """The product that answers a request, or the plan for it."""

    product: Product | None  # None if it was only planned
    plan: Plan | None = None  # None if the product was in the store
    refused: tuple[Refusal, ...] = ()  # products of the store that do not answer the request
    not_met: str = ""  # the constraint that the product violates; "" if it meets all


def answer(
    request: ProductRequest,
    recording: Recording,
    store: ProductStore,
    *,
    preferences: Preferences | None = None,
    check: bool | VerdictTable = False,
    policy: SensorPolicy | None = None,
    mission: str = "",
    dry_run: bool = False,
) -> Answer:
    """Return a product of a recording: one that is in the store, or one that is made and kept now.

    Parameters
    ----------
    check : bool or VerdictTable
        Check the sensors. If the policy has several alternatives for the product, verdicts decide which one
        is used when; else streams that were BAD for too long, by these verdicts or by a table, are not used.
    policy : SensorPolicy
        Which alternative replaces another one; if it is given, the product is made even if the store has one.
    mission : str
        The campaign that new products belong to.
    dry_run : bool
        Only search the store, or plan.

    Raises
    ------
    NoPlanError
        If no compound can make it.
    """
    preferences = preferences or load_preferences()
    plan, usable = None, recording
    if check is True:
        plan = _plan_fallbacks(request.kind, recording, preferences, policy)
    if plan is None:
        usable, bad = _drop_bad_streams(recording, _verdicts_on(recording, check), preferences.max_bad_ratio)
        plan = make_plan(request.kind, usable, preferences, bad)
    if plan.step is None:
        error = NoPlanError(
            f"there is no way to make a {request.kind} from {recording.name}",
            why=plan.refusals(),
            hint=f"another recording, or more of this one; transect info {recording.typed} lists its streams",
        )
        error.plan = plan
        raise error
    found, refused = (None, ()) if policy else _search_store(request, plan, plan.step, recording, store)
    if found is not None:
        return Answer(found, refused=refused, not_met=_violated_constraint(request, recording, found))
    if dry_run:
        return Answer(None, plan, refused)
    from .plan_execution import execute_plan

    product, plan = execute_plan(plan, plan.step, request.time, usable, store, mission)
    return Answer(product, plan, refused, _violated_constraint(request, recording, product))


def _plan_fallbacks(
    kind: str, recording: Recording, preferences: Preferences, policy: SensorPolicy | None
) -> Plan | None:
    """Return how alternatives make a product, or the poses that it needs; None if there are none."""
    from .fallback_plans import plan_fallbacks
    from .policy import load_policy

    policy = policy or load_policy()
    fallbacks = plan_fallbacks(kind, recording, policy)
    if fallbacks is not None:
        return Plan(kind, fallbacks.final_step, fallbacks.refused, fallbacks)
    poses = plan_fallbacks("Pose", recording, policy)
    plan = make_plan(kind, recording, preferences, fallbacks=poses) if poses else None
    return plan if plan and plan.fallbacks else None


def _search_store(
    request: ProductRequest, plan: Plan, step: PlanStep, recording: Recording, store: ProductStore
) -> tuple[Product | None, tuple[Refusal, ...]]:
    """Return the newest product that equals what the plan would make now, and why others do not."""
    wanted = ProductQuery(time=request.time, clock=recording.clock, area=request.area, frame=request.frame)
    candidates = [each for each in store.find(wanted) if is_of_kind(request.kind, each.name, each.kind)]
    if not candidates:
        return None, ()
    from .stored_products import StoredProducts

    stored = StoredProducts(plan, step, request.time, recording, store)
    refused: list[Refusal] = []
    for product in candidates:
        difference = stored.difference_from_plan(product)
        if not difference:
            return product, tuple(refused)
        refused.append(Refusal(product.id[:12], difference))
    return None, tuple(refused)


def _violated_constraint(request: ProductRequest, recording: Recording, product: Product) -> str:
    """Return which constraint of a request a product violates, "" if it meets all.

    Making it again from the same inputs would not help: it would be the same.
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


def _verdicts_on(recording: Recording, check: bool | VerdictTable) -> VerdictTable | None:
    if check is True:
        from transect import integrity

        return integrity.check(recording)
    return check or None


def _drop_bad_streams(
    recording: Recording, verdicts: VerdictTable | None, max_bad_ratio: float
) -> tuple[Recording, list[Refusal]]:
    """Return the recording without streams that were BAD for too long, and a refusal for each of them."""
    if verdicts is None:
        return recording, []
    refused: list[Refusal] = []
    for name, windows in sorted(verdicts.by_stream.items()):
        bad_ns: Counter[str] = Counter()
        for window in windows:
            if window.state == "BAD":
                bad_ns[window.reason] += window.t1_ns - window.t0_ns
        total_ns = sum(window.t1_ns - window.t0_ns for window in windows)
        if bad_ns.total() > max_bad_ratio * total_ns:
            reason = max(sorted(bad_ns), key=bad_ns.__getitem__)
            why = f"BAD for {bad_ns.total() / NS:.0f} of {total_ns / NS:.0f} s ({reason})"
            refused.append(Refusal(name, why))
    dropped = {each.what for each in refused}
    good_streams = tuple(stream for stream in recording.streams if stream.name not in dropped)
    return recording.replace(streams=good_streams), refused

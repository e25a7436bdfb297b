"""Execution of a plan: its steps are run in order, and all their outputs are kept as products."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from transect.products import Product, ProductStore
from transect.products.run_products import stream_of
from transect.recording import Recording

from .fallback_plans import FallbackPlan
from .plans import Plan, PlanStep
from .results import keep_result, product_of_step


def execute_plan(
    plan: Plan,
    step: PlanStep,
    time: tuple[int, int] | None,
    recording: Recording,
    store: ProductStore,
    mission: str,
) -> tuple[Product, Plan]:
    """Run a plan and keep all outputs; return the wanted product and the plan with its results."""
    start, end = time or (None, None)
    known: dict[str, Product] = {}
    with tempfile.TemporaryDirectory() as folder:
        if plan.fallbacks is not None:
            from .fallback_execution import run_fallbacks

            done = run_fallbacks(
                plan.fallbacks, recording, store, Path(folder), mission, start=start, end=end
            )
            assert done.results is not None
            known = {name: store.get(each) for name, each in done.results.poses.items()}
            known[done.final_step.name] = product_of_step(done.final_step, store, done.results.made)
            if step != done.final_step:
                step = _replace_source(step, done.final_step, done.mapping_step)
            plan = replace(plan, step=step, fallbacks=done)
        runner = _PlanRunner(recording, store, mission, {"start": start, "end": end}, plan.fallbacks, known)
        return runner.run(step, Path(folder)), plan


def _replace_source(step: PlanStep, planned: PlanStep, actual: PlanStep) -> PlanStep:
    """Return a step that gets its poses from another step than was planned."""
    wiring = tuple((port, actual.name if name == planned.name else name) for port, name in step.wiring)
    before = tuple(actual if each == planned else each for each in step.before)
    return replace(step, wiring=wiring, before=before)


@dataclass
class _PlanRunner:
    """Runs steps and keeps their outputs."""

    recording: Recording
    store: ProductStore
    mission: str
    span: dict[str, Any]  # `start` and `end` of the part that is played
    fallbacks: FallbackPlan | None
    known: dict[str, Product]  # results that exist already, by the name of their step

    def run(self, step: PlanStep, folder: Path) -> Product:
        """Run a step after those before it; return the product that was wanted of it."""
        from transect.engine import run

        if step.name in self.known:
            return self.known[step.name]
        inputs: dict[str, Product] = {}
        for number, before in enumerate(step.before):
            inner = folder / f"before{number}"
            inner.mkdir()
            inputs[before.name] = self.run(before, inner)
        streams = [stream_of(each, self.store.content(each.id), name) for name, each in inputs.items()]
        extended = self.recording.replace(streams=(*self.recording.streams, *streams))
        wire = {name: stream for name, stream in step.wiring if stream in inputs}
        made = run(
            step.compound, extended, wire=wire, check=bool(self.fallbacks), out=folder / "run", **self.span
        )
        # The joined poses are an ancestor in any case: the verdicts acted on them.
        joined = [self.known[self.fallbacks.final_step.name]] if self.fallbacks else []
        parents = list(dict.fromkeys(each.id for each in (*inputs.values(), *joined)))
        ids = keep_result(step, made, folder / "run", self.store, self.mission, parents)
        return product_of_step(step, self.store, ids)

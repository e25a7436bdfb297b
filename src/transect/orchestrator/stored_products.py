"""Products of a store compared with a plan: which of them running the plan now would reproduce."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from transect.engine.replay import Options
from transect.products import Product, ProductStore
from transect.products.reproduction import why_another_recording, why_outdated
from transect.products.run_products import RUN
from transect.recording import Recording

from .plans import Plan, PlanStep


@dataclass
class StoredProducts:
    """Compares products of a store with a plan; each run is examined once."""

    plan: Plan
    step: PlanStep
    time: tuple[int, int] | None  # the part of the recording that was asked for, [from, to) in ns
    recording: Recording
    store: ProductStore
    _outdated: dict[str, str] = field(default_factory=dict[str, str])  # by run: why it is, or ""

    def difference_from_plan(self, product: Product) -> str:
        """Return how a product differs from what the plan would make, "" if it was made by the same run."""
        ancestors = [each.product for each in self.store.lineage(product.id).ancestors]
        runs = [each for each in ancestors if each is not None and each.kind == RUN]
        made_by = next((each for each in runs if each.id in product.provenance.parents), None)
        if made_by is None:
            return "no known run made it"
        if why := why_another_recording(made_by, self.recording):
            return why
        if why := self._why_other_plan(product, made_by, runs):
            return why
        for run in runs:
            if run.id not in self._outdated:
                self._outdated[run.id] = why_outdated(self.store, run, self.recording)
            if self._outdated[run.id]:
                return self._outdated[run.id]
        return ""

    def _why_other_plan(self, product: Product, made_by: Product, runs: list[Product]) -> str:
        fallbacks = self.plan.fallbacks
        if fallbacks is None:
            return self._why_other_step(product, made_by, self.step)
        if not any(each.name == fallbacks.join.compound.name for each in runs):
            return "made without checks"
        if made_by.name != self.step.compound.name or product.name != self.step.port:
            return f"made by {made_by.name}, and {self.step.compound.name} is planned"
        return next((why for run in runs if (why := self._why_other_span(run))), "")

    def _why_other_step(self, product: Product, made_by: Product, step: PlanStep) -> str:
        parameters = made_by.provenance.parameters
        request: Mapping[str, Any] = parameters["request"]
        wiring: Mapping[str, Any] = parameters["config"]["wiring"]
        wires = {(port.partition(" ")[0], wire["stream"]) for port, wire in wiring.items()}
        if made_by.name != step.compound.name or product.name != step.port:
            return f"made by {made_by.name}, and {step.compound.name} is planned"
        if request["set"]:
            return f"made with other parameters: {', '.join(sorted(request['set']))}"
        if wires != {*step.wiring}:
            return "made from other streams"
        if (request["clock"], request["reorder"], request["offset"]) != (
            Options().clock,
            Options().reorder,
            {},
        ):
            return "played with other clocks"
        if "map" in request or "verdicts" in parameters["config"]:
            return "made with a kept map" if "map" in request else "made with verdicts"
        if why := self._why_other_span(made_by):
            return why
        parents = [each for each in map(self.store.look_up, made_by.provenance.parents) if each]
        for before in step.before:
            makers = [(each, self._maker_of(each)) for each in parents if each.name == before.port]
            if not any(
                run is not None and not self._why_other_step(each, run, before) for each, run in makers
            ):
                return f"made from another {before.port} than that of {before.compound.name}"
        return ""

    def _maker_of(self, product: Product) -> Product | None:
        parents = map(self.store.look_up, product.provenance.parents)
        return next((each for each in parents if each is not None and each.kind == RUN), None)

    def _why_other_span(self, run: Product) -> str:
        request: Mapping[str, Any] = run.provenance.parameters["request"]
        is_same = (request["start"], request["end"]) == (self.time or (None, None))
        return "" if is_same else "made from another part of the recording"

"""Results of a plan's steps: kept as products, or an error if the wanted output is missing."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from transect.errors import TransectError
from transect.products.run_products import keep_run

if TYPE_CHECKING:
    from transect.engine import Run
    from transect.products import Product, ProductStore

    from .plans import PlanStep


class NoResultError(TransectError):
    """A run ended without the wanted output; nothing of it is kept."""


def keep_result(
    step: PlanStep, run: Run, folder: Path, store: ProductStore, mission: str, parents: Sequence[str] = ()
) -> list[str]:
    """Keep the run in a folder and all its outputs as products; return their ids.

    Raises
    ------
    NoResultError
        If the wanted port emitted nothing.
    """
    from transect.engine.runs import silent_outputs

    silent = silent_outputs(run)
    if step.port not in silent:
        return keep_run(store, folder, mission, parents=parents)
    bad = [conclusion.text for conclusion in run.conclusions if conclusion.bad]
    paths = shlex.join(map(str, run.request["recording"]["paths"]))
    raise NoResultError(
        f"{step.compound.name} gave no {step.port}",
        where=", ".join(f"{port} from {stream}" for port, stream in step.wiring),
        why="; ".join(bad) or silent[step.port],
        hint=f"transect run {step.compound.name} {paths} -o out  keeps its other outputs; "
        f"--preferences takes a YAML file in which {step.port}: [...] lists the compounds to try first",
    )


def product_of_step(step: PlanStep, store: ProductStore, ids: Sequence[str]) -> Product:
    """Return the wanted product of a step; of several, a trajectory file, then one with a position."""
    made = [product for product in map(store.get, ids) if product.name == step.port]
    return min(made, key=lambda product: (product.payload.format != "tum", product.place is None))

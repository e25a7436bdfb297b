"""What a step of a plan gave: kept if it has what was wanted of it, else an error that says why not."""

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

    from .planning import Step


class NoResultError(TransectError):
    """A run came to its end without what was wanted of it; nothing of it is kept."""


def keep_result(
    step: Step, run: Run, folder: Path, store: ProductStore, mission: str, parents: Sequence[str] = ()
) -> list[str]:
    """Keep a run in a folder and all its outputs; return the ids.

    Raises
    ------
    NoResultError
        If nothing came out of the port that was wanted.
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
        hint=f"transect run {step.compound.name} {paths} -o out  keeps what else it gives, to be looked at; "
        f"--preferences takes a YAML file in which {step.port}: [...] names what comes first",
    )


def wanted_of(step: Step, store: ProductStore, ids: Sequence[str]) -> Product:
    """Return the product of a step that was wanted; of several, one that says where it is."""
    made = [product for product in map(store.get, ids) if product.name == step.port]
    return min(made, key=lambda product: (product.payload.format != "tum", product.place is None))

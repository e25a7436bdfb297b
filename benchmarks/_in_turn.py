"""What the benchmarks of the Orchestrator share: days that are kept, and products that are made in turn."""

from pathlib import Path

import transect
from transect.orchestrator import FallbackPlan, ProductRequest, answer
from transect.products import Product, ProductStore
from transect.recording import Recording
from transect.simulation.day import WorldOptions, simulate, write_day

MAX_ERROR_RATIO = 1.05
"""Error relative to the best single alternative."""


def make_in_turn(kind: str, day: Recording, store: ProductStore) -> tuple[Product, FallbackPlan]:
    """Ask for a product, and print which alternatives were used when."""
    asked = answer(ProductRequest(kind), day, store, check=True)
    assert asked.plan is not None
    assert asked.plan.fallbacks is not None
    assert asked.product is not None
    for line in asked.plan.fallbacks.describe():
        if line.startswith(("from +", "in the end", "weighed")):
            print("   ", line)
    return asked.product, asked.plan.fallbacks


def kept(folder: Path, world: str, options: WorldOptions) -> Recording:
    """A day, simulated if it is not in the folder."""
    path = folder / "-".join([world, str(options.seed), *options.conditions.values()])
    if not path.exists():
        write_day(simulate(world, options), path)
    return transect.open(path)

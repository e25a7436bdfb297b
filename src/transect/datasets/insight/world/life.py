"""One life of the simulated arm: what it was to do, what was true, and what its flight software saw of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from transect.base.clocks import NS
from transect.simulation.day import Options

from .arm.flight import Flight, NoLoad
from .faults import Faults, choose_faults, insert_faults
from .parameters import parameter_sets
from .site import Site
from .state import State, Telemetry, compute_state, measure
from .story import STORIES, Plan, Step, list_steps, make_plan

START_NS = 615_088_547 * NS
"""Spacecraft clock at the start of every story: that of the label in SIS appendix E."""
KNOWN = {"story": STORIES, "no_load": ("along", "subtracted")}
"""Conditions and their values, the usual one first; `fault` names any of the faults."""


@dataclass(frozen=True, eq=False)
class Life:
    """What happened."""

    site: Site
    flight: Flight
    plan: Plan
    true: State
    seen: Telemetry
    fault_names: tuple[str, ...]
    faults: Faults
    conditions: Mapping[str, str]  # what was asked for

    @property
    def recorded(self) -> NDArray[np.int64]:
        """Rows (k,) that are in the recording."""
        return np.flatnonzero(self.plan.recorded)


def live(options: Options) -> Life:
    """Let the arm do what the options ask for."""
    asked = options.choose("insight", KNOWN, free=("fault",))
    sets = parameter_sets()
    flight = Flight.of(sets, cast("NoLoad", asked["no_load"]))
    site = Site(flight.arm, sets, options.seed)
    names = choose_faults(asked["fault"])

    def rounds(turn: int) -> list[Step]:
        steps = list(list_steps(asked["story"], site, turn))
        return steps if turn else insert_faults(steps, names)

    planned = make_plan(rounds, flight, options.seconds)
    true = compute_state(planned, sets, options.seed, overheat="grapple-overheat" in names)
    faults = Faults.of(names, planned)
    seen = measure(planned, true, flight, options.seed, START_NS, faults)
    return Life(site, flight, planned, true, seen, names, faults, asked)

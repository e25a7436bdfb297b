"""One life of the simulated arm: what it was to do, what was true, and what its flight software saw of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from transect.base.clocks import NS
from transect.errors import UsageError, did_you_mean

from ...arm.flight import Flight, NoLoad
from ...day import Options
from .faults import NAMES, Faults, choose_faults, insert_faults
from .parameters import parameter_sets
from .plan import Plan, make_plan
from .site import Site
from .state import State, compute_state
from .story import STORIES, Step, list_steps
from .telemetry import Telemetry, measure

START_NS = 615_088_547 * NS
"""Spacecraft clock at the start of every story: that of the label in SIS appendix E."""
DEFAULTS = {"story": "all", "no_load": "along", "fault": ""}
CHOICES = {"story": STORIES, "no_load": ("along", "subtracted"), "fault": NAMES}


@dataclass(frozen=True, eq=False)
class Life:
    """What happened.

    Attributes
    ----------
    site : Site
    flight : Flight
    plan : Plan
    true : State
    seen : Telemetry
    fault_names : tuple of str
    faults : Faults
    conditions : mapping
        What was asked for.
    """

    site: Site
    flight: Flight
    plan: Plan
    true: State
    seen: Telemetry
    fault_names: tuple[str, ...]
    faults: Faults
    conditions: Mapping[str, str]

    @property
    def recorded(self) -> NDArray[np.int64]:
        """Rows (k,) that are in the recording."""
        return np.flatnonzero(self.plan.recorded)


def live(options: Options) -> Life:
    """Let the arm do what the options ask for."""
    asked = _conditions(options.conditions)
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


def _conditions(given: Mapping[str, str]) -> dict[str, str]:
    """Return all conditions, those not given by default."""
    for key, value in given.items():
        if key not in CHOICES:
            raise UsageError(f"insight knows no condition {key!r}", hint=did_you_mean(key, CHOICES))
        if key != "fault" and value not in CHOICES[key]:
            raise UsageError(f"{key} cannot be {value!r}", hint=did_you_mean(value, CHOICES[key]))
    return {**DEFAULTS, **given}

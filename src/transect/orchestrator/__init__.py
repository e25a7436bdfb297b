"""Ask for a product instead of a computation: it is found in a store, or planned, computed and kept.

- `orchestrator`: the `Orchestrator` of a recording and a store
- `requests`: answer a request, from the store (`stored_products`) or by executing a plan (`plan_execution`)
- `plans`: search backwards from a kind of product to the streams of a recording, across all compounds
- `preferences`: which compound is tried first
- `policy`: which compound or sensor replaces another one while that is BAD; `fallback_plans` plans by it,
  `switches` decides from verdicts, `fallback_execution` runs all alternatives and joins them
- `forms`, `conversion`: a product in another file type, frame, unit or resolution
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .fallback_execution import SWITCH
    from .fallback_plans import FallbackPlan, plan_fallbacks
    from .orchestrator import Orchestrator
    from .plans import Plan, PlanStep, Refusal, make_plan
    from .policy import SensorPolicy, load_policy
    from .preferences import Preferences, load_preferences
    from .requests import Answer, NoPlanError, ProductRequest, answer
    from .switches import Switch, decide_switches

__all__ = [
    "SWITCH",
    "Answer",
    "FallbackPlan",
    "NoPlanError",
    "Orchestrator",
    "Plan",
    "PlanStep",
    "Preferences",
    "ProductRequest",
    "Refusal",
    "SensorPolicy",
    "Switch",
    "answer",
    "decide_switches",
    "load_policy",
    "load_preferences",
    "make_plan",
    "plan_fallbacks",
]

__getattr__ = importer(
    __name__,
    {
        "fallback_execution": ("SWITCH",),
        "fallback_plans": ("FallbackPlan", "plan_fallbacks"),
        "orchestrator": ("Orchestrator",),
        "plans": ("Plan", "PlanStep", "Refusal", "make_plan"),
        "policy": ("SensorPolicy", "load_policy"),
        "preferences": ("Preferences", "load_preferences"),
        "requests": ("Answer", "NoPlanError", "ProductRequest", "answer"),
        "switches": ("Switch", "decide_switches"),
    },
)

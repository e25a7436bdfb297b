"""Ask for a product instead of how to make it: found in a store, or planned, run and kept.

- `asking`: the `Orchestrator` of a recording and a store
- `planning`: from a kind of product back to the streams that are there, across all compounds
- `requesting`: answer a request: from the store, or by running a plan
- `preferences`: which compound is tried first
- `policy`: what stands in for what while a sensor is BAD; `rivalry` plans by it, `switching` decides,
  `handing_over` runs it
"""

from .asking import Orchestrator
from .handing_over import SWITCH
from .planning import Plan, Refusal, Step, make_plan
from .policy import Policy, load_policy
from .preferences import Preferences, load_preferences
from .requesting import Answer, NoPlanError, Request, answer
from .rivalry import Rivalry, plan_rivalry
from .switching import Switch, decide

__all__ = [
    "SWITCH",
    "Answer",
    "NoPlanError",
    "Orchestrator",
    "Plan",
    "Policy",
    "Preferences",
    "Refusal",
    "Request",
    "Rivalry",
    "Step",
    "Switch",
    "answer",
    "decide",
    "load_policy",
    "load_preferences",
    "make_plan",
    "plan_rivalry",
]

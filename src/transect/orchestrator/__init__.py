"""Ask for a product instead of how to make it: found in a store, or planned, run and kept.

- `planning`: from a kind of product back to the streams that are there, across all compounds
- `requesting`: answer a request: from the store, or by running a plan
- `preferences`: which compound is tried first
"""

from .planning import Plan, Refusal, Step, make_plan
from .preferences import Preferences, load_preferences
from .requesting import Answer, Request, answer

__all__ = [
    "Answer",
    "Plan",
    "Preferences",
    "Refusal",
    "Request",
    "Step",
    "answer",
    "load_preferences",
    "make_plan",
]

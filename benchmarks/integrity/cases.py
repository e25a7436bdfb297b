"""What a case is, and by which words a fault is named rightly."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache

from transect.errors import UsageError, did_you_mean
from transect.integrity import catalogue
from transect.simulation.faults import FAULTS

SAME = {"DUST": "OBSCURANT", "SMOKE": "OBSCURANT"}
"""Reasons that checks cannot distinguish, and the one they report for both."""
SAID = {"T01": ("EARLY_STOP",)}
"""Reasons of a check in addition to those of its limits."""

ONLY_OF = {("S05", "BIAS"): ("Imu",)}
"""Types of streams for which a check reports a reason; it judges other types for other reasons."""


@dataclass(frozen=True, order=True)
class Case:
    """One recording to judge.

    Attributes
    ----------
    base : str
    seed : int
        Of the recording and of the fault.
    fault : str
        "" for the clear recording.
    severity : float
    stream : str
        What the fault happens to; "*" for all streams that it can happen to.
    """

    base: str
    seed: int
    fault: str = ""
    severity: float = 0.0
    stream: str = ""

    @property
    def file(self) -> str:
        """The name of the file of its result."""
        if not self.fault:
            return f"{self.base}.{self.seed}.clear.json"
        return f"{self.base}.{self.seed}.{self.fault}.{self.severity:g}.json"

    def to_dict(self) -> dict[str, object]:
        """Return it as a document."""
        return asdict(self)


def reasons_of(fault: str) -> frozenset[str]:
    """Return the words that name a fault rightly, as checks say them."""
    return frozenset(SAME.get(reason, reason) for reason in FAULTS[fault].reasons)


@cache
def reasons_said() -> Mapping[str, frozenset[str]]:
    """Return by check the words that it can say."""
    return {
        check.id: frozenset(
            SAME.get(r, r) for r in (*(x.reason for x in check.limits.values()), *SAID.get(check.id, ()))
        )
        for check in catalogue.load_all().values()
    }


def namers_of(fault: str, kind: str = "") -> frozenset[str]:
    """Return the checks that have a word for a fault, of streams of a type; "" for any."""
    right = reasons_of(fault)
    return frozenset(
        check for check, said in reasons_said().items() if any(_says(check, r, kind) for r in said & right)
    )


def _says(check: str, reason: str, kind: str) -> bool:
    return not kind or kind in ONLY_OF.get((check, reason), (kind,))


def choose_faults(patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the faults of streams whose names match any of the patterns; all if there are none."""
    names = [name for name, fault in FAULTS.items() if fault.damage is None]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise UsageError(f"there is no fault {pattern!r} of streams", hint=did_you_mean(pattern, names))
    return tuple(n for n in names if not patterns or any(fnmatch.fnmatchcase(n, p) for p in patterns))

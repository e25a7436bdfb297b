"""How far a sensor can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


def _no_evidence() -> dict[str, float]:
    return {}


@dataclass(frozen=True)
class Verdict:
    """How far one stream can be trusted in the window [start_ns, end_ns), and why.

    Attributes
    ----------
    trust : float
        1 is fully, 0 is not at all.
    cause : str
        `ok`, `dust`, `smoke`, `rain`, `gap`, `clock`, `slip`, ...
    reason : str
        A sentence for a person.
    evidence : mapping of str to float
        The numbers behind it.
    """

    stream: str
    start_ns: int
    end_ns: int
    trust: float
    cause: str
    reason: str
    check: str = ""
    evidence: Mapping[str, float] = field(default_factory=_no_evidence)

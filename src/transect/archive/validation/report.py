"""Reports: the verdict, what was not checked, and the problems, for people and for programs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

from .problems import SEVERITIES, Problem

Verdict = Literal["valid", "valid with warnings", "invalid"]


@dataclass(frozen=True)
class Report:
    """What came out."""

    paths: tuple[str, ...]  # what was validated
    # how many labels were judged, and how many were left out: older versions of bundles and collections
    labels: int
    skipped: int
    notes: tuple[str, ...]  # what was not checked, and why
    problems: tuple[Problem, ...]  # in the order of the files

    @property
    def verdict(self) -> Verdict:
        """The worst that was found."""
        counts = self.counts
        return "invalid" if counts["error"] else "valid with warnings" if counts["warning"] else "valid"

    @property
    def headline(self) -> str:
        """The verdict for people, who have to know if it is one on a part of what there is to check."""
        if self.verdict == "invalid" or not self.notes:
            return self.verdict
        return f"{self.verdict} as far as checked"

    @property
    def counts(self) -> dict[str, int]:
        """Number of problems by severity; one cause of many counts once."""
        found = Counter[str](each.severity for each in self.problems)
        return {severity: found[severity] for severity in SEVERITIES}

    @property
    def types(self) -> dict[str, int]:
        """How often each type of problem occurs, each record counted."""
        found: Counter[str] = Counter()
        for each in self.problems:
            found[each.type] += each.count
        return dict(sorted(found.items()))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as `--json` prints it; `docs/pds4.md` describes it."""
        return {
            "verdict": self.verdict,
            "paths": list(self.paths),
            "labels": self.labels,
            "skipped": self.skipped,
            "notes": list(self.notes),
            "counts": self.counts,
            "types": self.types,
            "problems": [each.to_dict() for each in self.problems],
        }

"""S04: are numbers missing, or constants that stand for none."""

from __future__ import annotations

import numpy as np

from transect.integrity.checks._signals import Signals, names_in
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window

CONSTANTS = (-99999.0, -9999.0, 99999.0, 1e30, -1e30, 2147483647.0, -2147483648.0)
"""What logs write where nothing was measured."""


class Invalid(Check, id="S04", group="signal"):
    """Part of the numbers that are NaN, infinite, or one of the constants that mean `no value`.

    A column that never had a value is not measured, and does not count. Nor does a fix that a receiver
    says it does not have.

    Motive: Document 002: `<invalid_constant>` in the labels of its tables.
    """

    share = Limit(0.001, 0.05, "NAN", "", "part of the numbers that are none")

    def reset(self) -> None:
        """No column had a value yet."""
        self._seen: set[str] = set()

    def look(self, stream: Window[Signals]) -> Finding | Unknown:
        """Count what is no number, in columns that had some."""
        share, worst = 0.0, 0
        for name in names_in(stream):
            values = stream.array(name)
            wrong = ~np.isfinite(values) | np.isin(values, CONSTANTS)
            if not wrong.all():
                self._seen.add(name)
            if name in self._seen:
                share, worst = max((share, worst), (float(wrong.mean()), int(wrong.sum())))
        if not self._seen:
            return Unknown("NO_NUMBERS", n=len(stream))
        return Finding({"share": share}, len(stream), {"invalid": float(worst)})

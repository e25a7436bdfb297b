"""Timelines of names as one line of text: `laser; 1224476292000000000 radar`."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from transect.errors import UsageError

_IS_NUMBER = re.compile(r"-?\d{1,19}", re.ASCII).fullmatch


@dataclass(frozen=True)
class NameTimeline:
    """A name for each time interval."""

    first: str  # before the first change
    changes: tuple[tuple[int, str], ...] = ()  # start (ns) and name, in order of time

    def __str__(self) -> str:
        """Return the text that `parse` reads."""
        return "; ".join([self.first, *(f"{t_ns} {name}" for t_ns, name in self.changes)])

    @property
    def names(self) -> list[str]:
        """The distinct names in order of time."""
        return list(dict.fromkeys([self.first, *(name for _, name in self.changes)]))

    def at(self, t_ns: int) -> str:
        """Return the name at a time (ns)."""
        count = bisect_right(self.changes, t_ns, key=lambda change: change[0])
        return self.changes[count - 1][1] if count else self.first

    @staticmethod
    def parse(text: str, known: Sequence[str]) -> NameTimeline:
        """Parse a line with known names.

        Raises
        ------
        UsageError
            If the line is not valid.
        """
        first, *rest = (part.split() for part in text.split(";"))
        hint = f"NAME; TIME_NS NAME; ... with names {', '.join(known)}"
        shaped = len(first) == 1 and all(len(part) == 2 for part in rest)
        if not shaped or any(part[-1] not in known for part in (first, *rest)):
            raise UsageError(f"{text!r} is not a timeline", hint=hint)
        if not all(_IS_NUMBER(t_ns) for t_ns, _ in rest):
            raise UsageError(f"a time of {text!r} is not a number of nanoseconds", hint=hint)
        changes = [(int(t_ns), name) for t_ns, name in rest]
        if changes != sorted(changes, key=lambda change: change[0]):
            raise UsageError(f"the times of {text!r} are not in order", hint=hint)
        return NameTimeline(first[0], tuple(changes))

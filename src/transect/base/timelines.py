"""What holds from which time on, as one line of text: `laser; 1224476292000000000 radar`."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from transect.errors import UsageError

_IS_NUMBER = re.compile(r"-?\d{1,19}", re.ASCII).fullmatch


@dataclass(frozen=True)
class Timeline:
    """Names, each from a time on."""

    first: str  # what holds before the first change
    changes: tuple[tuple[int, str], ...] = ()  # time (ns) and what holds from it on, in order of time

    def __str__(self) -> str:
        """Return the line that `parse` takes."""
        return "; ".join([self.first, *(f"{t_ns} {name}" for t_ns, name in self.changes)])

    @property
    def names(self) -> list[str]:
        """All names, each once, in the order in which they come."""
        return list(dict.fromkeys([self.first, *(name for _, name in self.changes)]))

    def at(self, t_ns: int) -> str:
        """Return what holds at a time (ns)."""
        count = bisect_right(self.changes, t_ns, key=lambda change: change[0])
        return self.changes[count - 1][1] if count else self.first

    @staticmethod
    def parse(text: str, known: Sequence[str]) -> Timeline:
        """Return what a line says; names are among those that are known.

        Raises
        ------
        UsageError
            That says what is wrong with the line.
        """
        first, *rest = (part.split() for part in text.split(";"))
        hint = f"NAME; TIME_NS NAME; ... with names {', '.join(known)}"
        shaped = len(first) == 1 and all(len(part) == 2 for part in rest)
        if not shaped or any(part[-1] not in known for part in (first, *rest)):
            raise UsageError(f"{text!r} is no timeline", hint=hint)
        if not all(_IS_NUMBER(t_ns) for t_ns, _ in rest):
            raise UsageError(f"a time of {text!r} is no number of nanoseconds", hint=hint)
        changes = [(int(t_ns), name) for t_ns, name in rest]
        if changes != sorted(changes, key=lambda change: change[0]):
            raise UsageError(f"the times of {text!r} are not in order", hint=hint)
        return Timeline(first[0], tuple(changes))

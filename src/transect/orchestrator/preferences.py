"""Which compound is tried first, and how bad a sensor may be: a table that a person can edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transect.errors import ParseError

OURS = Path(__file__).with_name("preferences.yaml")
MOST_BAD = "most_bad"


@dataclass(frozen=True)
class Preferences:
    """What is tried first.

    Attributes
    ----------
    order : mapping of str to sequence of str
        By kind of product: compounds, or `Compound/Implementation`, the best first.
    most_bad : float
        A stream that was BAD for a larger part of the time is not used.
    """

    order: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    most_bad: float = 0.5

    def rank(self, kind: str, compound: str) -> int:
        """Return the place of a compound among those that are named for a kind; others come after them."""
        named = next((names for each, names in self.order.items() if each.casefold() == kind.casefold()), ())
        own = compound.partition("/")[0]
        return next((n for n, each in enumerate(named) if each in (compound, own)), len(named))


def load_preferences(path: Path | None = None) -> Preferences:
    """Return our preferences; what a table of a person's own says comes instead.

    Raises
    ------
    ParseError
        That names the file and what is wrong.
    """
    content = _read(OURS) | (_read(path) if path else {})
    most_bad = content.pop(MOST_BAD)
    return Preferences({kind: [str(name) for name in names] for kind, names in content.items()}, most_bad)


def _read(path: Path) -> dict[str, Any]:
    from transect.base.yaml_parts import parse

    try:
        content = parse(path.read_text(encoding="utf-8"), str(path))[0]
    except (OSError, UnicodeDecodeError) as error:
        raise ParseError("the preferences cannot be read", where=str(path), why=str(error)) from error
    hint = "Pose: [PoseFusion], most_bad: 0.5"
    if not isinstance(content, dict):
        raise ParseError("preferences are a table of kinds", where=str(path), hint=hint)
    for kind, said in content.items():  # pyright: ignore[reportUnknownVariableType]
        if kind == MOST_BAD:
            right = isinstance(said, int | float) and 0 <= said <= 1
        else:
            right = isinstance(said, list)
        if not right:
            raise ParseError(f"{kind} cannot be {said!r}", where=str(path), hint=hint)
    return {str(kind): said for kind, said in content.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]

"""Which compound is tried first, and how long a sensor may be BAD: a table that a user can edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transect.errors import ParseError

DEFAULT_TABLE = Path(__file__).with_name("preferences.yaml")
MAX_BAD_RATIO = "max_bad_ratio"  # key of the table


@dataclass(frozen=True)
class Preferences:
    """The order in which compounds are tried."""

    # By kind of product: compounds, or `Compound/Implementation`, the preferred ones first
    order: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    max_bad_ratio: float = 0.5  # a stream that was BAD for a larger part of the time is not used

    def rank(self, kind: str, compound: str) -> int:
        """Return the position of a compound among those named for a kind; others come after them."""
        named = next((names for each, names in self.order.items() if each.casefold() == kind.casefold()), ())
        own = compound.partition("/")[0]
        return next((n for n, each in enumerate(named) if each in (compound, own)), len(named))


def load_preferences(path: Path | None = None) -> Preferences:
    """Return the default preferences, overridden by the entries of a user's table.

    Raises
    ------
    ParseError
        Names the file and what is wrong with it.
    """
    content = _read(DEFAULT_TABLE) | (_read(path) if path else {})
    max_bad_ratio = content.pop(MAX_BAD_RATIO)
    return Preferences(
        {kind: [str(name) for name in names] for kind, names in content.items()}, max_bad_ratio
    )


def _read(path: Path) -> dict[str, Any]:
    from transect.base.yaml_parts import parse

    try:
        content = parse(path.read_text(encoding="utf-8"), str(path))[0]
    except (OSError, UnicodeDecodeError) as error:
        raise ParseError("the preferences cannot be read", where=str(path), why=str(error)) from error
    hint = f"Pose: [PoseFusion], {MAX_BAD_RATIO}: 0.5"
    if not isinstance(content, dict):
        raise ParseError("preferences are a table of kinds", where=str(path), hint=hint)
    for kind, value in content.items():  # pyright: ignore[reportUnknownVariableType]
        if kind == MAX_BAD_RATIO:
            is_valid = isinstance(value, int | float) and 0 <= value <= 1
        else:
            is_valid = isinstance(value, list)
        if not is_valid:
            raise ParseError(f"{kind} cannot be {value!r}", where=str(path), hint=hint)
    return {str(kind): value for kind, value in content.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]

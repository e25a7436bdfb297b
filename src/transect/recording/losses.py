"""Losses: data that a reader could not use, with location and reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from transect.errors import ParseError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Loss:
    """Data of a file that could not be read."""

    file: str  # Name inside the recording
    reason: str
    line: int | None = None  # First line concerned, counted from 1
    byte: int | None = None  # First byte concerned, counted from 0
    count: int = 1  # Number of lines, messages or files; 0 if unknown

    @property
    def where(self) -> str:
        """`file:line`, `file@byte`, or the file."""
        if self.line is not None:
            return f"{self.file}:{self.line}"
        return f"{self.file}@{self.byte}" if self.byte is not None else self.file

    def error(self) -> ParseError:
        """Return the error that `strict` raises for this loss."""
        return ParseError(
            f"cannot read all of {self.file}",
            where=self.where,
            why=self.reason,
            hint="without strict the good part is kept",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the loss as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Parsed:
    """A parsed table with losses and notes for the user."""

    table: pa.Table
    losses: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = field(default=())


def join_losses(pieces: Sequence[Parsed]) -> tuple[Loss, ...]:
    """Return the losses of pieces of one file, one for each reason, located at the first."""
    if len(pieces) == 1:
        return pieces[0].losses
    joined: dict[tuple[str, str], Loss] = {}
    for loss in (loss for piece in pieces for loss in piece.losses):
        first = joined.get((loss.file, loss.reason))
        joined[loss.file, loss.reason] = replace(first, count=first.count + loss.count) if first else loss
    return tuple(joined.values())


def join_notes(pieces: Sequence[Parsed]) -> tuple[str, ...]:
    """Return the unique notes of pieces of one file."""
    return tuple(dict.fromkeys(note for piece in pieces for note in piece.notes))

"""The functions of `_opening` in their old form, for verbs that were not changed yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._opening import Opening
from ._opening import report_losses as exit_for
from ._options import parse_format_options as parsed_options

if TYPE_CHECKING:
    from transect.recording import Recording

    from ._progress import Progress

__all__ = ["cut", "exit_for", "open_recording", "parsed_options"]


def open_recording(
    paths: tuple[str, ...], read_as: str | None, options: tuple[str, ...], strict: bool, progress: Progress
) -> Recording:
    """Open a recording and parse all its columns."""
    return Opening(paths, strict, read_as, options).open(progress)


def cut(recording: Recording, streams: tuple[str, ...], start: str | None, end: str | None) -> Recording:
    """Return the chosen streams between two times."""
    return Opening((), streams=streams, start=start, end=end).cut(recording)

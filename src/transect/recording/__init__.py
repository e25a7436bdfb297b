"""Recordings: streams on named clocks, time-dependent frames, and their source files."""

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .concatenation import join
    from .frames import FrameTree
    from .losses import Loss, Parsed
    from .open_source import source_of
    from .recording import Recording, Robot
    from .source import Source
    from .stream import Role, Sample, Stream, Timing, stream_of_values

__all__ = [
    "FrameTree",
    "Loss",
    "Parsed",
    "Recording",
    "Robot",
    "Role",
    "Sample",
    "Source",
    "Stream",
    "Timing",
    "join",
    "source_of",
    "stream_of_values",
]

__getattr__ = importer(
    __name__,
    {
        "frames": ("FrameTree",),
        "concatenation": ("join",),
        "losses": ("Loss", "Parsed"),
        "recording": ("Recording", "Robot"),
        "open_source": ("source_of",),
        "source": ("Source",),
        "stream": ("Role", "Sample", "Stream", "Timing", "stream_of_values"),
    },
)

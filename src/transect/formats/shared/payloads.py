"""Writing of payloads: the original file if it has the required type, else encoded again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from transect.base import files
from transect.base.clocks import NS, decimal_from_ns
from transect.errors import GeometryError, ParseError, TransectError, UnsupportedError
from transect.recording import Recording, Sample, Stream
from transect.recording.arrow import PAYLOAD
from transect.recording.frames import FrameEdge
from transect.types import Image, PointCloud

from .clouds import encode_cloud
from .file_heads import CLOUD_SUFFIXES, IMAGE_SUFFIXES, suffix_of
from .images import encode_image
from .interface import DataLost, Note

T = TypeVar("T")


def time_names(stream: Stream) -> tuple[list[str], list[str]]:
    """Return a file name (without suffix) per sample that is read as its time, and notes on the times."""
    times = stream.t_ns.tolist()
    order = sorted(range(len(times)), key=times.__getitem__)
    apart = list(times)
    for before, after in pairwise(order):
        apart[after] = max(apart[after], apart[before] + 1)
    if stream.clock == "index":
        whole = all(t % NS == 0 and t >= 0 for t in apart)
        return [f"{t // NS if whole else i:06d}" for i, t in enumerate(apart)], []
    notes: list[str] = []
    if apart != times or order != list(range(len(times))):
        notes.append(Note(f"{stream.name}: files are in order of time, repeated times 1 ns apart"))
    if stream.clock != "utc":
        notes.append(Note(f"{stream.name}: times of the {stream.clock} clock are in the names only"))
    return [decimal_from_ns(t) for t in apart], notes


def source_file(recording: Recording, sample: Sample) -> str | None:
    """Return the name of the payload's file in the sample's source, if there is one."""
    source = recording.source_of(sample)
    if PAYLOAD not in sample.stream.table.column_names or source is None:
        return None
    name = sample.stream.table.column(PAYLOAD)[sample.index].as_py()
    return name if isinstance(name, str) and name in source else None


def payload_suffix(recording: Recording, sample: Sample) -> str:
    """Return the suffix for writing a payload: that of its file, else a lossless one."""
    name = source_file(recording, sample)
    known = IMAGE_SUFFIXES if sample.stream.type is Image else CLOUD_SUFFIXES
    if name is not None and suffix_of(name) in known:
        return suffix_of(name)
    return ".png" if sample.stream.type is Image else ".pcd"


def payload_bytes(recording: Recording, sample: Sample, suffix: str) -> bytes:
    """Return a payload as a file of type `suffix`: its original file if that has the same type."""
    files.reached(sample.t_ns, sample.stream.clock)
    name = source_file(recording, sample)
    source = recording.source_of(sample)
    if name is not None and source is not None and suffix_of(name) == suffix:
        return source.read(name)
    return encode(sample.value, suffix)


def payload_file(recording: Recording, sample: Sample) -> tuple[str, bytes]:
    """Return suffix and content of the file for a payload."""
    suffix = payload_suffix(recording, sample)
    return suffix, payload_bytes(recording, sample, suffix)


def not_written(recording: Recording, chosen: Sequence[Stream]) -> list[str]:
    """Return a sentence for each stream that is not among the chosen ones."""
    others = [stream for stream in recording if stream not in chosen]
    return [f"{stream.name} is a {stream.type.__name__} and was not written" for stream in others]


def frames_left_out(edges: Sequence[FrameEdge], written: Iterable[Stream]) -> list[str]:
    """Return sentences on the edges of a frame tree that a format cannot represent.

    Transforms from one of the `written` streams are in the rows of that stream.
    """
    names = {stream.name for stream in written}
    in_rows = sorted({edge.source for edge in edges if edge.source in names})
    left = [f"{edge.parent} -> {edge.child}" for edge in edges if edge.source not in names]
    notes: list[str] = []
    if left:
        notes.append(f"{len(left)} frames are not written: {', '.join(left)}")
    if in_rows:
        notes.append(
            Note(f"frames are written as rows of {', '.join(in_rows)} and are not read again as frames")
        )
    return notes


PAYLOAD_ERRORS = (ParseError, UnsupportedError, GeometryError)
"""Errors of a payload; other errors, such as a missing library or a full disk, end the writing."""


class LeftOut:
    """Counts the payloads of a stream that cannot be written, with the reason of the first."""

    def __init__(self, name: str) -> None:
        self.name, self.count = name, 0
        self._reason = ""

    def add(self, error: TransectError) -> None:
        """Count one more."""
        self.count += 1
        self._reason = self._reason or (f"{error.what} ({error.why})" if error.why else error.what)

    def said(self, of: int) -> list[str]:
        """Return the sentence on them, if any; `of` is the number of all payloads."""
        sentence = f"{self.name}: {self.count} of {of} payloads are left out, the first: {self._reason}"
        return [DataLost(sentence)] if self.count else []


def good_payloads(
    samples: Iterable[Sample], data_of: Callable[[Sample], T], said: list[str]
) -> Iterator[tuple[Sample, T]]:
    """Yield the samples and their data, without those for which `data_of` raises `PAYLOAD_ERRORS`.

    At the end a sentence on the samples left out is appended to `said`.
    """
    count, bad = 0, LeftOut("")
    for sample in samples:
        count, bad.name = count + 1, sample.stream.name
        try:
            data = data_of(sample)
        except PAYLOAD_ERRORS as error:
            bad.add(error)
            continue
        yield sample, data
    said += bad.said(count)


def loadable(stream: Stream, said: list[str]) -> Stream:
    """Return a stream without samples whose payload cannot be loaded, with a sentence on them in `said`."""
    if stream.loader is None:
        return stream
    keep = np.zeros(len(stream), dtype=bool)
    for sample, _ in good_payloads(stream, lambda sample: sample.value, said):
        keep[sample.index] = True
    return stream if keep.all() else stream.take(keep)


def encode(value: Any, suffix: str) -> bytes:
    """Encode an image or a cloud as the file type of `suffix`."""
    if isinstance(value, Image):
        return encode_image(value, suffix)
    if isinstance(value, PointCloud):
        return encode_cloud(value, suffix)
    raise UnsupportedError(f"a {type(value).__name__} cannot be written as {suffix}")

"""Video files: frames with times, each decoded on access (PyAV, the extra `video`)."""

from __future__ import annotations

import io
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib.util import find_spec
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from transect.base.arrays import Bytes, Ints
from transect.base.clocks import NS
from transect.base.file_bytes import Content
from transect.errors import MissingExtraError, ParseError
from transect.recording import Loss, Parsed, Source, arrow
from transect.types import CameraModel, Image

from .file_heads import video_container
from .images import MAX_PIXELS

if TYPE_CHECKING:
    from av.codec.context import CodecContext
    from av.container import InputContainer
    from av.video.frame import VideoFrame

    Shown = tuple[int, VideoFrame | None]
FRAME, FILM_NS = "frame", "film_ns"
"""Columns of a video's table: the number of the frame, and its time since the first one."""

_NO_FRAME = sys.maxsize
"""Number of the last decoded frame if there is none."""


def is_readable() -> bool:
    """Return whether the library for decoding is installed."""
    return find_spec("av") is not None


@dataclass(frozen=True, eq=False)
class FrameIndex:
    """The frames in a video container, in display order."""

    pts: list[int]  # Time of each frame in the file, in ticks
    listed: int  # Frames that the container lists; more than in the file if it was truncated
    tick: Fraction  # Seconds
    keys: list[int]  # Numbers of the key frames
    size: tuple[int, int]  # Width and height, pixels
    metadata: Mapping[str, str]
    losses: tuple[Loss, ...] = ()

    @cached_property
    def film_ns(self) -> Ints:
        """(n,) time of the frames since the first one, ns."""
        step, per = self.tick.numerator * NS, self.tick.denominator
        return np.array([(pts - self.pts[0]) * step // per for pts in self.pts], dtype=np.int64)


class Video:
    """A video file in a source, read on access."""

    def __init__(self, source: Source, name: str) -> None:
        self.source, self.name = source, name
        self._lock = Lock()
        self._shown: Iterator[Shown] = iter(())
        self._last = _NO_FRAME

    @cached_property
    def index(self) -> FrameIndex:
        """The frames; raises ParseError if the file is not a video."""
        container, end = self._container, self.source.size(self.name)
        stream = container.streams.video[0]
        entries = [(e.timestamp, e.pos + e.size, e.is_keyframe) for e in stream.index_entries]
        steps = {after[0] - before[0] for before, after in pairwise(entries)}
        # The index has decoding times. They equal display times, except for a shift, if frames are not
        # reordered or all have the same duration; else, and without an index, all packets are read.
        if stream.frames == len(entries) > 0 and (not stream.codec_context.has_b_frames or len(steps) < 2):
            shift = (stream.start_time or 0) - entries[0][0]
            found = sorted((time + shift, key) for time, past, key in entries if past <= end)
        else:
            found = sorted((p.pts, p.is_keyframe) for p in _packets(container) if p.pts is not None)
        self.source.record_read(self.name)
        lost = max(stream.frames - len(found), 0)
        reason = "the film ends before frames that it lists"
        return FrameIndex(
            pts=[time for time, _ in found],
            listed=len(found) + lost,
            tick=stream.time_base or Fraction(0),
            keys=[number for number, (_, key) in enumerate(found) if key] or [0],
            size=(stream.width, stream.height),
            metadata={**container.metadata, **stream.metadata},
            losses=(Loss(self.name, reason, byte=end, count=lost),) if lost else (),
        )

    def frame(self, number: int) -> Bytes:
        """Return a frame (h, w, 3) in RGB; raise ParseError if it cannot be decoded."""
        index = self.index
        if index.size[0] * index.size[1] > MAX_PIXELS:
            raise self._refusal(number, f"{index.size[0]} x {index.size[1]} is more than any camera's image")
        with self._lock:
            key = max(bisect_right(index.keys, number) - 1, 0)
            # Continue from the last frame, unless there is a key frame in between.
            if not (self._last < number and index.keys[key] <= self._last + 1):
                self._shown = _play(self._container, index.pts[index.keys[key]])
            found = self._find(index.pts[number])
            if found is None and key:  # a container may seek by decoding times, which are earlier
                self._shown = _play(self._container, index.pts[index.keys[key - 1]])
                found = self._find(index.pts[number])
            self._last = number if found is not None else _NO_FRAME
        if found is None:
            raise self._refusal(number, "it is damaged, or a frame that it depends on is")
        return found

    def _find(self, pts: int) -> Bytes | None:
        """Return the frame at a time; None if it does not exist or cannot be decoded."""
        from av.error import FFmpegError

        try:
            for time, shown in self._shown:
                if time >= pts:
                    if shown is None or time > pts:
                        return None
                    return np.asarray(shown.to_ndarray(format="rgb24"), np.uint8)
        except FFmpegError:  # a failed seek or colour conversion
            return None
        return None

    def _refusal(self, number: int, why: str) -> ParseError:
        return ParseError(f"frame {number} of {self.name} cannot be decoded", where=self.name, why=why)

    @cached_property
    def _container(self) -> InputContainer:
        try:
            import av
            from av.error import FFmpegError
        except ImportError as error:
            raise MissingExtraError("av", "video") from error
        # Given explicitly, because FFmpeg would open all files and addresses of a playlist.
        kind = video_container(self.source.head(self.name, 16))
        if not kind:
            why = "it does not begin as MP4, MOV, AVI, Matroska, WebM or MPEG do"
            raise ParseError(f"{self.name} is not a film", where=self.name, why=why)
        path = self.source.local(self.name)
        # With a protocol, because FFmpeg would take it from a name such as concat:a.mp4.
        file = f"file:{path}" if path else _ContentFile(self.source.content(self.name))
        try:
            container = av.open(file, "r", format=kind, metadata_errors="replace")
        except FFmpegError as error:
            why = error.strerror or str(error)
            raise ParseError(f"{self.name} is not a film", where=self.name, why=why) from error
        if not container.streams.video:
            raise ParseError(f"{self.name} has no pictures", where=self.name, why="it has no video stream")
        decoder = cast("CodecContext | None", container.streams.video[0].codec_context)
        if decoder is None:
            raise ParseError(f"{self.name} has no pictures", where=self.name, why="its codec is not known")
        # transect decodes in its own threads, and a single-threaded decoder reports where it failed.
        decoder.thread_count = 1
        return container


class _ContentFile(io.RawIOBase):
    """File object over content, without a copy."""

    def __init__(self, data: Content) -> None:
        self._data, self._at = data, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._data)}[whence]
        self._at = max(start + offset, 0)
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        part = bytes(self._data[self._at : None if size < 0 else self._at + size])
        self._at += len(part)
        return part


def _packets(container: InputContainer) -> Iterator[Any]:
    """Iterate over the video packets, up to the end or to a damaged part."""
    from av.error import FFmpegError

    packets = container.demux(container.streams.video[0])
    while True:
        try:
            yield next(packets)
        except (StopIteration, FFmpegError):
            return


def _play(container: InputContainer, pts: int) -> Iterator[Shown]:
    """Iterate over times and frames from a key frame on; None for a frame that may be wrong.

    The iterator references the container, not the video, so that both and their threads can be released.
    """
    from av.error import FFmpegError

    container.seek(pts, stream=container.streams.video[0])
    damaged, spoiled = False, set[int | None]()
    for packet in _packets(container):
        damaged = damaged and not packet.is_keyframe
        spoiled |= {packet.pts} if damaged else set()
        try:
            shown = packet.decode()
        except FFmpegError:
            # Frames that depend on a lost frame are decoded without an error, but wrong. Since the
            # dependencies are unknown, all frames up to the next key frame are rejected.
            damaged, shown = True, []
            spoiled.add(packet.pts)
        for each in shown:
            if each.pts is not None:
                yield each.pts, None if each.pts in spoiled or each.is_corrupt else each


def video_table(film: Video, t_ns: Callable[[FrameIndex], tuple[Ints, tuple[str, ...]]]) -> Parsed:
    """Return the table of a video's frames; a video that cannot be opened is a loss, not an error.

    `t_ns` returns the times (n,) of the frames on the stream's clock, in ns, and notes.
    """
    try:
        index = film.index
    except ParseError as error:
        empty = arrow.table(np.zeros(0, np.int64), {name: np.zeros(0, np.int64) for name in (FRAME, FILM_NS)})
        return Parsed(empty, (Loss(film.name, f"{error.what}: {error.why}", count=0),))
    times, notes = t_ns(index)
    columns = {FRAME: np.arange(len(times)), FILM_NS: index.film_ns}
    return Parsed(arrow.table(times, columns, units={FILM_NS: "ns"}), index.losses, notes)


def video_loader(
    film: Video, frame: str = "", camera: CameraModel | None = None
) -> Callable[[Mapping[str, Any]], Image]:
    """Return a Stream loader for the rows of `video_table`; images of the camera's size have the camera."""

    def load(row: Mapping[str, Any]) -> Image:
        pixels = film.frame(int(row[FRAME]))
        fits = camera is not None and pixels.shape[:2] == (camera.height, camera.width)
        return Image(pixels, "rgb", t_ns=row["t_ns"], frame=frame, camera=camera if fits else None)

    return load

"""Films (MP4, MOV, AVI, MKV, ...): frames as images, decoded when they are asked for.

The times are the film's own, from 0 at its first frame: what a film says of the time at which it was made is
when a file was written, in a zone that is not said, and stands in a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Ints
from transect.base.files import file_paths, staged
from transect.errors import MissingExtraError, UsageError
from transect.recording import Recording, Source, Stream
from transect.types import Image

from .shared.images import bands_of
from .shared.interface import Note
from .shared.payloads import good_payloads, not_written
from .shared.video_files import FrameIndex, Video, is_readable, video_loader, video_table


def read(source: Source) -> Recording:
    """Read videos: a stream of images each, on the clock `device`."""
    if not is_readable():
        raise MissingExtraError("av", "video")
    streams = tuple(_stream(source, name) for name in source.names)
    return Recording(source.stem, streams, format="video", source=source)


def _stream(source: Source, name: str) -> Stream:
    film, stem = Video(source, name), str(PurePosixPath(name).with_suffix(""))
    return Stream(
        stem,
        Image,
        partial(video_table, film, partial(_times, name)),
        clock="device",
        frame=stem,
        loader=video_loader(film, stem),
    )


def _times(name: str, index: FrameIndex) -> tuple[Ints, tuple[str, ...]]:
    made = index.metadata.get("creation_time", "")
    return index.film_ns, (f"{name}: the file says that it was made at {made}",) if made else ()


TICK = Fraction(1, 1_000_000)
"""Seconds to which times are kept."""
DEFAULT_FRAME_RATE = 30
"""Nominal frame rate if it cannot be computed; frames have their own times."""
QUALITY = "20"
"""Of x264, from 0 (no loss) to 51."""
Frame = tuple[int, NDArray[Any], str]
PIXELS = {"gray": "gray", "thermal": "gray", "rgb": "rgb24", "bgr": "bgr24", "rgba": "rgba"}
BANDS = {"gray": 1, "thermal": 1, "rgb": 3, "bgr": 3, "rgba": 4}
"""PyAV's name of the pixels of each mode, and the values of a pixel."""
MAX_SIDE_PX = 16384
"""Maximum width and height of H.264."""


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write each stream of images as a video (H.264 in MP4): one `.mp4`, or a folder of them.

    Videos are compressed with loss, which a `Note` states.
    """
    if not is_readable():
        raise MissingExtraError("av", "video")
    streams = [stream for stream in recording if stream.type is Image and len(stream)]
    if not streams:
        raise UsageError(
            f"{recording.name} has no images to make a film of",
            hint="--replay makes a film of the robot; transect info lists streams",
        )
    if path.suffix and len(streams) > 1:
        names = ", ".join(stream.name for stream in streams)
        raise UsageError(
            f"{path.name} is one film, and there are {len(streams)} streams of images",
            hint=f"--streams NAME, one of {names}; or a folder for all: -o films --format video",
        )
    files = [path] if path.suffix else [path / f"{name}.mp4" for name in file_paths(s.name for s in streams)]
    notes = not_written(recording, streams)
    for stream, file in zip(streams, files, strict=True):
        notes += _write_film(stream, file)
    return tuple(notes)


def _write_film(stream: Stream, file: Path) -> list[str]:
    """Write a video; return what was changed or left out."""
    notes: list[str] = []
    frames = _frames(stream, notes)
    first = next(frames, None)
    if first is None:
        return [*notes, f"{stream.name}: none of its images can be filmed"]
    height, width = first[1].shape[:2]
    if height % 2 or width % 2:
        notes.append(Note(f"{stream.name}: H.264 wants an even size; films are {width & ~1} x {height & ~1}"))
    encode_film(chain([first], frames), file)
    notes.append(Note(f"{stream.name}: a film is compressed with loss, and begins at 0 s"))
    return notes


def encode_film(frames: Iterable[Frame], file: Path) -> None:
    """Write pictures of one size as H.264 in MP4.

    Parameters
    ----------
    frames : iterable of (int, (h, w) or (h, w, channels) uint8 array, str)
        Time in microseconds, going up; pixels; and what PyAV calls their format: `gray`, `rgb24`, ...
    """
    if not is_readable():
        raise MissingExtraError("av", "video")
    import av

    track: Any = None
    with staged(file) as new, av.open(str(new), "w", format="mp4") as film:
        for ticks, pixels, form in frames:
            height, width = (size & ~1 for size in pixels.shape[:2])  # H.264 wants an even size
            if track is None:
                track = film.add_stream("libx264", rate=DEFAULT_FRAME_RATE, options={"crf": QUALITY})
                track.width, track.height, track.pix_fmt = width, height, "yuv420p"
                track.codec_context.time_base = TICK
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels[:height, :width]), format=form)
            frame.pts, frame.time_base = ticks, TICK
            film.mux(track.encode(frame))
        film.mux(track.encode())


def _frames(stream: Stream, notes: list[str]) -> Iterator[Frame]:
    """Yield time in ticks, pixels and their format, in order of time, without repeated times."""
    last, skipped, size = -1, 0, None
    start = int(stream.t_ns.min())
    samples = (stream[number] for number in np.argsort(stream.t_ns, kind="stable").tolist())
    for sample, image in good_payloads(samples, lambda sample: sample.value, notes):
        ticks = (sample.t_ns - start) // 1000
        size = size or image.data.shape[:2]
        form = PIXELS.get(image.mode) if bands_of(image) == BANDS.get(image.mode) else None
        form = form if max(size) <= MAX_SIDE_PX and min(size) > 1 else None
        if ticks <= last or form is None or image.data.dtype != np.uint8 or image.data.shape[:2] != size:
            skipped += 1
            continue
        last = ticks
        yield ticks, image.data[..., 0] if form == "gray" and image.data.ndim == 3 else image.data, form
    if skipped:
        notes.append(f"{stream.name}: {skipped} images of another size, type or the same time are left out")

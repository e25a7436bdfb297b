"""Films of AMEDS, reconstructed from images: a stream of their frames."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from transect.base.arrays import Ints
from transect.base.clocks import NS
from transect.formats.shared.video_files import FrameIndex, Video, video_loader, video_table
from transect.recording import Parsed, Source, Stream, arrow
from transect.types import CameraModel, Image

from .files import FEEDS

MAX_DURATION_DIFFERENCE = 0.02
"""A film is taken to last as long as its images if their durations differ by at most this ratio."""


def film_stream(
    source: Source, name: str, images: Callable[[], Parsed] | None, camera: CameraModel | None
) -> Stream:
    """Return the stream of a film's frames; nothing of it is read before its times or a frame are needed.

    Parameters
    ----------
    source, name
        The file.
    images : callable or None
        Gives the table of the images that the film was made from, in order of time.
    camera : CameraModel or None
        Of full-sized images.
    """
    feed = FEEDS[name.rpartition("/")[2]]
    film = Video(source, name)
    return Stream(
        feed.stream,
        Image,
        partial(video_table, film, partial(frame_times, name, images)),
        clock="utc" if images else "device",
        role="derived",
        tag=feed.tag,
        frame=feed.frame,
        camera=feed.frame if camera else "",
        loader=video_loader(film, feed.frame, camera),
    )


def frame_times(
    name: str, images: Callable[[], Parsed] | None, index: FrameIndex
) -> tuple[Ints, tuple[str, ...]]:
    """Return the times (n,) of a film's frames in ns, and a sentence unless they are those of its images."""
    t_ns = arrow.numbers(images().table, "t_ns") if images else np.zeros(0, np.int64)
    count = len(index.pts)
    if not len(t_ns) or not count:
        return index.film_ns, (f"{name}: no images are beside it, so times are those of the film, from 0",)
    if index.listed == len(t_ns):
        return t_ns[:count], ()
    said = f"{name}: it has {index.listed} frames of {len(t_ns)} images, so that times are made up"
    film, taken = (float(np.ptp(times)) / NS for times in (index.film_ns, t_ns))
    if abs(film - taken) <= MAX_DURATION_DIFFERENCE * taken:
        return t_ns[0] + index.film_ns, (f"{said}: the film's own from the first image on",)
    spread = np.rint(np.linspace(0.0, taken * NS, index.listed)).astype(np.int64)[:count]
    lasts = f"it lasts {film:.1f} s, the images {taken:.1f} s"
    return t_ns[0] + spread, (f"{said}: even steps from the first image to the last, since {lasts}",)

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


def film_stream(
    source: Source, name: str, images: Callable[[], Parsed] | None, camera: CameraModel | None
) -> Stream:
    """Return the stream of a film's frames, which is read on access.

    Parameters
    ----------
    source, name
        The file.
    images : callable or None
        Returns the table of the images of the film, in order of time.
    camera : CameraModel or None
        Camera model of images in full size.
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
    name: str, images: Callable[[], Parsed] | None, index: FrameIndex, max_duration_error: float = 0.02
) -> tuple[Ints, tuple[str, ...]]:
    """Return the times (n,) of a film's frames, ns, and a note unless they are those of its images.

    The film's own times are used if its duration differs from that of the images by at most
    `max_duration_error`, as a ratio.
    """
    t_ns = arrow.numbers(images().table, "t_ns") if images else np.zeros(0, np.int64)
    count = len(index.pts)
    if not len(t_ns) or not count:
        return index.film_ns, (f"{name}: without images beside it, times are those of the film, from 0",)
    if index.listed == len(t_ns):
        return t_ns[:count], ()
    note = f"{name}: it has {index.listed} frames of {len(t_ns)} images, so that times are approximate"
    film_s, images_s = (float(np.ptp(times)) / NS for times in (index.film_ns, t_ns))
    if abs(film_s - images_s) <= max_duration_error * images_s:
        return t_ns[0] + index.film_ns, (f"{note}: those of the film, from the first image on",)
    spread = np.rint(np.linspace(0.0, images_s * NS, index.listed)).astype(np.int64)[:count]
    durations = f"it lasts {film_s:.1f} s, the images {images_s:.1f} s"
    return t_ns[0] + spread, (f"{note}: evenly spaced from the first image to the last, as {durations}",)

"""Reading films."""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath

from transect.base.arrays import Ints
from transect.errors import MissingExtraError
from transect.recording import Recording, Source, Stream
from transect.types import Image

from ..shared.video_files import Film, Index, film_loader, film_table, is_readable


def read(source: Source) -> Recording:
    """Read films."""
    if not is_readable():
        raise MissingExtraError("av", "video")
    streams = tuple(_stream(source, name) for name in source.names)
    return Recording(source.stem, streams, format="video", source=source)


def _stream(source: Source, name: str) -> Stream:
    film, stem = Film(source, name), str(PurePosixPath(name).with_suffix(""))
    return Stream(
        stem,
        Image,
        partial(film_table, film, partial(_times, name)),
        clock="device",
        frame=stem,
        loader=film_loader(film, stem),
    )


def _times(name: str, index: Index) -> tuple[Ints, tuple[str, ...]]:
    made = index.metadata.get("creation_time", "")
    return index.film_ns, (f"{name}: the file says that it was made at {made}",) if made else ()

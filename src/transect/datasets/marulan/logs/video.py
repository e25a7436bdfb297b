"""Images of SDI data sets, and the logs of their times (sections 3.2.5 and 4.4.1)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from transect.formats.shared.file_groups import file_table
from transect.formats.shared.images import image_loader, stamps_of_names
from transect.recording import Loss, Parsed, Source, arrow, cache
from transect.recording.text import Tokens
from transect.types import CameraModel, Image

from . import LOGS
from .lines import LogProblems, find_timed_lines, lines_of, read_log

CALIBRATION_LOG, IMAGES = "VideoLogAsciiCalibration.txt", "Images"
VIDEO_WORD = b"VISION_FRAME"
_STAMPED = r"Image(?P<s>\d{1,10})-0(?P<f>\d{1,9})\.bmp"
_NUMBERED = re.compile(r"\D*(\d+)\.bmp", re.IGNORECASE)
_TABLE = "table"


def video_table(source: Source, folder: str) -> Parsed:
    """Return times and names of a camera's images by its log, which takes precedence over names (errata)."""
    log, images = f"{folder}/{LOGS[folder]}", source.under(f"{folder}/{IMAGES}")
    if log not in source:
        return _by_name(log, images)
    parsed = cache.parse_many_pieces(
        source, log, "sdi.video/1", lambda content: read_log(content, log, _video_block)
    )[_TABLE]
    known = {_base(name).lower(): name for name in images}
    names = [known.get(name.lower(), "") for name in arrow.texts(parsed.table, "name")]
    return _match(log, parsed, names, images)


def _video_block(tokens: Tokens, problems: LogProblems) -> Mapping[str, pa.Table]:
    lines, t_ns = lines_of(tokens, VIDEO_WORD, problems, words=2, width=3)
    names = [_base(tokens.text(token)) for token in tokens.first[lines] + 2]
    return {_TABLE: arrow.table(t_ns, {"name": arrow.strings(names), "line": tokens.line[lines]})}


def calibration_table(source: Source, folder: str) -> Parsed:
    """Return times and names of the images of a calibration: line i of the log is image number i."""
    log, images = f"{folder}/{CALIBRATION_LOG}", source.under(f"{folder}/{IMAGES}")
    numbers = {int(m[1]): name for name in images if (m := _NUMBERED.fullmatch(_base(name)))}
    if log not in source:
        note = f"{log} is missing: the images of the calibration have no times"
        return Parsed(file_table(range(len(numbers)), [numbers[i] for i in sorted(numbers)]), notes=(note,))
    parsed = cache.join_parts(read_log(source.content(log), log, _calibration_block))[_TABLE]
    source.record_read(log)
    names = [numbers.get(line, "") for line in arrow.numbers(parsed.table, "line").tolist()]
    return _match(log, parsed, names, images)


def _calibration_block(tokens: Tokens, problems: LogProblems) -> Mapping[str, pa.Table]:
    """Read the time of each line; the report does not define the other fields."""
    lines, t_ns = find_timed_lines(tokens, np.arange(len(tokens.line)), problems)
    return {_TABLE: arrow.table(t_ns, {"line": tokens.line[lines]})}


def _match(log: str, parsed: Parsed, names: Sequence[str], images: Sequence[str]) -> Parsed:
    """Return the lines of a log that have an image; `names` has "" for the others."""
    has_image = np.array([bool(name) for name in names], dtype=bool)
    losses, notes = list(parsed.losses), list(parsed.notes)
    if not has_image.all():
        first = int(arrow.numbers(parsed.table, "line")[~has_image][0])
        losses.append(
            Loss(log, "the image of the line is missing", line=first, count=int((~has_image).sum()))
        )
    if unlogged := len(images) - len(set(names) - {""}):
        notes.append(f"{log}: {unlogged} images without a line are skipped, as their times are unknown")
    t_ns = arrow.numbers(parsed.table, "t_ns")[has_image]
    return Parsed(file_table(t_ns, [name for name in names if name]), tuple(losses), tuple(notes))


def _by_name(log: str, images: Sequence[str]) -> Parsed:
    """Return the images of a camera without a log, by the times in their names."""
    t_ns, named, others = stamps_of_names(images, _STAMPED)
    losses = [Loss(log, "the log is missing", count=0)]
    losses += [Loss(others[0], "no log and no time in the name", count=len(others))] if others else []
    note = f"{log} is missing: the times are those in the names of the images"
    return Parsed(file_table(t_ns, named), tuple(losses), (note,))


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def loader(
    source: Source, frame: str, camera: CameraModel | None, thermal: bool
) -> Callable[[Mapping[str, Any]], Image]:
    """Return a loader whose images have the camera model only if they have its size.

    The infrared camera was calibrated at 640 x 480, and most of its images are clipped to 511 x 398; the
    position of the clip is unknown (errata).
    """
    load = image_loader(source, frame=frame)

    def load_with_camera(row: Mapping[str, Any]) -> Image:
        image = load(row)
        mode = "thermal" if thermal and image.data.ndim == 2 else image.mode
        fits = camera is not None and (image.width, image.height) == (camera.width, camera.height)
        return dataclasses.replace(image, mode=mode, camera=camera if fits else None)

    return load_with_camera

"""Tracks as texts again, and what they cannot carry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from transect.base.clocks import NS
from transect.base.files import refuse_existing, write_bytes
from transect.errors import UsageError
from transect.formats.shared.interface import Note
from transect.formats.shared.payloads import good_payloads, payload_bytes, source_file
from transect.formats.shared.rows import column_or_nan, float_texts, invert, text_rows
from transect.recording import Recording, Stream
from transect.types import Image, Odometry, Pose

from ..catalogue import entry_of
from . import SAMPLE, base_of
from .reading import find_shift, stamps_by


def write_tracks(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write one sequence to a new folder; return a sentence for everything that is not carried."""
    refuse_existing(path)
    key = _key(recording)
    chosen = _choose_streams(recording, rosario=key.isdigit())
    if not chosen:
        raise UsageError(
            f"{recording.name} has no track to write", why="it has neither a true position nor an odometry"
        )
    said: list[str] = []
    for place, stream in chosen.items():
        if place == "images":
            said += _write_samples(recording, stream, key, path)
        else:
            text = _truth_text(stream, key.isdigit()) if place == "truth" else _echo_text(stream)
            write_bytes(path / _file_name(place, key), text)
    return (*said, *_not_carried(recording, chosen, key.isdigit()))


def _key(recording: Recording) -> str:
    """Return two digits for Rosario (00 where the name says nothing), a letter for Flourish."""
    if match := re.fullmatch(r"flourish([A-Z])", recording.name):
        return match[1]
    entry = entry_of(recording.name)
    numbered = re.fullmatch(r"sequence(\d\d)", recording.name)
    return f"{entry.number:02d}" if entry else numbered[1] if numbered else "00"


def _file_name(place: str, key: str) -> str:
    names = {"truth": "sequence{}_new_gt_IMU_frame.txt", "odometry": "odometry_sequence{}.txt"}
    if not key.isdigit():
        names = {"truth": "flourish_Dataset{}_GT.txt", "odometry": "flourish_odometry_Dataset{}.txt"}
        names["combined"] = "flourish_odometry_combined_Dataset{}.txt"
    return names[place].format(key)


def _choose_streams(recording: Recording, rosario: bool) -> dict[str, Stream]:
    """Return the streams that have a place, by that place."""
    chosen: dict[str, Stream] = {}
    for stream in recording:
        tracked = {"x", "y", "z"} <= set(stream.columns)
        if stream.role == "truth" and stream.type is Pose and stream.clock == "utc" and tracked:
            chosen.setdefault("truth", stream)
        elif stream.role != "truth" and stream.type is Odometry and tracked:
            combined = stream.name.endswith("Combined") and not rosario
            chosen.setdefault("combined" if combined else "odometry", stream)
        elif stream.type is Image and stream.tag == "left" and rosario:
            chosen.setdefault("images", stream)
    return chosen


def _truth_text(stream: Stream, rosario: bool) -> bytes:
    columns = [[str(t) for t in stream.t_ns.tolist()]]
    for axis, offset in zip("xyz", find_shift(rosario), strict=True):
        values = column_or_nan(stream, axis)
        columns.append(float_texts(invert(lambda raw, by=offset: raw - by, values, values + offset)))
    return text_rows([*columns, *([text] * len(stream) for text in ("0.0", "0.0", "0.0", "1.0"))])


def _echo_text(stream: Stream) -> bytes:
    rows = zip(*(float_texts(column_or_nan(stream, axis)) for axis in "xyz"), strict=True)
    return "".join(f"x: {x}\ny: {y}\nz: {z}\n---\n" for x, y, z in rows).encode()


def _write_samples(recording: Recording, stream: Stream, key: str, path: Path) -> list[str]:
    """Copy the images that came as samples; a name says which pair they are of, and others have none."""
    said: list[str] = []
    samples = [s for s in stream if SAMPLE.fullmatch(base_of(source_file(recording, s) or ""))]
    for sample, data in good_payloads(samples, partial(payload_bytes, recording, suffix=".jpg"), said):
        name = base_of(source_file(recording, sample) or "")
        write_bytes(path / "sample_left_images" / re.sub(r"^sequence\d\d", f"sequence{key}", name), data)
    if others := len(stream) - len(samples):
        said.append(f"{stream.name}: {others} images are no samples and have no place among the tracks")
    return said


def _not_carried(recording: Recording, chosen: dict[str, Stream], rosario: bool) -> Iterator[str]:
    truth, moving = chosen.get("truth"), "gps" if rosario else "base_link"
    for stream in recording:
        if stream not in chosen.values() and not (rosario and _is_again(stream, truth)):
            yield f"{stream.name} ({stream.type.__name__}) has no place among the tracks"
    for place, stream in chosen.items():
        left_out = set(stream.columns) - {"x", "y", "z"}
        if place != "images" and left_out:
            yield f"{stream.name}: only positions are written, not {', '.join(sorted(left_out))}"
        by = truth if rosario and place == "odometry" else None
        if place in ("odometry", "combined") and not _is_timed_by(stream, by):
            yield f"{stream.name}: an echoed odometry has no times"
    if truth is not None and truth.child not in ("", moving):
        yield Note(f"{truth.name} is of {truth.child}; it will be read as the track of {moving}")


def _is_again(stream: Stream, truth: Stream | None) -> bool:
    """Tell whether a stream is the track that is written as the truth, which is read as both."""
    if truth is None or stream.type is not Pose or not np.array_equal(stream.t_ns, truth.t_ns):
        return False
    both = ([column_or_nan(each, axis) for axis in "xyz"] for each in (stream, truth))
    return np.array_equal(*both, equal_nan=True)


def _is_timed_by(odometry: Stream, truth: Stream | None) -> bool:
    """Tell whether an odometry has the times that reading will give it."""
    found = None if truth is None else stamps_by(truth, odometry).t_ns
    return np.array_equal(odometry.t_ns, NS * np.arange(len(odometry)) if found is None else found)

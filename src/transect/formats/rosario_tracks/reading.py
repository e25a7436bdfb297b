"""Reading Rosario's published tracks, and finding the times of the odometry."""

from __future__ import annotations

from functools import cache as kept
from functools import partial

import numpy as np

from transect import robots
from transect.base.clocks import NS
from transect.errors import UsageError
from transect.recording import Parsed, Recording, Source, Stream, arrow, cache
from transect.types import Image, Odometry, Pose

from .._catalogues.rosario import entry_of
from .._images import file_table, image_loader
from .layout import ODOMETRY, SAMPLE, TRUTH, base_of, chosen_sequence, sequences
from .texts import added_to, read_echo, read_truth, stamps_by

_UNTIMED = "Odometry has no times: "
_INDEX = "it is on the index clock"
_RATE = " (10 Hz by the documentation)"
_ANTENNA = (
    "GroundTruth is the track of the gps antenna (see errata), the constant added to it subtracted; its "
    "times were floats, good to 128 ns; the _left_cam_frame file is the same track and is not read"
)
_RTK = "Rtk is the same track as a measurement: what is fused from it cannot be judged by GroundTruth"
_AS_FOUND = "GroundTruth stands as it was found: what was added to it is not known"


def read(source: Source, sequence: str | int | None = None, stamps: str = "auto") -> Recording:
    """Read one sequence."""
    if stamps not in ("auto", "none"):
        raise UsageError(f"stamps is {stamps!r}", hint="--option stamps=auto, or none")
    known = sequences(source)
    key = chosen_sequence(known, sequence, source)
    files = known[key]
    samples = _samples(source, files)
    if not key.isdigit():
        streams = (*_truths(source, files, rosario=False), *_odometries(source, files), *samples)
        notes = (_UNTIMED + _INDEX, _AS_FOUND)
        return Recording(f"flourish{key}", streams, format="rosario_tracks", source=source, notes=notes)
    tracks = _truths(source, files, rosario=True)
    odometries, said = _time(_odometries(source, files), tracks[:1], stamps)
    notes = (*said, *((_ANTENNA, _RTK) if tracks else ()))
    return _of_weeder(
        Recording(
            f"sequence{key}", (*tracks, *odometries, *samples), format="rosario_tracks", source=source,
            notes=notes,
        )
    )  # fmt: skip


def _of_weeder(recording: Recording) -> Recording:
    robot, entry = robots.load("weeder"), entry_of(recording.name)
    return recording.replace(
        robot=robot, frames=robot.frames, cameras=robot.cameras, conditions=entry.facts() if entry else {}
    )


def _truths(source: Source, files: list[str], rosario: bool) -> list[Stream]:
    """Return the true track, and of Rosario the same once more as what its receiver measured."""
    added = added_to(rosario)
    for name in files:
        if TRUTH.fullmatch(base_of(name)):
            parser, build = f"rosario_tracks.truth/1 {added}", partial(read_truth, file=name, added=added)
            load = kept(partial(cache.parsed, source, name, parser, build))
            child = "gps" if rosario else "base_link"
            truth = Stream("GroundTruth", Pose, load, role="truth", frame="world", child=child)
            rtk = truth.replace(name="Rtk", role="measurement", tag="position")
            return [truth, rtk] if rosario else [truth]
    return []


def _odometries(source: Source, files: list[str]) -> list[Stream]:
    streams: list[Stream] = []
    for name in files:
        if match := ODOMETRY.fullmatch(base_of(name)):
            load = partial(
                cache.parsed, source, name, "rosario_tracks.odometry/1", partial(read_echo, file=name)
            )
            stream = Stream("Odometry", Odometry, load, clock="index", frame="odom", child="base_link")
            combined = stream.replace(name="Odometry/Combined", role="derived")
            streams.append(combined if match["c"] else stream)
    return streams


def _time(odometries: list[Stream], truths: list[Stream], stamps: str) -> tuple[list[Stream], list[str]]:
    """Return the odometry with the times that were found for it, or what is to be said where none were.

    A stream's clock is known when it is opened, so both texts are read now: some milliseconds.
    """
    if not odometries:
        return [], []
    if not truths or stamps == "none":
        return odometries, [_UNTIMED + _INDEX + _RATE]
    odometry = odometries[0]
    t_ns, said = stamps_by(truths[0], odometry)
    if t_ns is None:
        return odometries, [f"{_UNTIMED}{_INDEX}{_RATE}, as {said}"]
    table = odometry.table.set_column(0, odometry.table.schema.field(0), arrow.from_numpy(t_ns))
    timed = Parsed(table, odometry.losses, (_UNTIMED + said,))
    return [odometry.replace(source=timed, clock="utc")], []


def _samples(source: Source, files: list[str]) -> list[Stream]:
    """Return the few single frames: pairs of successive images with the most and the fewest matches."""
    pairs = [
        (match["which"], not match["before"], name)
        for name in files
        if (match := SAMPLE.fullmatch(base_of(name)))
    ]
    names = [name for _, _, name in sorted(pairs)]
    if not names:
        return []
    table = file_table(NS * np.arange(len(names)), names)
    loader = image_loader(source, frame="left_camera", camera=robots.load("weeder").cameras["left"])
    return [
        Stream(
            "Zed/Left",
            Image,
            table,
            clock="index",
            role="derived",
            tag="left",
            frame="left_camera",
            loader=loader,
            camera="left",
        )
    ]

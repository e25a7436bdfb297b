"""KITTI: raw drives (images, oxts, velodyne), odometry sequences, and pose files of twelve numbers a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import exporter

from ..shared.file_heads import number_rows
from ..shared.interface import Match, no

if TYPE_CHECKING:
    from transect.recording import Source

STAMPS, SECONDS = "timestamps.txt", "times.txt"
CAMERAS = {f"image_{n}": "right" if int(n) % 2 else "left" for n in ("00", "01", "02", "03", *"0123")}
"""Folders of images, and which camera of its pair is in each."""
CLOUDS = ("velodyne_points", "velodyne")


def recognises(source: Source) -> Match:
    """Recognise image_00, oxts or velodyne folders with times, or lines of twelve numbers."""
    drives = find_drives(source)
    if len(drives) > 1:
        return no(f"it holds several drives but one is opened at a time: {', '.join(drives[:3])}, ...")
    if drives:
        return Match(0.95, f"image, oxts or velodyne folders with {STAMPS} or {SECONDS}")
    if find_pose_file(source):
        return Match(0.8, "lines of twelve numbers, a 3 x 4 pose each")
    return no(f"no image_0x or oxts folder with {STAMPS}, nor lines of twelve numbers")


def find_drives(source: Source) -> list[str]:
    """Return the folders with a drive or a sequence: the source itself ("") or folders in it."""
    found: set[str] = set()
    for name in (n for n in source.names if n.endswith((STAMPS, SECONDS))):
        *above, base = name.split("/")
        if base == STAMPS and 1 <= len(above) <= 2 and above[-1] in (*CAMERAS, *CLOUDS, "oxts"):
            found.add("/".join(above[:-1]))
        elif base == SECONDS and len(above) <= 1:
            here = {"/".join((*above, folder)) for folder in (*CAMERAS, *CLOUDS)}
            found |= {"/".join(above)} if here & source.folders else set()
    return sorted(found)


def find_pose_file(source: Source) -> str:
    """Return the one file of the source (but for its times) if it is one of poses, else "".

    The projections in a calib.txt are twelve numbers a line, too.
    """
    names = [n for n in source.names if not n.endswith(SECONDS)]
    one = names[0] if len(names) == 1 and len(source.names) <= 2 and "calib" not in names[0] else ""
    return one if one and number_rows(source.head(one), 12) else ""


__getattr__, __dir__ = exporter(__name__, {"reading": ("read",), "writing": ("write",)})

"""Which files of a folder or zip are those of Table 7, recognised by their names."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transect.recording import Role, Source
    from transect.types import Image, PointCloud


STEMS = frozenset(
    (
        *("AuxArmJointAngles", "AuxCamPoseEstimate", "MainArmJointAngles", "MainCamPoseEstimate"),
        *("GnssBodyAcceleration", "GnssBodyAngularVelocity", "GnssBodyVelocity", "GnssImu"),
        *("GnssNedVelocity", "GnssPose", "Platform2DPoseEstimate", "Platform2DTwistEstimate"),
        *("Platform2DVelocity", "PlatformMotorEncoders", "PlatformWheelPoseEstimate"),
    )
)
"""The CSV files of Table 7; `columns` says what is in them."""


@dataclass(frozen=True)
class PayloadFiles:
    """Files of one sensor, one per sample, called `<prefix><unix seconds><suffix>`."""

    prefix: str
    stream: str
    suffixes: tuple[str, ...] = (".jpg", ".jpeg", ".JPG", ".JPEG")
    role: Role = "measurement"
    tag: str = ""
    frame: str = ""

    @property
    def type(self) -> type[Image | PointCloud]:
        """What the files hold."""
        from transect.types import Image, PointCloud

        return PointCloud if ".pcd" in self.suffixes else Image


PAYLOADS = (
    PayloadFiles("AuxCam_", "AuxCam", tag="aux", frame="AuxCam"),
    PayloadFiles("MainCam_", "MainCam", tag="main", frame="MainCam"),
    PayloadFiles("MainAuxCamProjected_", "MainAuxCam/Projected", role="derived"),
    PayloadFiles("LidarPointcloud_", "Lidar", (".pcd", ".PCD"), frame="Lidar"),
)
VIDEOS = {"AuxCam": "AuxCamVideoFeed.mp4", "MainCam": "MainCamVideoFeed.mp4"}
"""Camera to its film, reconstructed from its images."""
FEEDS = {
    film: PayloadFiles(film, f"{camera}/VideoFeed", (".mp4",), "derived", kind.tag, kind.frame)
    for camera, film in VIDEOS.items()
    for kind in PAYLOADS
    if kind.stream == camera
}
"""Film to what its stream is."""


@dataclass(frozen=True)
class Listed:
    """The files of one payload stream: what their names begin with, folder included, and the names."""

    kind: PayloadFiles
    start: str
    names: Sequence[str]


@dataclass(frozen=True)
class Found:
    """What is there of Table 7."""

    tables: dict[str, str]  # stem of a CSV file to its name
    payloads: list[Listed]
    videos: list[str]
    others: list[str]  # CSV files that are not in Table 7
    twice: tuple[str, str] | None = None  # two files that cannot belong to one recording

    @property
    def first(self) -> str | None:
        """The name of one file of Table 7, or None if there is none."""
        return next(iter([*self.tables.values(), *(listed.names[0] for listed in self.payloads)]), None)

    def __len__(self) -> int:
        return len(self.tables) + len(self.payloads)


def find(source: Source) -> Found:
    """Find the files of Table 7, in the folder itself or in folders below it."""
    csv_files = [name for name in source.names if name.endswith((".csv", ".CSV"))]
    stems = [(name.rpartition("/")[2][:-4], name) for name in csv_files]
    known = [(stem, name) for stem, name in stems if stem in STEMS]
    folders = ["", *(f"{folder}/" for folder in sorted(source.folders))]
    payloads = _payloads(source, folders)
    return Found(
        tables=dict(known),
        payloads=payloads,
        videos=[folder + film for folder in folders for film in VIDEOS.values() if folder + film in source],
        others=[name for stem, name in stems if stem not in STEMS],
        twice=_twice([*known, *((listed.kind.prefix, listed.names[0]) for listed in payloads)]),
    )


def _payloads(source: Source, folders: Sequence[str]) -> list[Listed]:
    found: list[Listed] = []
    for kind in PAYLOADS:
        for folder in folders:
            names = [n for n in _beginning(source.names, folder + kind.prefix) if n.endswith(kind.suffixes)]
            if names:
                found.append(Listed(kind, folder + kind.prefix, names))
    return found


def _beginning(names: Sequence[str], start: str) -> Sequence[str]:
    """Return the names that begin with `start`; names are sorted, and so need not be looked at one by one."""
    after = start[:-1] + chr(ord(start[-1]) + 1)
    return names[bisect_left(names, start) : bisect_left(names, after)]


def _twice(files: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """Return the names of the first two files of one kind."""
    seen: dict[str, str] = {}
    for kind, name in files:
        if kind in seen:
            return seen[kind], name
        seen[kind] = name
    return None


def has_unix_time(source: Source, name: str) -> bool:
    """Tell whether the first column of a CSV file begins with a unix time."""
    from .headers import sniff, unix_unit

    first = sniff(source.head(name)).first
    return bool(first) and unix_unit(first[0]) is not None

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
"""Stems of the CSV files of Table 7; `columns` describes them."""


@dataclass(frozen=True)
class PayloadFiles:
    """Files of one sensor, one per sample, named `<prefix><unix seconds><suffix>`."""

    prefix: str
    stream: str
    suffixes: tuple[str, ...] = (".jpg", ".jpeg", ".JPG", ".JPEG")
    role: Role = "measurement"
    tag: str = ""
    frame: str = ""

    @property
    def type(self) -> type[Image | PointCloud]:
        """Type of the samples."""
        from transect.types import Image, PointCloud

        return PointCloud if ".pcd" in self.suffixes else Image


PAYLOADS = (
    PayloadFiles("AuxCam_", "AuxCam", tag="aux", frame="AuxCam"),
    PayloadFiles("MainCam_", "MainCam", tag="main", frame="MainCam"),
    PayloadFiles("MainAuxCamProjected_", "MainAuxCam/Projected", role="derived"),
    PayloadFiles("LidarPointcloud_", "Lidar", (".pcd", ".PCD"), frame="Lidar"),
)
VIDEOS = {"AuxCam": "AuxCamVideoFeed.mp4", "MainCam": "MainCamVideoFeed.mp4"}
"""Film of each camera, made from its images."""
FEEDS = {
    film: PayloadFiles(film, f"{camera}/VideoFeed", (".mp4",), "derived", kind.tag, kind.frame)
    for camera, film in VIDEOS.items()
    for kind in PAYLOADS
    if kind.stream == camera
}
"""Stream of each film."""


@dataclass(frozen=True)
class PayloadListing:
    """The files of one payload stream."""

    kind: PayloadFiles
    start: str  # common start of the names, with the folder
    names: Sequence[str]


@dataclass(frozen=True)
class AmedsFiles:
    """The files of Table 7 in a source."""

    tables: dict[str, str]  # names of CSV files by stem
    payloads: list[PayloadListing]
    videos: list[str]
    others: list[str]  # CSV files that are not in Table 7
    conflict: tuple[str, str] | None = None  # two files that cannot belong to one recording

    @property
    def first(self) -> str | None:
        """Name of one file of Table 7, None without any."""
        return next(iter([*self.tables.values(), *(listed.names[0] for listed in self.payloads)]), None)

    def __len__(self) -> int:
        return len(self.tables) + len(self.payloads)


def find(source: Source) -> AmedsFiles:
    """Find the files of Table 7, in the folder or in its subfolders."""
    csv_files = [name for name in source.names if name.endswith((".csv", ".CSV"))]
    stems = [(name.rpartition("/")[2][:-4], name) for name in csv_files]
    known = [(stem, name) for stem, name in stems if stem in STEMS]
    folders = ["", *(f"{folder}/" for folder in sorted(source.folders))]
    payloads = _payloads(source, folders)
    return AmedsFiles(
        tables=dict(known),
        payloads=payloads,
        videos=[folder + film for folder in folders for film in VIDEOS.values() if folder + film in source],
        others=[name for stem, name in stems if stem not in STEMS],
        conflict=_find_conflict([*known, *((listed.kind.prefix, listed.names[0]) for listed in payloads)]),
    )


def _payloads(source: Source, folders: Sequence[str]) -> list[PayloadListing]:
    found: list[PayloadListing] = []
    for kind in PAYLOADS:
        for folder in folders:
            candidates = _with_prefix(source.names, folder + kind.prefix)
            names = [name for name in candidates if name.endswith(kind.suffixes)]
            if names:
                found.append(PayloadListing(kind, folder + kind.prefix, names))
    return found


def _with_prefix(names: Sequence[str], prefix: str) -> Sequence[str]:
    """Return the names, which are sorted, with a prefix."""
    after = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    return names[bisect_left(names, prefix) : bisect_left(names, after)]


def _find_conflict(files: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """Return the names of the first two files of one kind, None without a conflict."""
    seen: dict[str, str] = {}
    for kind, name in files:
        if kind in seen:
            return seen[kind], name
        seen[kind] = name
    return None


def has_unix_time(source: Source, name: str) -> bool:
    """Return whether the first column of a CSV file begins with a unix time."""
    from .headers import sniff, unix_unit

    first = sniff(source.head(name)).first
    return bool(first) and unix_unit(first[0]) is not None

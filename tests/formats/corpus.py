"""Small recordings of every format, as files by name: what the fuzzers damage.

A name is that of the reader, with a variant after a hyphen. The samples are those of the formats' own tests.
"""

from __future__ import annotations

import bz2
import gzip
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from transect import formats

Write = Callable[[Path], object]


@dataclass(frozen=True)
class Special:
    """What stands in the place of a file: a pipe, a link to itself or to nothing, or a folder."""

    kind: str
    KINDS: ClassVar = ("fifo", "loop", "dangling", "folder")

    def write(self, path: Path) -> None:
        """Make it."""
        if self.kind == "fifo":
            os.mkfifo(path)
        elif self.kind == "folder":
            path.mkdir()
        else:
            path.symlink_to(path.name if self.kind == "loop" else "nothing")


@dataclass(frozen=True)
class Sample:
    """A recording that lies in a folder.

    Attributes
    ----------
    format : str
        Name of the reader.
    files : mapping
        Content by path within the folder.
    opened : str
        What is given to `transect.open`, within the folder; "." is the folder itself.
    options : mapping
        What the reader is told.
    """

    format: str
    files: Mapping[str, bytes]
    opened: str = "."
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def write(self, folder: Path, files: Mapping[str, bytes | Special] | None = None) -> Path:
        """Write the files, or others in their place; return what is to be opened."""
        for name, content in (self.files if files is None else files).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Special):
                content.write(path)
            else:
                path.write_bytes(content)
        return folder / self.opened


def _of(module: str) -> Any:
    return import_module(f"tests.{module}")  # that of one reader alone


def _put(name: str, content: Callable[[], str | bytes]) -> Write:
    def write(folder: Path) -> None:
        data = content()
        (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)

    return write


def _export(format: str, name: str, recording: Callable[[], Any]) -> Write:
    return lambda folder: formats.write(recording(), folder / name, format)


def _carmen() -> str:
    own = _of("formats.test_carmen")
    return own.SAMPLE_LOG + own.RAW + own.ROBOT + own.TRUEPOS


def _rawlog() -> bytes:
    own = _of("formats.test_rawlog")
    return (
        own.SAMPLE_LOG
        + own.imu()
        + own.actions(own.motion(1.0, 0.5, 6))
        + own.frame(own.scan(7), own.scan(3))
    )


def _calibration(name: str, text: str) -> Write:
    return _put(name, lambda: getattr(_of("formats.test_calibration"), text))


def _sdi(folder: Path) -> None:
    own = _of("datasets.marulan.sample")
    own.write_dataset(folder)
    for picture in folder.rglob("*.bmp"):  # those of the tests have their real size
        own.write_bmp(picture, own.picture(8, 6))


def _clouds(suffix: str, **options: Any) -> Write:
    def write(folder: Path) -> None:
        from transect.formats.shared.clouds import encode_cloud

        for k in range(2):
            content = encode_cloud(_of("formats.test_pcd").cloud(12, seed=k), suffix, **options)
            (folder / f"1657000000.{k}00000{suffix}").write_bytes(content)

    return write


def _tracks(folder: Path) -> None:
    own = _of("datasets.rosario.test_tracks")
    (folder / "sequence01_new_gt_IMU_frame.txt").write_text(own.TRACK)
    (folder / "odometry_sequence01.txt").write_text(own.ECHO)


def _zip(write: Write, packing: int) -> Write:
    def pack(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            write(Path(temporary))
            with zipfile.ZipFile(folder / "day.zip", "w", packing) as archive:
                for path in sorted(Path(temporary).rglob("*")):
                    if path.is_file():
                        archive.writestr(zipfile.ZipInfo(str(path.relative_to(temporary))), path.read_bytes())

    return pack


def _without_clouds() -> Any:
    from transect.types import PointCloud

    recording = _of("datasets.cdff.test_msgpack").small_recording()
    return recording.replace(streams=tuple(s for s in recording if s.type is not PointCloud))


def _result() -> str:
    own = _of("formats.test_boreas")
    return own.result([own.standing(*hill) for hill in own.HILLS])


def _packets() -> bytes:
    own = _of("datasets.insight.test_packets")
    return b"".join(own.row(number, bytes(range(number + 4))) for number in range(6))


def _sentences(folder: Path) -> None:
    own = _of("formats.test_nmea")
    own.log(folder / "day.nmea", own.GGA, own.RMC, own.GGA.replace("19.50", "20.50"))


def _objects(folder: Path) -> None:
    own = _of("formats.test_mcap")
    values = [{"speed": 1.5, "gear": k, "on": True, "name": "a", "axle": {"left": 1}} for k in range(4)]
    own.write(folder / "day.mcap", own.objects(*values))


WRITERS: dict[str, Write] = {
    "ameds": lambda folder: _of("datasets.ameds.sample").write_sample(folder),
    "ameds-zip": _zip(lambda folder: _of("datasets.ameds.sample").write_sample(folder), zipfile.ZIP_STORED),
    "boreas": lambda folder: _of("formats.test_boreas").make(folder),
    "boreas-result": _put("boreas-2021-08-05-13-34.txt", _result),
    "calibration-kalibr": _calibration("camchain.yaml", "KALIBR"),
    "calibration-opencv": _calibration("stereo.yml", "STEREO_YML"),
    "calibration-xml": _calibration("camera.xml", "OPENCV_XML"),
    "calibration-ros": _calibration("camera.yaml", "ROS"),
    "carmen": _put("log.clf", _carmen),
    "carmen-bz2": _put("log.clf.bz2", lambda: bz2.compress(_carmen().encode())),
    "ccsds": _put("pass.pkt", _packets),
    "cdff_msgpack": _export("cdff_msgpack", "log.msg", _without_clouds),
    "described": lambda folder: _of("formats.test_described").folder(folder),
    "described-csv": _export("csv", "day", lambda: _of("formats.test_csv_parquet").full_recording()),
    "described-parquet": _export("parquet", "day", lambda: _of("formats.test_csv_parquet").full_recording()),
    "euroc": lambda folder: _of("formats.test_euroc").make(folder),
    "folder": lambda folder: _of("formats.test_folder").stereo_folder(folder),
    "geojson": _export("geojson", "day.geojson", lambda: _of("formats.test_map_tracks").recording()),
    "geotiff": _export(
        "geotiff", "dem", lambda: _of("formats.test_geotiff").recording_of(_of("formats.test_geotiff").dem())
    ),
    "gpx": _export("gpx", "day.gpx", lambda: _of("formats.test_map_tracks").recording()),
    "gtsam_points": lambda folder: _of("formats.test_gtsam_points").dump(folder),
    "ida": lambda folder: _of("datasets.insight.sample").write_sample(folder),
    "kitti": lambda folder: _of("formats.test_kitti").make_drive(folder),
    "kitti-odometry": lambda folder: _of("formats.test_kitti").make_sequence(folder),
    "kml": _export("kml", "day.kml", lambda: _of("formats.test_map_tracks").recording()),
    "mcap": _objects,
    "mcap-ours": _export("mcap", "day.mcap", lambda: _of("formats.test_mcap").sample()),
    "mcap-foxglove": _export("foxglove", "day.mcap", lambda: _of("formats.test_foxglove").sample()),
    "nmea": _sentences,
    "pcd": _clouds(".pcd"),
    "pds4": lambda folder: _of("formats.test_pds4").write_sample(folder),
    "pcd-ply": _clouds(".ply"),
    "pcd-vtk": _clouds(".vtk"),
    "pocolog": _export("pocolog", "log.0.log", lambda: _of("datasets.cdff.test_pocolog").rock_recording()),
    "radiate": lambda folder: _of("formats.test_radiate").make(folder),
    "rawlog": _put("day.rawlog", lambda: gzip.compress(_rawlog(), mtime=0)),
    "rawlog-plain": _put("day.rawlog", _rawlog),
    "rosario": lambda folder: _of("datasets.rosario.sample").write_scripts_layout(folder),
    "rosario-paper": lambda folder: _of("datasets.rosario.sample").write_papers_layout(folder),
    "rosario_tracks": _tracks,
    **{
        f"rosbag-{kind}": lambda folder, kind=kind: _of("formats.bag_sample").write(folder, kind)
        for kind in ("ros1", "ros1-bz2", "ros1-lz4", "sqlite3", "sqlite3-file", "mcap", "mcap-storage")
    },
    "sdi": _sdi,
    "sdi-sweeps": _sdi,
    "sdi-zip": _zip(_sdi, zipfile.ZIP_DEFLATED),
    "tum": _put("groundtruth.txt", lambda: "".join(_of("formats.test_tum").LINES)),
    "video": _put("film.mp4", lambda: _of("formats.films").film(6)),
}
OPTIONS: dict[str, dict[str, Any]] = {"rosario_tracks": {"sequence": "01"}, "sdi-sweeps": {"sweeps": True}}


@cache
def sample(name: str) -> Sample:
    """Return a sample; its files are in the order of their names."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "day")
        folder.mkdir()
        made = WRITERS[name](folder)
        files = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        if isinstance(made, Path):
            opened = str(made.relative_to(folder))
        else:
            opened = next(iter(files)) if len(files) == 1 else "."
    return Sample(name.partition("-")[0], files, opened, OPTIONS.get(name, {}))

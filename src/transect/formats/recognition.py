"""How the formats that are single modules are recognised: by file names and first bytes.

Every path is shown to every format, so this module needs the standard library only; the module of a format is
imported when something is read or written in it. Lines of numbers fit several formats, as do images and raw
points: the confidences decide between them.
"""

from __future__ import annotations

import math
import re
import struct
from typing import TYPE_CHECKING

from transect.recording.text import is_number

from .shared.file_heads import (
    CLOUD_SUFFIXES,
    IMAGE_SUFFIXES,
    SURE_SUFFIXES,
    first_rows,
    looks_like_raw_points,
    looks_like_text_points,
    number_rows,
    suffix_counts,
    suffix_of,
    video_container,
)
from .shared.interface import LazyFormat, Match, no

if TYPE_CHECKING:
    from transect.recording import Source


# Trajectories and tables of positions

MAX_TUM_TIME_S = 1e11  # the year 5138; a larger time counts milliseconds or nanoseconds
QUATERNION_TOLERANCE = 0.01  # printed quaternions have few decimals


def recognise_tum(source: Source) -> Match:
    """Recognise one file whose lines are a time in seconds, a position and a unit quaternion."""
    if len(source.names) != 1:
        return no("a TUM trajectory is one file")
    return match_tum_head(source.head(source.names[0]))


def match_tum_head(head: bytes) -> Match:
    """Return how sure it is that a file is a TUM trajectory, from its first bytes."""
    rows = number_rows(head, 8)
    if not rows:
        return no("its lines are not eight numbers")
    first, *_ = rows
    if not abs(first[0]) < MAX_TUM_TIME_S:
        return no("its lines are eight numbers but the first is no time in seconds")
    if not abs(math.hypot(*first[4:]) - 1.0) < QUATERNION_TOLERANCE:
        return no("its lines are eight numbers but the last four are no unit quaternion")
    return Match(0.85, "lines of time, position and a unit quaternion")


def recognise_csv(source: Source) -> Match:
    """Recognise one file with a header that names positions and a time; leave others to a recording.yaml."""
    if len(source.names) != 1 or not source.names[0].lower().endswith((".csv", ".tsv", ".txt")):
        return no("CSV files are opened by the recording.yaml beside them")
    from .shared.column_names import ROS_STAMP, ROS_TIME, is_time_name, split_titles  # only tables have them

    header = source.head(source.names[0]).partition(b"\n")[0].decode("utf-8-sig", "replace")
    titles = split_titles(header.lstrip("#% "))
    if not any(map(is_time_name, titles)):
        return no("it is a CSV file but its header names no time: a recording.yaml can describe it")
    if ROS_STAMP in titles or (header.startswith(f"%{ROS_TIME},") and "field." in header):
        return Match(0.6, "messages of ROS, as rostopic echo -p prints them")
    names = set(map(_meaning_of_title, titles))
    found = next((pair for pair in (("lat", "lon"), ("x", "y")) if set(pair) <= names), None)
    if found is None:
        return no("it is a CSV file but its header names no positions: a recording.yaml can describe it")
    # A header that names a quaternion is more specific than a TUM file, whose columns have no names.
    return Match(0.86 if {"qx", "qw"} <= names else 0.4, f"a table of positions with {' and '.join(found)}")


def _meaning_of_title(title: str) -> str:
    """Return the meaning of a title, with or without a unit after an underscore: `q_w`, `altitude_m`."""
    from transect.base.units import is_unit

    from .shared.column_names import meaning_of, split_unit

    name = split_unit(title)[0]
    base, _, last = name.rpartition("_")
    return meaning_of(name) or (meaning_of(base) if is_unit(last) else "")


def recognise_parquet(source: Source) -> Match:
    """Recognise one table; several are opened by the description that is written beside them."""
    if len(source.names) != 1 or not source.names[0].lower().endswith(".parquet"):
        return no("Parquet files are opened by the recording.yaml beside them")
    begins = source.head(source.names[0], 4) == b"PAR1"
    return Match(0.6, "one Parquet file") if begins else no("it is named .parquet but begins otherwise")


_EUROC_SENSOR = re.compile(r"(?:(?P<root>.*)/)?(?:cam|imu)\d*/(?:sensor\.yaml|data\.csv)")


def recognise_euroc(source: Source) -> Match:
    """Recognise `mav0/imu0/data.csv` and the like, and a ground-truth CSV on its own."""
    roots = find_euroc_roots(source)
    if len(roots) > 1:
        return no(f"it has imu or cam folders with data.csv but in several places: {', '.join(roots[:3])}")
    if roots:
        return Match(0.95, "it has imu or cam folders with data.csv and sensor.yaml")
    if len(source.names) == 1 and is_euroc_truth(source.head(source.names[0])):
        return Match(0.9, "a ground-truth CSV in ns with 17 columns")
    return no("no mav0 folder with data.csv and sensor.yaml")


def find_euroc_roots(source: Source) -> list[str]:
    """Return the folders that hold cam and imu folders, at least one of them with a sensor.yaml."""
    ends = ("/sensor.yaml", "/data.csv")
    found = [m for name in source.names if name.endswith(ends) and (m := _EUROC_SENSOR.fullmatch(name))]
    return sorted({m["root"] or "" for m in found if m[0].endswith("yaml")})


def is_euroc_truth(head: bytes) -> bool:
    """Return whether a text is a header and rows of a time in ns, a position and a quaternion, or more."""
    rows = list(first_rows(head))
    time, *rest = rows[0] if rows and is_number(rows[0][0]) else rows[1] if len(rows) > 1 else [b""]
    return (
        head.lstrip()[:5].lower() in (b"#time", b"times", b"time(")
        and len(time) == 19
        and time.isdigit()
        and len(rest) >= 7
        and all(is_number(field) for field in rest)
    )


# Maps


def recognise_gpx(source: Source) -> Match:
    """Look for the element `gpx` at the start of the only file."""
    if len(source.names) != 1 or not source.names[0].lower().endswith((".gpx", ".xml")):
        return no("not one .gpx file")
    if b"<gpx" not in source.head(source.names[0]):
        return no("it has no element gpx")
    return Match(0.95, "it begins as GPX")


def recognise_kml(source: Source) -> Match:
    """Look for the element `kml` at the start of the only file."""
    if len(source.names) != 1 or not source.names[0].lower().endswith((".kml", ".xml")):
        return no("not one .kml file")
    if b"<kml" not in source.head(source.names[0]):
        return no("it has no element kml")
    return Match(0.95, "it begins as KML")


def recognise_geojson(source: Source) -> Match:
    """Look for a collection of features at the start of the only file."""
    if len(source.names) != 1 or not source.names[0].lower().endswith((".geojson", ".json")):
        return no("not one .geojson file")
    head = source.head(source.names[0])
    if b'"FeatureCollection"' not in head and b'"Feature"' not in head:
        return no("it names no feature near its start")
    return Match(0.9, "it begins as GeoJSON")


GEOTIFF_SUFFIXES = (".tif", ".tiff")
# Tags of TIFF: pixel scale, tie point, transformation matrix, directory of GeoKeys.
_GEO_TAGS = {33_550, 33_922, 34_264, 34_735}


def recognise_geotiff(source: Source) -> Match:
    """Recognise TIFF files that are georeferenced."""
    counts = suffix_counts(source)
    if not any(counts[s] for s in GEOTIFF_SUFFIXES):
        return no("no .tif files")
    if any(counts[s] for s in IMAGE_SUFFIXES if s not in GEOTIFF_SUFFIXES):
        return no("it has .tif files but also other images")
    files = [name for name in source.names if suffix_of(name) in GEOTIFF_SUFFIXES]
    georeferenced = [_is_georeferenced(source.head(name)) for name in files[:8]]
    if True in georeferenced:
        return Match(0.6, f"{len(files)} georeferenced TIFF files")
    if None in georeferenced:
        return Match(0.3, f"{len(files)} TIFF files")
    return no("it has .tif files, but they are not georeferenced")


def _is_georeferenced(head: bytes) -> bool | None:
    """Return whether a TIFF has georeference tags; None where its directory is not among the first bytes."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(head[:4])
    if order is None:
        return False
    at = struct.unpack(f"{order}I", head[4:8])[0] if len(head) >= 8 else 0
    if at + 2 > len(head):
        return None
    count = struct.unpack_from(f"{order}H", head, at)[0]
    ends = min(count, (len(head) - at - 2) // 12)
    tags = {struct.unpack_from(f"{order}H", head, at + 2 + 12 * i)[0] for i in range(ends)}
    return bool(tags & _GEO_TAGS)


# Images, point clouds and videos

VIDEO_SUFFIXES = (".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".mpg", ".mpeg")
# Files of text that may lie beside point clouds.
_CLOUD_COMPANIONS = (".txt", ".md", ".pdf", ".xml", ".yaml", ".yml", ".json", "")
MAX_INSPECTED_CLOUDS = 50  # in a folder with more files than this, only the first is inspected


def recognise_video(source: Source) -> Match:
    """Recognise one video file, or a folder of nothing else."""
    others = [name for name in source.names if suffix_of(name) not in VIDEO_SUFFIXES]
    if others or not source.names:
        return no(f"{others[0]} is no video" if others else "it has no files")
    first = source.names[0]
    if not video_container(source.head(first, 16)):
        return no(f"{first} does not begin as a video does")
    return Match(0.9 if len(source.names) == 1 else 0.6, f"{first} begins as a video does")


def recognise_folder(source: Source) -> Match:
    """Recognise images or clouds of any kind; every format that knows more about them is surer."""
    counts = suffix_counts(source)
    images, clouds = (sum(counts[s] for s in kinds) for kinds in (IMAGE_SUFFIXES, SURE_SUFFIXES))
    if not images and not clouds:
        return no("no images or point clouds")
    return Match(0.2, f"{images} images and {clouds} point clouds")


def recognise_pcd(source: Source) -> Match:
    """Recognise point clouds without other data beside them."""
    if len(source.names) == 1:
        return _match_cloud_file(source, source.names[0], suffix_of(source.names[0]))
    counts = suffix_counts(source)
    sure = sum(counts[s] for s in SURE_SUFFIXES)
    images = any(counts[s] for s in IMAGE_SUFFIXES)
    clouds = sure or (0 if images else len(list_cloud_files(source)))
    if not clouds:
        return no("no .pcd, .ply, .vtk or raw .bin files")
    if images:
        return no("it has point clouds but also images")
    if sum(count for s, count in counts.items() if s not in (*CLOUD_SUFFIXES, *_CLOUD_COMPANIONS)) > clouds:
        return no(f"it has {clouds} point clouds but more files of other kinds")
    return Match(0.5 if sure else 0.3, f"{clouds} point-cloud files")


def _match_cloud_file(source: Source, name: str, suffix: str) -> Match:
    starts = {".pcd": b"FIELDS", ".ply": b"ply", ".vtk": b"# vtk DataFile"}
    if suffix in starts:
        known = starts[suffix] in source.head(name)
        return Match(
            0.9 if known else 0.4, f"a {suffix} file" + ("" if known else " without the usual header")
        )
    if suffix in CLOUD_SUFFIXES and source.size(name) and _has_points(source, name):
        return Match(0.3, f"a {suffix} file that holds points")
    return no(
        f"a {suffix} file, but it does not look like points" if suffix in CLOUD_SUFFIXES else "no point cloud"
    )


def _has_points(source: Source, name: str) -> bool:
    """Inspect a file of an ambiguous suffix: a header that begins with x, y, or plausible numbers."""
    head = source.head(name)
    if suffix_of(name) == ".bin":
        # 240 bytes hold whole points of 3, 4 and 5 float32.
        whole = len(head) if len(head) == source.size(name) else len(head) // 240 * 240
        return looks_like_raw_points(head[:whole])
    return looks_like_text_points(head)


def list_cloud_files(source: Source) -> list[str]:
    """Return the names of point clouds, by their suffix or, where that is ambiguous, by inspection."""
    alike: dict[tuple[str, str], list[str]] = {}
    for name in source.names:
        if (suffix := suffix_of(name)) in CLOUD_SUFFIXES:
            alike.setdefault((name.rpartition("/")[0], suffix), []).append(name)
    found: set[str] = set()
    for (_, suffix), names in alike.items():
        if suffix in SURE_SUFFIXES or (len(names) > MAX_INSPECTED_CLOUDS and _has_points(source, names[0])):
            found.update(names)
        elif len(names) <= MAX_INSPECTED_CLOUDS:
            found.update(name for name in names if _has_points(source, name))
    return [name for name in source.names if name in found]


GTSAM_POINTS_CLOUD = re.compile(r"(?:.*/)?(\d{6})/points\.bin")
GTSAM_POINTS_FEATURES = re.compile(r"(?:.*/)?(edges|planes)_(\d{6})\.bin")
_GRAPH_LINE = re.compile(rb"v0\s+[-+0-9.eE]+\s")


def recognise_gtsam_points(source: Source) -> Match:
    """Recognise dumped clouds by their names and the first line of a graph.txt."""
    if not suffix_counts(source)[".txt"]:
        return no("no graph.txt, imu.txt or traj.txt")
    graphs = [n for n in source.names if n.endswith("graph.txt") and n.rpartition("/")[2] == "graph.txt"]
    raw = [n for n in source.names if n.endswith(".bin")] if graphs else []
    clouds = [n for n in raw if GTSAM_POINTS_CLOUD.fullmatch(n) or GTSAM_POINTS_FEATURES.fullmatch(n)]
    if clouds and graphs:
        if _GRAPH_LINE.match(source.head(graphs[0])):
            return Match(0.95, f"{len(clouds)} dumped clouds and a graph.txt of their poses")
        return no("it has dumped clouds and a graph.txt, but that does not begin with a vertex v0")
    texts = {n.rpartition("/")[2] for n in source.names[:5]}
    if {"imu.txt", "traj.txt"} <= texts and len(source.names) <= 4:
        return Match(0.6, "imu.txt and traj.txt")
    return no("it has a graph.txt but no points.bin" if graphs else "no points.bin with a graph.txt")


csv = LazyFormat("transect.formats.csv", recognise_csv)
euroc = LazyFormat("transect.formats.euroc", recognise_euroc)
folder = LazyFormat("transect.formats.folder", recognise_folder)
geojson = LazyFormat("transect.formats.geojson", recognise_geojson)
geotiff = LazyFormat("transect.formats.geotiff", recognise_geotiff)
gpx = LazyFormat("transect.formats.gpx", recognise_gpx)
gtsam_points = LazyFormat("transect.formats.gtsam_points", recognise_gtsam_points)
kml = LazyFormat("transect.formats.kml", recognise_kml)
parquet = LazyFormat("transect.formats.parquet", recognise_parquet)
pcd = LazyFormat("transect.formats.pcd", recognise_pcd)
tum = LazyFormat("transect.formats.tum", recognise_tum)
video = LazyFormat("transect.formats.video", recognise_video)

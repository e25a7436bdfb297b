"""What a run gave, as products: each output, and the run itself, from which it can be made again."""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.errors import ParseError, TransectError, UnsupportedError
from transect.types.provenance import Provenance, SourceFile

from .locating import Anchor, find_anchors
from .place import WGS84, Area, Place, Site
from .product import Payload, Product
from .store import Item, ProductStore

if TYPE_CHECKING:
    from transect.recording import Stream

RUN = "Run"
"""The kind of the product that a run itself is; its payload is the trace to hold a second run against."""
VERDICTS = "verdicts.parquet"
"""What a run acted on, where it did."""
MOST_POINTS = 200
"""Of the track of a trajectory."""
OUTLYING, MANY = 0.005, 1000
"""Part of a cloud's points that its outline leaves out on each side, if it has many: a few are far off."""
_STAMP = re.compile(r"-?\d+").fullmatch
_UTM = re.compile(r"EPSG:32([67])(\d\d)").fullmatch


@dataclass(frozen=True)
class Extent:
    """The time and the place of a file's content, as far as the file tells."""

    time_ns: tuple[int, int] | None = None
    place: Place | None = None
    frame: str = ""


def keep_run(
    store: ProductStore, folder: Path, mission: str = "", command: str = "", parents: Sequence[str] = ()
) -> list[str]:
    """Keep the run in a folder and all its outputs; return the ids, that of the run first.

    Parameters
    ----------
    mission : str
        Which campaign they belong to.
    command : str
        What was typed.
    parents : sequence of str
        Products that the run was fed with, besides the recording (`stream_of`).
    """
    return store.put_many(list(products_of_run(folder, mission, command, parents)))


def stream_of(product: Product, content: bytes, name: str) -> Stream:
    """Return poses that are kept as a stream, which a run can be fed with."""
    from transect.formats import open as open_recording

    if product.payload.format != "tum":
        hint = "only poses (tum) can"
        raise UnsupportedError(
            f"{product.name} cannot be fed to a run", why=product.payload.format, hint=hint
        )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "poses.tum"
        file.write_bytes(content)
        [stream] = open_recording(file, format="tum")
        return stream.replace(name=name, source=stream.parsed, role="estimate")


def products_of_run(
    folder: Path, mission: str = "", command: str = "", parents: Sequence[str] = ()
) -> Iterator[Item]:
    """Give the products that a run's folder holds, that of the run first."""
    content = _read_json(folder / "run.json")
    config, request = content["config"], content.get("request", {})
    recorded = request.get("recording", {})
    description = (folder / "compound.yaml").read_text(encoding="utf-8")
    provenance = Provenance(
        tuple(SourceFile(**file) for file in recorded.get("files", ())),
        f"transect {config['versions']['transect']}", recorded.get("format", ""), command,
        {
            "request": request, "config": plain(config), "description": description,
            "digest": content["digest"], "ports": content["ports"],
            "conclusions": content.get("conclusions", []),
        },
        tuple(parents),
    )  # fmt: skip
    common: dict[str, Any] = {
        "robot": recorded.get("robot", ""),
        "mission": mission,
        "clock": config["time"]["clock"],
    }
    span = config["time"]["span_ns"] or (None, None)
    trace = folder / "trace.parquet"
    run = Product(
        RUN, Payload.of(trace, "parquet"), content["name"], t0_ns=span[0], t1_ns=span[1],
        quality=_judgement(content), provenance=provenance, **common,
    )  # fmt: skip
    yield run, trace
    made = Provenance(tool=provenance.tool, parents=(run.id,))
    site = Site(recorded.get("name") or folder.name)
    outputs = dict(content["outputs"])
    names = [name for output in outputs.values() for name in output["files"] if name.endswith(".tum")]
    anchors = find_anchors(request, [folder / name for name in names]) if recorded else {}
    if (folder / VERDICTS).is_file():
        outputs["verdicts"] = {"type": "Verdicts", "files": [VERDICTS]}
    for port, output in outputs.items():
        for name in output["files"]:
            for file in _files(folder / name):
                extent = _locate(look_at(file, site), anchors)
                t0_ns, t1_ns = extent.time_ns or span
                yield Product(
                    output["type"], Payload.of(file, file.suffix.removeprefix(".").lower() or "bin"), port,
                    frame=extent.frame, t0_ns=t0_ns, t1_ns=t1_ns, place=extent.place,
                    quality=_judgement(content) | _errors(folder, port), provenance=made, **common,
                ), file  # fmt: skip


def _locate(extent: Extent, anchors: Mapping[str, Anchor]) -> Extent:
    """Return an extent in its place on Earth, where that of its frame, or of the run's only one, is known."""
    only = next(iter(anchors.values())) if len(anchors) == 1 and not extent.frame else None
    place, anchor = extent.place, anchors.get(extent.frame, only)
    if anchor is None or place is None or place.site is None:
        return extent
    if anchor.is_north_up:
        return replace(extent, place=replace(place, site=anchor.site(place.site.name)))
    return replace(extent, place=anchor.locate(place))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return content if content["config"]["time"] and content["outputs"] is not None else {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        hint = "transect run ... -o DIR writes one"
        raise ParseError(
            "this is not the folder of a run", where=str(path), why=str(error), hint=hint
        ) from error


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: numbers that it has no words for, and objects, as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]  # pyright: ignore[reportUnknownVariableType]
    finite = not isinstance(value, float) or math.isfinite(value)
    return value if finite and isinstance(value, str | int | float | None) else str(value)


def _judgement(content: Mapping[str, Any]) -> dict[str, float]:
    """Return 0 for a run whose nodes said that it must not be trusted, 1 for one of which they said more."""
    said = content.get("conclusions", ())
    return {"score": float(not any(each["bad"] for each in said))} if said else {}


def _errors(folder: Path, port: str) -> dict[str, float]:
    """Return how far an output is from the truth, where the run was judged by one."""
    path = folder / f"{port}.result"
    if not path.is_file():
        return {}
    from transect.evaluation.result import load_result

    found = load_result(path).metrics.get("ate", {}).get("translation", {}).get("rmse")
    return {} if found is None else {"ate_rmse_m": float(found)}


def _files(path: Path) -> list[Path]:
    return sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]


def look_at(file: Path, site: Site) -> Extent:
    """Return the time and place of what a file holds; a file that nobody reads has none.

    Parameters
    ----------
    site : Site
        Whose frame positions without a coordinate system are taken to be in.
    """
    stamp = (int(file.stem), int(file.stem)) if _STAMP(file.stem) else None
    looks = {".tum": _look_at_poses, ".tif": _look_at_map, ".ply": _look_at_cloud, ".pcd": _look_at_cloud}
    if file.suffix not in looks:
        return Extent(stamp)
    try:
        found = looks[file.suffix](file, site)
    except TransectError:
        return Extent(stamp)  # an empty trajectory, a map of nothing: kept as it is, and nowhere
    return Extent(found.time_ns or stamp, found.place, found.frame)


def _look_at_poses(file: Path, site: Site) -> Extent:
    from transect.formats import open as open_recording
    from transect.recording import arrow

    [stream] = open_recording(file, format="tum")
    table = stream.table
    if not len(table):
        return Extent()
    x, y, times = (arrow.numbers(table, name) for name in ("x", "y", "t_ns"))
    chosen = [*range(0, len(x), max(1, len(x) // MOST_POINTS)), len(x) - 1]
    points = tuple(dict.fromkeys((float(x[n]), float(y[n])) for n in chosen))
    place = Place("LineString", points, site=site) if len(points) > 1 else Place("Point", points, site=site)
    return Extent((int(times[0]), int(times[-1])), place, stream.frame)


def _look_at_map(file: Path, site: Site) -> Extent:
    from transect.formats import open as open_recording
    from transect.types import GridMap

    [stream] = open_recording(file, format="geotiff")
    grid = stream[0].payload
    assert isinstance(grid, GridMap)
    a, b, c, d, e, f = grid.transform
    rows, columns = next(iter(grid.layers.values())).shape
    corners = [(0, 0), (columns, 0), (columns, rows), (0, rows), (0, 0)]
    points = [(a * col + b * row + c, d * col + e * row + f) for col, row in corners]
    if not grid.crs:
        return Extent(place=Place("Polygon", tuple(points), site=site), frame=grid.frame)
    return Extent(place=_on_earth(points, grid.crs), frame=grid.frame)


def _on_earth(points: list[tuple[float, float]], crs: str) -> Place | None:
    """Return an outline in longitude and latitude; None for a coordinate system that is not known here."""
    if crs == WGS84:
        return Place("Polygon", tuple(points))
    utm = _UTM(crs)
    if utm is None:
        return None
    from math import degrees

    from transect.geometry.geodesy import Zone, geodetic_from_utm

    found = geodetic_from_utm([(x, y, 0.0) for x, y in points], Zone(int(utm[2]), utm[1] == "6"))
    return Place("Polygon", tuple((degrees(lon), degrees(lat)) for lat, lon, _ in found))


def _look_at_cloud(file: Path, site: Site) -> Extent:
    import numpy as np

    from transect.formats import open as open_recording
    from transect.types import PointCloud

    [stream] = open_recording(file, format="pcd")
    cloud = stream[0].payload
    assert isinstance(cloud, PointCloud)
    points = cloud.points[np.isfinite(cloud.points).all(1), :2]
    frame = "" if cloud.frame == file.stem else cloud.frame  # a file without a frame is called by its name
    if not len(points):
        return Extent(frame=frame)
    rim = OUTLYING if len(points) >= MANY else 0.0
    (x0, y0), (x1, y1) = np.quantile(points, (rim, 1 - rim), axis=0, method="nearest").tolist()
    return Extent(place=Place.of_box(Area(x0, y0, x1, y1, site.crs), site), frame=frame)

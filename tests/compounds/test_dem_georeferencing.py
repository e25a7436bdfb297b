"""Height maps made with satellite fixes have a CRS: they lie where a map of the ground in UTM has it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyproj
import pytest
import rasterio
from scipy.ndimage import map_coordinates
from tests.commands import transect

from transect import run
from transect.evaluation.height_maps import map_errors
from transect.formats.geotiff import encode_geotiff
from transect.recording import Recording, stream_of_values
from transect.simulation.day import Day, WorldOptions, simulate
from transect.types import GridMap, Pose

CELL_SIZE_M = 0.2
LIDAR_AND_FIXES = ("Lidar", "Gnss/Imu", "Gnss/Pose")


@pytest.fixture(scope="module")
def day() -> Day:
    return simulate("etna", WorldOptions(seconds=6.0, streams=LIDAR_AND_FIXES))


@pytest.fixture(scope="module")
def fused(day: Day) -> Recording:
    """The day with the poses of PoseFusion in place of the fixes' and the IMU's."""
    made = run("PoseFusion/ErrorStateFilter", day.recording)["pose"]
    values = [np.concatenate([pose.position, pose.orientation]) for pose in made.values]
    columns: dict[str, Any] = dict(
        zip(("x", "y", "z", "qx", "qy", "qz", "qw"), np.array(values).T, strict=True)
    )
    poses = stream_of_values(
        "Poses", made.t_ns, columns, type=Pose, frame=made.values[0].frame, child=made.values[0].child
    )
    return replace(day.recording, streams=(*day.recording.streams, poses))


@pytest.fixture(scope="module")
def surveyed(day: Day, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The true ground on a grid of UTM, by PROJ's topocentric coordinates."""
    assert day.truth.origin is not None
    latitude, longitude = np.degrees(day.truth.origin[:2])
    height = day.truth.origin[2]
    to_utm = pyproj.Transformer.from_crs("EPSG:4326", "EPSG:32633", always_xy=True)
    east, north = to_utm.transform(longitude, latitude)
    left, top, size = round(east) - 20.0, round(north) + 20.0, round(40 / CELL_SIZE_M)
    x, y = np.meshgrid(
        left + CELL_SIZE_M * (np.arange(size) + 0.5), top - CELL_SIZE_M * (np.arange(size) + 0.5)
    )
    lon, lat = to_utm.transform(x, y, direction="INVERSE")
    local = pyproj.Transformer.from_pipeline(
        "+proj=pipeline +step +proj=cart +ellps=WGS84 +step +proj=topocentric +ellps=WGS84 "
        f"+lat_0={latitude} +lon_0={longitude} +h_0={height}"
    )
    ground = day.truth.maps["dem"]
    # On the Earth's surface, as high as the ground is at the origin: heights matter little for x and y.
    u, v, _ = local.transform(lon, lat, np.full(x.shape, height))
    a, _, c, _, e, f = ground.transform
    cells = [(v - f) / e - 0.5, (u - c) / a - 0.5]
    heights = map_coordinates(np.asarray(ground.layers["elevation"], np.float64), cells, order=1, cval=np.nan)
    path = tmp_path_factory.mktemp("survey") / "survey.tif"
    with rasterio.open(
        path, "w", driver="GTiff", width=size, height=size, count=1, dtype="float32", crs="EPSG:32633",
        transform=rasterio.Affine(CELL_SIZE_M, 0, left, 0, -CELL_SIZE_M, top), nodata=float("nan"),
    ) as file:  # fmt: skip
        file.write(heights.astype(np.float32), 1)
    return path


def held_against(survey: Path, dem: GridMap, folder: Path) -> Mapping[str, Any]:
    (folder / "dem.tif").write_bytes(encode_geotiff(dem))
    done = transect("eval", survey, folder / "dem.tif", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["FromPoses", "FromLidar"])
def test_a_map_made_with_fixes_lies_on_a_map_in_utm(
    name: str, fused: Recording, surveyed: Path, tmp_path: Path
) -> None:
    made = run(f"DemGeneration/{name}", fused, set={"dem.cell": CELL_SIZE_M, "range.max_range": 12.0})
    dem = made["dem"].values[0]
    assert dem.frame == {"FromPoses": "map", "FromLidar": "level"}[name]
    assert any("coordinate reference system, from" in each.text for each in made.conclusions)
    [result] = held_against(surveyed, dem, tmp_path)["results"]
    assert result["metrics"]["map"]["nmad"] < 0.1
    assert np.hypot(*result["metrics"]["map"]["shift_m"][:2]) < CELL_SIZE_M


def test_a_map_with_a_crs_is_compared_with_a_true_map_that_has_none(fused: Recording, day: Day) -> None:
    """Both lie in local frames: the x and y of the map's CRS are those of its frame."""
    east_north = np.arange(-10, 10, 0.5)
    heights = np.sin(east_north)[:, None] + np.cos(east_north)
    transform = (0.5, 0.0, -10.0, 0.0, -0.5, 10.0)
    crs = pyproj.CRS.from_dict({"proj": "tmerc", "lat_0": 37.7, "lon_0": 15.0, "datum": "WGS84"}).to_wkt()
    placed = GridMap({"elevation": heights}, transform, crs, frame="map")
    local = GridMap({"elevation": heights}, transform, frame="world")
    for reference, estimate in ((placed, local), (local, placed)):
        assert map_errors(reference, estimate, register=False).statistics.rmse < 1e-9


def test_without_fixes_a_map_has_no_crs_and_the_run_says_it(day: Day) -> None:
    streams = tuple(each for each in day.recording.streams if each.name == "Lidar")
    made = run("DemGeneration/FromLidar", replace(day.recording, streams=streams), end="+1s")
    assert made["dem"].values[0].crs == ""
    assert [each.text for each in made.conclusions] == [
        "the map has no coordinate reference system: there are no satellite fixes"
    ]

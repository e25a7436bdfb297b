"""Alignment of map files: opening, results as plain values, and figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from transect._version import __version__
from transect.algorithms.clouds.selection import find_measured
from transect.algorithms.coregistration.alignment import GridAlignment, resample_aligned, sample_placed
from transect.algorithms.coregistration.localisation import Localisation
from transect.algorithms.coregistration.placement import MapPlacement
from transect.base.arrays import Floats
from transect.base.files import staged, write_bytes, write_text
from transect.errors import UsageError
from transect.evaluation.inputs import Reader, open_named
from transect.formats.geotiff import encode_geotiff
from transect.geometry.rasters import HeightRaster
from transect.nodes.cloud.dem_building import GroundElevation
from transect.recording import Loss
from transect.types import PointCloud

from .map_reports import MapInput, is_map, open_map

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_IMAGE_CELLS = 1200  # along a side of a figure
POINTS_PER_CELL = 8  # mean number of a cloud's points in a cell of default size


def open_ground(
    source: str, cell: float | None = None, reader: Reader | None = None
) -> tuple[MapInput, tuple[Loss, ...]]:
    """Open a height map, or a cloud with z up and make a height map of it; return it and its reading losses.

    Parameters
    ----------
    source : str
        A map as for `open_map`, or a file of a cloud.
    cell : float, optional
        Edge in metres of the cells of a cloud's map; by default with eight points each on average.
    """
    if is_map(source, reader):
        return open_map(source, reader)
    recording, name = open_named(source, reader)
    clouds = [each for each in recording if each.type is PointCloud and name in ("", each.name)]
    if not clouds:
        return open_map(source, reader)
    if len(clouds) > 1 or len(clouds[0]) != 1:
        raise UsageError(
            f"{source} has {sum(len(each) for each in clouds)} clouds",
            hint=f"name one: {recording.typed_streams(each.name for each in clouds)}"
            if len(clouds) > 1
            else "a file of one cloud, or a map",
        )
    made = _grid(clouds[0][0].payload, cell)
    named = MapInput(recording.name, made, tuple(recording.provenance.sources))
    return named, tuple(clouds[0].losses)


def _grid(cloud: PointCloud, cell: float | None) -> Any:
    points = np.asarray(cloud.points[find_measured(cloud)], np.float64)
    if not len(points):
        raise UsageError("the cloud has no points")
    if cell is None:
        area = float(np.prod(np.ptp(np.quantile(points[:, :2], (0.02, 0.98), axis=0), axis=0)))
        cell = max(float(np.sqrt(POINTS_PER_CELL * max(area, 1e-6) / len(points))), 1e-3)
    node = GroundElevation(cell=cell)
    node(cloud)
    return node.finish()


def alignment_to_dict(found: GridAlignment) -> dict[str, Any]:
    """Return an alignment as plain values."""
    placement, sigma = found.placement, found.sigmas
    return {
        "shift_m": placement.shift.tolist(),
        "heading_deg": float(np.degrees(placement.heading)),
        "tilt_deg": _tilts(placement),
        "scale": placement.scale,
        "deviation_shift_m": sigma[:3].tolist(),
        "deviation_turn_deg": np.degrees(sigma[3:6]).tolist(),
        "deviation_scale": float(sigma[6]) if len(sigma) > 6 else None,
        "middle": placement.middle.tolist(),
        "T_reference_map": found.T_reference_map.tolist(),
        "covariance": found.covariance.tolist(),
        "origin": found.plane.origin.tolist(),
        "crs": found.plane.crs,
        "metres_per_unit": found.plane.unit.tolist(),
        "cell_m": found.moved.cell,
        "overlap": found.overlap,
        "before_m": None if np.isnan(found.initial_residual_sigma) else found.initial_residual_sigma,
        "residual_m": found.fit.residual_rms,
        "correlation": found.slope_correlation.correlation,
        "version": f"transect {__version__}",
    }


def _tilts(placement: MapPlacement) -> list[float]:
    """Return the tilt about x and y in degrees, without the rotation about the vertical."""
    up = placement.rotation[:, 2]
    return np.degrees([np.arctan2(-up[1], up[2]), np.arctan2(up[0], up[2])]).tolist()


def localisation_to_dict(found: Localisation) -> dict[str, Any]:
    """Return all hypotheses as plain values."""
    plane = found.hypotheses[0].alignment.plane
    rows = [
        {
            "probability": each.probability,
            "place": plane.from_metres(
                (each.alignment.placement.middle + each.alignment.placement.shift)[:2]
            ).tolist(),
            **alignment_to_dict(each.alignment),
        }
        for each in found.hypotheses
    ]
    return {"sure": found.is_sure, "hypotheses": rows}


def save_alignment(folder: Path, reference: MapInput, moved: MapInput, found: GridAlignment) -> list[Path]:
    """Write `alignment.json`, `aligned.tif` and `difference.png` into a new folder."""
    from transect.draw.figures import save_figure

    with staged(folder) as new:
        new.mkdir()
        write_text(new / "alignment.json", json.dumps(alignment_to_dict(found), indent=1) + "\n")
        write_bytes(new / "aligned.tif", encode_geotiff(resample_aligned(reference.grid, moved.grid, found)))
        save_figure(draw_alignment(found, moved.name), new / "difference.png")
    return [folder / name for name in ("alignment.json", "aligned.tif", "difference.png")]


def save_localisation(folder: Path, moved: MapInput, found: Localisation) -> list[Path]:
    """Write `places.json` and `places.png` into a new folder."""
    from transect.draw.figures import save_figure

    with staged(folder) as new:
        new.mkdir()
        write_text(new / "places.json", json.dumps(localisation_to_dict(found), indent=1) + "\n")
        save_figure(draw_localisation(found, moved.name), new / "places.png")
    return [folder / name for name in ("places.json", "places.png")]


def draw_alignment(found: GridAlignment, name: str = "") -> Figure:
    """Draw the differences of a map to the reference before and after alignment."""
    from transect.draw.ground import alignment_figure

    low, high = _bounds(found, found.placement)
    x, y, extent = _picture_grid(found.reference, low, high)
    ground = found.reference.at(x, y)
    begun = MapPlacement(found.placement.middle)
    before, after = (sample_placed(found.moved, each, x, y) - ground for each in (begun, found.placement))
    known = before[np.isfinite(before)]
    before = before - (np.median(known) if len(known) else 0.0)
    left = (
        "no overlap"
        if np.isnan(found.initial_residual_sigma)
        else f"{found.initial_residual_sigma:.3g} m, without the height offset"
    )
    titles = (f"{name} before alignment\n{left}", f"{name} aligned\n{found.fit.residual_rms:.3g} m")
    return alignment_figure(before, after, ground, extent, titles=titles)


def draw_localisation(found: Localisation, name: str = "") -> Figure:
    """Draw the hypotheses of a map's position on the reference."""
    from transect.draw.ground import MapOutline, localisation_figure

    best = found.hypotheses[0].alignment
    gx, gy = best.reference.centres
    low, high = np.array([gx.min(), gy.min()]), np.array([gx.max(), gy.max()])
    x, y, extent = _picture_grid(best.reference, low, high)
    outlines = [
        MapOutline(
            each.alignment.placement.transform_offsets(_corners(each.alignment.moved))[:, :2],
            each.probability,
        )
        for each in found.hypotheses
    ]
    sure = "unambiguous" if found.is_sure else f"{len(outlines)} hypotheses"
    return localisation_figure(best.reference.at(x, y), extent, outlines, title=f"{name}: {sure}")


def _corners(heights: HeightRaster) -> Floats:
    """Return the corners (4, 3) of a map's known cells, relative to their centre."""
    x, y = heights.centres
    known = np.isfinite(heights.values)
    x, y = x[known], y[known]
    middle = x.mean(), y.mean()
    box = [(x.min(), y.min()), (x.max(), y.min()), (x.max(), y.max()), (x.min(), y.max())]
    return np.array([[a - middle[0], b - middle[1], 0.0] for a, b in box])


def _bounds(found: GridAlignment, placement: MapPlacement) -> tuple[Floats, Floats]:
    """Return the corners of a figure of an alignment: the map before and after it."""
    offsets = _corners(found.moved)
    both = np.vstack([placement.transform_offsets(offsets), placement.middle + offsets])[:, :2]
    now = placement.transform_offsets(offsets)[:, :2]
    is_displaced = np.linalg.norm(placement.shift[:2]) > np.ptp(now, axis=0).max()
    shown = now if is_displaced else both
    return shown.min(axis=0), shown.max(axis=0)


def _picture_grid(
    reference: HeightRaster, low: Floats, high: Floats
) -> tuple[Floats, Floats, tuple[float, float, float, float]]:
    """Return x and y (rows, cols) of a picture's cells, northernmost row first, and its extent."""
    step = max(reference.cell, float((high - low).max()) / MAX_IMAGE_CELLS)
    east = np.arange(low[0], high[0] + step, step)
    north = np.arange(low[1], high[1] + step, step)[::-1]
    x, y = np.meshgrid(east, north)
    half = step / 2
    return (
        x,
        y,
        (float(east[0] - half), float(east[-1] + half), float(north[-1] - half), float(north[0] + half)),
    )

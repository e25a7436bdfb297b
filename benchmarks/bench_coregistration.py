"""Coregistration of height maps: a real elevation model moved by hand, and Etna's rover in Etna's drone.

Maps are moved by quintic splines or by rebuilding them from moved points, never by what is tested. The
rover's map is made of simulated lidar scans at the poses of its own odometry; the drone's of the true ground,
averaged to cells of 20 cm, with 3 cm of noise correlated over a metre, and holes. Days are kept in
`TRANSECT_BENCH_DAYS`, where that is set.
"""

import os
import tempfile
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates
from scipy.ndimage import shift as move

import transect
from benchmarks._harness import quality
from benchmarks.bench_dem import placed
from benchmarks.bench_lidar import DATA_DIR, true_poses
from transect.algorithms.coregistration.alignment import GridAlignment, align_maps
from transect.algorithms.coregistration.localisation import locate_map
from transect.errors import GeometryError
from transect.geometry import rotations, se3
from transect.recording import Recording
from transect.simulation.day import WorldOptions, simulate, write_day
from transect.types import GridMap, Pose

DAY_SEEDS = (975608, 441955, 567401)
DURATION_S = 25.0
DRAW_COUNT = 30
MAX_MEAN_NEES = 9.0
"""Mean squared error over covariance of six numbers, at most: 6 if it is honest."""


def main() -> None:
    real = DATA_DIR / "dem_geotiff" / "pysheds_dem.tif"
    if real.is_file():
        grid = next(iter(transect.open(real)))[0].payload
        bench_shifts(grid)
        bench_crops(grid)
    bench_covariance()
    with tempfile.TemporaryDirectory() as folder:
        for seed in DAY_SEEDS:
            bench_etna(Path(os.environ.get("TRANSECT_BENCH_DAYS") or folder), seed)


def bench_shifts(grid: GridMap) -> None:
    """The whole model, moved by parts of cells, with noise."""
    rng = np.random.default_rng(20)
    heights = np.asarray(grid.layers["elevation"], np.float64)
    worst = 0.0
    for _ in range(5):
        rows, cols = rng.uniform(-4, 4, 2)
        moved = move(heights, (rows, cols), order=5, mode="nearest")[8:-8, 8:-8]
        moved = moved + rng.normal(0, 0.5, moved.shape)
        a, _, c, _, e, f = grid.transform
        cut = GridMap({"elevation": moved}, (a, 0.0, c + 8 * a, 0.0, e, f + 8 * e), grid.crs)
        found = align_maps(grid, cut, search_radius=1000.0, turn=np.radians(3))
        east, north = (found.reference.plane_from_cells[k, k] for k in (0, 1))
        off = found.placement.shift[0] / east + cols, found.placement.shift[1] / north + rows
        worst = max(worst, float(np.hypot(*off)))
    quality("dem_geotiff, 5 shifts by hand, worst", worst, "cells", at_most=0.2)


def bench_crops(grid: GridMap) -> None:
    """Find small parts, turned anyhow, of other cells, with noise and holes, in the whole."""
    rng = np.random.default_rng(21)
    heights, cell = np.asarray(grid.layers["elevation"], np.float64), 90.0
    whole = GridMap({"elevation": heights}, (cell, 0, 0, 0, -cell, cell * len(heights)))
    told, right = [], []
    for side, noise, holes, edge in ((40, 1, 0.1, 90), (60, 1, 0.3, 60), (24, 1, 0.1, 90), (16, 2, 0.1, 90)):
        for _ in range(2):
            part, T = cut_part(heights, cell, rng, side, edge, noise, holes)
            try:
                found = locate_map(whole, part)
            except GeometryError as error:
                print(f"    {side} x {side} cells of {edge} m: refused, {error.what}")
                continue
            best = found.hypotheses[0].alignment
            off = np.linalg.norm(place_error(best, T)[:2]) / cell
            told.append(found.hypotheses[0].probability)
            right.append(off < 1.0)
            print(f"    {side} x {side} cells of {edge} m: {off:.3f} cells off, p {told[-1]:.3f}")
    quality("dem_geotiff, crops in the whole, right", 100 * float(np.mean(right)), "%")
    quality("dem_geotiff, crops, mean of what was promised", 100 * float(np.mean(told)), "%")


def cut_part(heights, cell, rng, side, edge, noise, holes) -> tuple[GridMap, np.ndarray]:
    """A part at a place and heading that are drawn, in its own frame; and T_whole_part."""
    reach = 0.75 * side * edge
    place = [rng.uniform(reach, n * cell - reach) for n in (heights.shape[1], heights.shape[0])]
    T = se3.from_matrix(rotations.matrix_from_euler("z", [rng.uniform(-np.pi, np.pi)]), [*place, 100.0])
    at = (np.arange(side) - (side - 1) / 2) * edge
    x, y = np.meshgrid(at, at[::-1])
    world = se3.apply(T, np.stack([x, y, 0 * x], axis=-1).reshape(-1, 3)).reshape(side, side, 3)
    z = map_coordinates(
        heights, [len(heights) - 0.5 - world[..., 1] / cell, world[..., 0] / cell - 0.5], order=5
    )
    z = z - 100.0 + rng.normal(0, noise, z.shape)
    z[rng.uniform(size=z.shape) < holes] = np.nan
    half = side * edge / 2
    return GridMap({"elevation": z}, (edge, 0, -half, 0, -edge, half)), T


def place_error(found: GridAlignment, T: np.ndarray) -> np.ndarray:
    """Error of the middle's place, m (3,), and of the attitude, rad (3,)."""
    middle = np.append(found.placement.middle, 1.0)
    turned = rotations.rotation_vector_from_matrix(found.placement.rotation @ T[:3, :3].T)
    return np.concatenate([((found.T_reference_map - T) @ middle)[:3], turned])


def bench_covariance() -> None:
    """Two eyes with noise of their own, alike over cells: errors against the covariance."""
    for alike in (0.0, 2.0):
        squares = [_draw_nees(np.random.default_rng([22, k]), alike) for k in range(DRAW_COUNT)]
        name = f"NEES of six numbers, noise alike over {alike:g} cells"
        quality(name, float(np.mean(squares)), "", at_most=MAX_MEAN_NEES)
        print(f"    expected 6; {DRAW_COUNT} draws, the largest {max(squares):.1f}")


def _draw_nees(rng: np.random.Generator, alike: float) -> float:
    ground = sum(size * gaussian_filter(rng.normal(size=(120, 120)), size) for size in (2, 5, 12))
    noise = [0.2 * _noise(rng, (n, n), alike) for n in (120, 56)]
    small = rotations.matrix_from_rotation_vector(
        np.array([*rng.normal(0, 0.005, 2), rng.uniform(-0.1, 0.1)])
    )
    middle = np.array([60.0, 60.0, 0.0])
    T = se3.from_matrix(small, middle + rng.uniform(-2, 2, 3) - small @ middle)
    at = 60.0 + np.arange(56) - 27.5
    x, y = np.meshgrid(at, at[::-1])
    z = np.zeros(x.shape)
    for _ in range(20):
        place = se3.apply(T, np.stack([x, y, z], axis=-1).reshape(-1, 3)).reshape(56, 56, 3)
        z = z + map_coordinates(ground, [119.5 - place[..., 1], place[..., 0] - 0.5], order=5) - place[..., 2]
    reference = GridMap({"elevation": ground + noise[0]}, (1.0, 0, 0, 0, -1.0, 120.0))
    moved = GridMap({"elevation": z + noise[1]}, (1.0, 0, 32.0, 0, -1.0, 88.0))
    found = align_maps(reference, moved, search_radius=5.0, turn=0.2)
    off = place_error(found, T)
    return float(off @ np.linalg.solve(found.covariance, off))


def _noise(rng: np.random.Generator, shape: tuple[int, int], alike: float) -> np.ndarray:
    white = rng.normal(size=shape)
    smooth = gaussian_filter(white, alike) if alike else white
    return smooth / smooth.std()


def bench_etna(folder: Path, seed: int) -> None:
    """The rover's map, 5 m and 10 degrees off, in the drone's."""
    day = drive_etna(folder, seed)
    drone = fly(day["truth/dem"][0].payload, seed)
    rng = np.random.default_rng([23, seed])
    angle = rng.uniform(0, 2 * np.pi)
    off = rotations.matrix_from_rotation_vector(np.array([*rng.normal(0, 0.01, 2), np.radians(10)]))
    start = np.array([-15.0, -14.0, 0.0])
    moved = np.array([5 * np.cos(angle), 5 * np.sin(angle), 1.0])
    wrong = se3.from_matrix(off, start + moved - off @ start)
    poses = transect.run("LidarOdometry", day)["pose"].values
    rover, truth = placed(day, poses, wrong), mean_place(day, poses) @ se3.invert(wrong)
    found = align_maps(drone, rover, search_radius=10.0)
    error = place_error(found, truth)
    quality(f"Etna {seed}, rover in drone, place", float(np.hypot(*error[:2])) / 0.2, "cells", at_most=0.5)
    quality(f"Etna {seed}, rover in drone, turn", float(np.degrees(abs(error[5]))), "deg", at_most=0.3)
    tilt = float(np.degrees(np.hypot(*error[3:5])))
    print(f"    heights {error[2]:+.3f} m, tilt {tilt:.3f} deg, overlap {found.overlap:.0%}")
    try:
        place = locate_map(drone, rover)
        error = place_error(place.hypotheses[0].alignment, truth)
        quality(f"Etna {seed}, rover anywhere in drone, place", float(np.hypot(*error[:2])), "m")
        print(f"    p {place.hypotheses[0].probability:.3f} of {len(place.hypotheses)} places")
    except GeometryError as refused:
        print(f"    anywhere: refused, {refused.what}")


def drive_etna(folder: Path, seed: int) -> Recording:
    """A short drive on Etna with clouds of half the points; written once."""
    path = folder / f"etna-{seed}-short"
    if not path.is_dir():
        how = WorldOptions(seconds=DURATION_S, seed=seed, scale=0.5, streams=("Lidar", "Gnss/Imu"))
        write_day(simulate("etna", how), path)
    return transect.open(path)


def mean_place(day: Recording, poses: list[Pose]) -> np.ndarray:
    """Where a map truly lies that begins at the true first pose: by the truth of all its poses, not of one.

    The first pose of an odometry is as wrong as any other; what is asked of an alignment is to lay the map.
    """
    found = np.array([se3.from_quaternion(pose.orientation, pose.position) for pose in poses])
    true = true_poses(day)(np.array([pose.t_ns for pose in poses]))
    ours = true[0] @ found
    turn = rotations.nearest_rotation(np.mean(true[:, :3, :3] @ ours[:, :3, :3].transpose(0, 2, 1), axis=0))
    return se3.from_matrix(turn, true[:, :3, 3].mean(axis=0) - turn @ ours[:, :3, 3].mean(axis=0))


def fly(ground: GridMap, seed: int) -> GridMap:
    """What a drone makes of the ground: cells of 20 cm, noise, holes."""
    rng = np.random.default_rng([24, seed])
    fine = np.asarray(ground.layers["elevation"], np.float64)
    rows, cols = (n // 4 for n in fine.shape)
    heights = fine[: 4 * rows, : 4 * cols].reshape(rows, 4, cols, 4).mean(axis=(1, 3))
    heights = heights + 0.03 * _noise(rng, heights.shape, 5.0)
    heights[gaussian_filter(rng.normal(size=heights.shape), 4) > 0.12] = np.nan
    a, _, c, _, e, f = ground.transform
    return GridMap({"elevation": heights}, (4 * a, 0.0, c, 0.0, 4 * e, f), frame=ground.frame)


if __name__ == "__main__":
    main()

"""Maps of a dusty day by laser or radar, in turn, beside fixed ways.

Simulated: Marulan in dust, along the path of its navigation. `SEEDS` were run once, for the page; the policy
was made on those in `LOOKED_AT`. Days are kept in `TRANSECT_BENCH_DAYS`, if set. Arguments are seeds.
"""

import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import transect
from benchmarks._harness import quality
from benchmarks._in_turn import MAX_ERROR_RATIO, kept, make_in_turn
from transect.base.arrays import Floats
from transect.products import open_store
from transect.recording import Recording
from transect.simulation.day import WorldOptions

LOOKED_AT, UNSEEN_SEEDS = (1, 921, 922, 923, 931, 932, 933), (675603, 601169, 362381)
SCENES = ("houses", "open", "houses")
"""Of the first seed, the second, and the third."""
RANGES = ("LaserHorizontal", "Nav", "RadarSpectrum", "RadarRangeBearing")
MAPPING = "LaserMapping/RecordedFrames"
CELL_SIZE_M, SCAN_STEP, MAX_FREE_SPACE_M = 0.5, 15, 60.0
"""Edge of the cells of a map; one scan in this many is used; length of a beam that counts as free space."""
Cells = set[tuple[int, int, int]]


def main(seeds: Sequence[int] = UNSEEN_SEEDS) -> None:
    with threadpool_limits(1), tempfile.TemporaryDirectory() as made:
        for seed in seeds:
            bench_dust(Path(os.environ.get("TRANSECT_BENCH_DAYS") or made), seed, scene_of(seed))


def scene_of(seed: int) -> str:
    """Return the scene of a seed: the first one of a seed that is not known."""
    numbers = {each: number for seeds in (LOOKED_AT[1:], UNSEEN_SEEDS) for number, each in enumerate(seeds)}
    return SCENES[numbers.get(seed, 0) % len(SCENES)]


def bench_dust(folder: Path, seed: int, scene: str) -> None:
    """Cells of things, and cells in free space, of maps of a dusty day."""
    clear, dusty = (
        kept(folder, "marulan", WorldOptions(30.0, seed, 1.0, RANGES, {"scene": scene, "air": air}))
        for air in ("clear", "dust")
    )
    things, free = world_of(clear)
    with tempfile.TemporaryDirectory() as place, open_store(Path(place) / "day.gpkg") as store:
        found = points_of(store.content(make_in_turn("map", dusty, store)[0].id))
    checked, bare = (transect.run(MAPPING, dusty, check=how) for how in (True, False))
    lasers, radar = (checked[port].values[0].points for port in ("map", "radar"))
    fixed = {
        "LaserMapping": bare["map"].values[0].points,
        "LaserMapping --check": lasers,
        "RadarMapping --check": radar,
        "both --check": np.concatenate([lasers, radar]),
    }
    errors = {words: map_error(points, things, free) for words, points in fixed.items()}
    for words, error in errors.items():
        quality(f"dusty, seed {seed}: {words}", error, "of 1")
    ours, best = map_error(found, things, free), min(errors.values())
    quality(
        f"dusty, seed {seed}: orchestrated / best fixed", ours, "of 1", at_most=MAX_ERROR_RATIO, peer=best
    )


def points_of(content: bytes) -> Floats:
    """Points (n, 3) of a cloud that is kept."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "map.ply"
        file.write_bytes(content)
        [stream] = transect.open(file)
        return np.asarray(stream[0].payload.points, dtype=np.float64)


def world_of(clear: Recording) -> tuple[Cells, Cells]:
    """Cells of things that the laser met in clear air, by the truth of its beams, and cells of free space."""
    laser, hits, named = (clear[n] for n in ("LaserHorizontal", "truth/hits", "truth/hit_kinds"))
    kinds = named.table.to_pydict()
    ground = [
        n for n, kind in zip(kinds["number"], kinds["kind"], strict=True) if kind in ("nothing", "ground")
    ]
    own = [name == laser.name for name in hits.table.column("stream").to_pylist()]
    met = hits.table.filter(own).column("kinds").to_pylist()
    ranges = laser.table.column("ranges").to_pylist()
    angles = laser.array("start_angle").ravel(), laser.array("angle_increment").ravel()
    things, touched, free = Cells(), Cells(), Cells()
    for row in range(0, len(laser), SCAN_STEP):
        T_world_laser = clear.frames.lookup("Navigation", laser.name, int(laser.t_ns[row]), tolerance=1.0)
        far = np.array(ranges[row], np.float64)
        came = np.isfinite(far) & (far < 79.0)
        angle = (angles[0][row] + angles[1][row] * np.arange(len(far)))[came]
        beams = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(len(angle))])
        placed = beams @ T_world_laser[:3, :3].T
        ends = placed * far[came, None] + T_world_laser[:3, 3]
        touched |= cells_of(ends)
        things |= cells_of(ends[~np.isin(np.array(met[row])[came], ground)])
        steps = np.arange(CELL_SIZE_M / 2, MAX_FREE_SPACE_M, CELL_SIZE_M / 2)
        through = steps < (far[came] - CELL_SIZE_M / 2)[:, None]
        free |= cells_of((placed[:, None] * steps[:, None])[through] + T_world_laser[:3, 3])
    return things, free - widen(touched)


def map_error(points: Floats, things: Cells, free: Cells) -> float:
    """Return 1 - F: of cells of a map that are at things or in free space, and of things that are in it."""
    cells = cells_of(points)
    true, false = len(cells & widen(things)), len(cells & free)
    right, found = true / max(true + false, 1), len(things & widen(cells)) / len(things)
    return 1 - 2 * right * found / (right + found)


def cells_of(points: Floats) -> Cells:
    numbers = np.unique(np.floor(points / CELL_SIZE_M).astype(np.int64), axis=0)
    return {(x, y, z) for x, y, z in numbers.tolist()}


def widen(cells: Iterable[tuple[int, int, int]]) -> Cells:
    """All cells that touch one of these."""
    beside = (-1, 0, 1)
    return {(x + i, y + j, z + k) for x, y, z in cells for i in beside for j in beside for k in beside}


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or UNSEEN_SEEDS)

"""Effect of `--check` on maps and trajectories of days with faults.

Dust at Marulan, with a robot at rest, driving in the open, or driving among houses: cells of `LaserMapping`
without a neighbour in the map of the same day in clear air, and cells of people and objects (by the ground
truth of every beam) that are lost. GNSS outliers and wheel slip on Etna: error of `PoseFusion` with its gate,
without, with verdicts instead of it, with both, and with exactly the outliers removed. Clear days: the change
by `--check`.

Limits and masks were chosen on `DEVELOPMENT_SEEDS`; `UNSEEN_SEEDS` were run once, for the page. Days are kept
in `TRANSECT_BENCH_DAYS`, if set.
"""

import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

import transect
from benchmarks._harness import quality
from transect.engine import Run
from transect.evaluation.association import associate
from transect.evaluation.trajectory_errors import absolute_error
from transect.recording import Recording, stream_of_values
from transect.simulation.day import WorldOptions, simulate, write_day
from transect.simulation.faults import inject
from transect.types import LaserScan, Trajectory

DEVELOPMENT_SEEDS = (1, 21, 22, 811, 812, 813)
UNSEEN_SEEDS = (52017, 77341, 94186)
FILTER, MAPPING = "PoseFusion/ErrorStateFilter", "LaserMapping/RecordedFrames"
NAV = ("Platform/MotorEncoders", "Gnss/Imu", "Gnss/Pose")
LASERS = ("LaserHorizontal", "LaserVertical", "Nav", "RadarRangeBearing")
SCENES = {"standing": {"scene": "static"}, "driving": {"scene": "open"}, "houses": {"scene": "houses"}}
MAPPED_S, DRIVEN_S = 30.0, 60.0
CELL_SIZE_M = 0.2
"""Edge of the cells of a map. A cell is false, or lost, if the other map has none in it or adjacent to it."""
MIN_TRUSTED_SCORE = 0.5
"""Smallest score of a cell with a single return."""
SCENERY = ("nothing", "ground", "tree", "leaves", "trunk")
"""Kinds of hits other than people and objects."""
UNGATED = {"fusion.gate": False}
Cells = set[tuple[int, int, int]]


def main(seeds: tuple[int, ...] = UNSEEN_SEEDS) -> None:
    with threadpool_limits(1), tempfile.TemporaryDirectory() as made:
        folder = Path(os.environ.get("TRANSECT_BENCH_DAYS") or made)
        for seed in seeds:
            for scene in SCENES:
                bench_dust(folder, scene, seed)
            bench_spikes(folder, seed)
            bench_slip(folder, seed)


# Maps


def bench_dust(folder: Path, scene: str, seed: int) -> None:
    """Count false cells by dust, and lost cells of people and objects, in maps of a dusty day."""
    clear, dusty = (marulan(folder, scene, seed, air) for air in ("clear", "dust"))
    plain, clear_checked = (cells_of(transect.run(MAPPING, clear, check=how)) for how in (False, True))
    unchecked, checked = (transect.run(MAPPING, dusty, check=how) for how in (False, True))
    objects, near = cells_of(transect.run(MAPPING, without_scenery(clear))), widen(plain)
    seen, false = objects & cells_of(unchecked), len(cells_of(unchecked) - near)
    name = f"{scene}, seed {seed}"
    quality(f"{name}: false cells in dust", false, "")
    for words, left, gates in (
        ("--check", cells_of(checked), (90, 2)),
        ("without uncertain cells", cells_of(checked, with_uncertain=False), (None, None)),
    ):
        gone, lost = 100 * (1 - len(left - near) / max(false, 1)), 100 * len(seen - widen(left)) / len(seen)
        quality(f"{name}: gone, {words}", gone, "%", at_least=gates[0])
        quality(f"{name}: cells of objects lost by it", lost, "%", at_most=gates[1])
        quality(f"{name}: the same, to the very cell", 100 * len(seen - left) / len(seen), "%")
    anyway = 100 * len(objects - cells_of(unchecked)) / len(objects)
    quality(f"{name}: cells of objects lost in dust without --check", anyway, "%")
    quality(
        f"{name}: cells that differ in clear air",
        100 * len(plain ^ clear_checked) / len(plain),
        "%",
        at_most=1,
    )


def marulan(folder: Path, scene: str, seed: int, air: str) -> Recording:
    """Return a day with a walking person."""
    conditions = {**SCENES[scene], "human": "walking", "air": air}
    return _day(folder, "marulan", f"{scene}-{air}", WorldOptions(MAPPED_S, seed, 1.0, LASERS, conditions))


def _day(folder: Path, world: str, name: str, options: WorldOptions) -> Recording:
    path = folder / f"{world}-{options.seed}-{name}"
    if not path.exists():
        write_day(simulate(world, options), path)
    return transect.open(path)


def without_scenery(clear: Recording) -> Recording:
    """Return a clear day with the returns of people and objects only, by the ground truth of each beam."""
    kinds = clear["truth/hit_kinds"].table.to_pydict()
    scenery = [number for number, kind in zip(kinds["number"], kinds["kind"], strict=True) if kind in SCENERY]
    hits = clear["truth/hits"].table
    streams: list[Any] = []
    for stream in clear:
        if stream.type is not LaserScan:
            streams.append(stream)
            continue
        rows = [name == stream.name for name in hits.column("stream").to_pylist()]
        met = hits.filter(rows).column("kinds").to_pylist()
        ranges = [
            np.where(np.isin(kind, scenery), np.nan, np.array(each, np.float64))
            for kind, each in zip(met, stream.table.column("ranges").to_pylist(), strict=True)
        ]
        columns = {name: stream.column(name) for name in ("start_angle", "angle_increment")}
        made = stream_of_values(stream.name, stream.t_ns, {"ranges": ranges, **columns}, type=LaserScan)
        streams.append(made.replace(tag=stream.tag, frame=stream.frame))
    return clear.replace(streams=tuple(streams))


def cells_of(run: Run, *, with_uncertain: bool = True) -> Cells:
    """Return the cells of a map; unless `with_uncertain`, without cells of one return with a low score."""
    cloud = run["map"].values[0]
    score = cloud.fields.get("score", np.ones(len(cloud)))
    kept = with_uncertain | (cloud.fields["count"] > 1) | (score >= MIN_TRUSTED_SCORE)
    cells = np.floor(cloud.points[kept] / CELL_SIZE_M).astype(np.int64)
    return {(int(x), int(y), int(z)) for x, y, z in cells}


def widen(cells: Cells) -> Cells:
    """Return the cells and all adjacent ones."""
    offsets = (-1, 0, 1)
    return {(x + i, y + j, z + k) for x, y, z in cells for i in offsets for j in offsets for k in offsets}


def draw_maps(folder: Path, scene: str, seed: int, path: Path, above: float = 0.4) -> None:
    """Draw top views of the maps of a day: in clear air, in dust, and in dust with `--check`.

    The ground is omitted: points less than `above` m over the lowest one of their square metre.
    """
    from transect.draw.figures import new_figure, save_figure

    clear, dusty = (marulan(folder, scene, seed, air) for air in ("clear", "dust"))
    maps = {"clear air": (clear, False), "dust": (dusty, False), "dust, --check": (dusty, True)}
    figure = new_figure(9.0, 3.6)
    axes = figure.subplots(1, len(maps), sharex=True, sharey=True)
    middle = None
    for ax, (title, (day, check)) in zip(axes, maps.items(), strict=True):
        north, east, down = transect.run(MAPPING, day, check=check)["map"].values[0].points.T
        middle = (np.median(east), np.median(north)) if middle is None else middle
        _, square = np.unique(np.floor([north, east]), axis=1, return_inverse=True)
        ground = np.full(square.max() + 1, -np.inf)
        np.maximum.at(ground, square.ravel(), down)
        high = down < ground[square.ravel()] - above
        ax.plot(
            east[high] - middle[0], north[high] - middle[1], ".", ms=0.6, color="#1c2b3a", rasterized=True
        )
        ax.set(title=title, xlabel="east [m]", aspect="equal")
    axes[0].set(ylabel="north [m]", xlim=(-25, 25), ylim=(-25, 25))
    save_figure(figure, path)


# Trajectories


def bench_spikes(folder: Path, seed: int) -> None:
    """Errors with outliers of up to 50 m in one of ten fixes, during half of the day."""
    clean = etna(folder, seed)
    spiked, labels = inject(clean, "gnss_spike", 1.0, seed, streams=["Gnss/Pose"])
    reference, name = ate(transect.run(FILTER, clean), clean), f"spikes, seed {seed}"
    error = partial(quality, unit="m", peer=reference)
    error(f"{name}: gate off / clear day", ate(transect.run(FILTER, spiked, set=UNGATED), clean), at_least=2)
    error(f"{name}: the spikes taken out by hand", ate(transect.run(FILTER, without(clean, labels)), clean))
    error(f"{name}: gate", ate(transect.run(FILTER, spiked), clean))
    error(f"{name}: gate off, --check", ate(transect.run(FILTER, spiked, set=UNGATED, check=True), clean))
    error(f"{name}: gate, --check", ate(transect.run(FILTER, spiked, check=True), clean), at_most=1.1)
    same = ate(transect.run(FILTER, clean, check=True), clean)
    quality(f"clear day, seed {seed}: change by --check", 100 * abs(same / reference - 1), "%", at_most=1)


def without(clean: Recording, labels: pa.Table) -> Recording:
    """Return a day without the labelled fixes."""
    fixes = clean["Gnss/Pose"]
    kept = np.ones(len(fixes), np.bool_)
    kept[labels.column("index").to_numpy()] = False
    streams = tuple(s.take(kept) if s is fixes else s for s in clean)
    return clean.replace(streams=streams)


def bench_slip(folder: Path, seed: int) -> None:
    """Errors with 80 % wheel slip, during half of the day."""
    clean = etna(folder, seed)
    slipping, _ = inject(clean, "wheel_slip", 1.0, seed, streams=["Platform/MotorEncoders"])
    reference, name = ate(transect.run(FILTER, clean), clean), f"slip, seed {seed}"
    for words, how in (("gate", False), ("gate, --check", True)):
        quality(
            f"{name}: {words}", ate(transect.run(FILTER, slipping, check=how), clean), "m", peer=reference
        )


def etna(folder: Path, seed: int) -> Recording:
    """Return a day with wheels, IMU and RTK."""
    return _day(folder, "etna", "nav", WorldOptions(DRIVEN_S, seed, 1.0, NAV))


def ate(run: Run, truth: Recording) -> float:
    """Return the RMS position error, m, after alignment by translation and yaw."""
    poses, true = run["pose"].values, truth["truth/trajectory"]
    found = Trajectory(run["pose"].t_ns, np.stack([each.position for each in poses]))
    pairs = associate(Trajectory(true.t_ns, true.array("x", "y", "z")), found)
    return absolute_error(pairs, "yaw").statistics.rmse


if __name__ == "__main__":
    main()

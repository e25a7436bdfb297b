"""Acting on verdicts: maps and trajectories of days with faults, with `--check` and without.

Dust at Marulan, before a robot that stands, one that drives in the open and one that drives among houses:
cells of `LaserMapping` that are near nothing of the same day in clear air, and cells of people and things (by
the truth of every beam) that are lost. Fixes that are far off one by one and wheels that slip, on Etna: error
of `PoseFusion` with its own gate, without, with verdicts in place of it, with both, and where somebody who
knows them has taken exactly these fixes out. Clear days: what `--check` changes.

Limits and masks were chosen by the seeds in `LOOKED_AT`; those in `SEEDS` were run once, for the page. Days
are kept in `TRANSECT_BENCH_DAYS`, if set.
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
from transect.simulation.day import Options, simulate, write_day
from transect.simulation.faults import inject
from transect.types import LaserScan, Trajectory

LOOKED_AT = (1, 21, 22, 811, 812, 813)
UNSEEN_SEEDS = (52017, 77341, 94186)
FILTER, MAPPING = "PoseFusion/ErrorStateFilter", "LaserMapping/RecordedFrames"
NAV = ("Platform/MotorEncoders", "Gnss/Imu", "Gnss/Pose")
LASERS = ("LaserHorizontal", "LaserVertical", "Nav", "RadarRangeBearing")
SCENES = {"standing": {"scene": "static"}, "driving": {"scene": "open"}, "houses": {"scene": "houses"}}
MAPPED_S, DRIVEN_S = 30.0, 60.0
CELL_SIZE_M = 0.2
"""m: edge of the cells of a map. One is false, or lost, if none of the other map is in it or touches it."""
MIN_TRUSTED_SCORE = 0.5
"""Score of a cell below which one return is not enough."""
SCENERY = ("nothing", "ground", "tree", "leaves", "trunk")
"""What beams meet beside people and things."""
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
    """Cells of dust, and of people and things, in maps of a dusty day."""
    clear, dusty = (marulan(folder, scene, seed, air) for air in ("clear", "dust"))
    plain, quiet = (cells_of(transect.run(MAPPING, clear, check=how)) for how in (False, True))
    bare, checked = (transect.run(MAPPING, dusty, check=how) for how in (False, True))
    things, near = cells_of(transect.run(MAPPING, only_things(clear))), widen(plain)
    seen, false = things & cells_of(bare), len(cells_of(bare) - near)
    name = f"{scene}, seed {seed}"
    quality(f"{name}: false cells in dust", false, "")
    for words, left, gates in (
        ("--check", cells_of(checked), (90, 2)),
        ("and doubtful ones dropped", cells_of(checked, doubtful=False), (None, None)),
    ):
        gone, lost = 100 * (1 - len(left - near) / max(false, 1)), 100 * len(seen - widen(left)) / len(seen)
        quality(f"{name}: gone, {words}", gone, "%", at_least=gates[0])
        quality(f"{name}: cells of things lost by it", lost, "%", at_most=gates[1])
        quality(f"{name}: the same, to the very cell", 100 * len(seen - left) / len(seen), "%")
    anyway = 100 * len(things - cells_of(bare)) / len(things)
    quality(f"{name}: cells of things lost in dust anyway", anyway, "%")
    quality(f"{name}: cells that differ in clear air", 100 * len(plain ^ quiet) / len(plain), "%", at_most=1)


def marulan(folder: Path, scene: str, seed: int, air: str) -> Recording:
    """A day with somebody walking about."""
    conditions = {**SCENES[scene], "human": "walking", "air": air}
    return _day(folder, "marulan", f"{scene}-{air}", Options(MAPPED_S, seed, 1.0, LASERS, conditions))


def _day(folder: Path, world: str, name: str, options: Options) -> Recording:
    path = folder / f"{world}-{options.seed}-{name}"
    if not path.exists():
        write_day(simulate(world, options), path)
    return transect.open(path)


def only_things(clear: Recording) -> Recording:
    """A clear day in which only beams that met people and things came back, by the world's own truth."""
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


def cells_of(run: Run, *, doubtful: bool = True) -> Cells:
    """Cells of a map; without those that one return of a laser made that was trusted by less than half."""
    cloud = run["map"].values[0]
    score = cloud.fields.get("score", np.ones(len(cloud)))
    kept = doubtful | (cloud.fields["count"] > 1) | (score >= MIN_TRUSTED_SCORE)
    cells = np.floor(cloud.points[kept] / CELL_SIZE_M).astype(np.int64)
    return {(int(x), int(y), int(z)) for x, y, z in cells}


def widen(cells: Cells) -> Cells:
    """All cells that touch one of these."""
    beside = (-1, 0, 1)
    return {(x + i, y + j, z + k) for x, y, z in cells for i in beside for j in beside for k in beside}


def draw_maps(folder: Path, scene: str, seed: int, path: Path, above: float = 0.4) -> None:
    """Draw the maps of a day from above: in clear air, in dust, and in dust with `--check`.

    Only cells by this height above the lowest one of their square metre are drawn, without the ground.
    """
    from transect.draw.figures import new_figure, save_figure

    clear, dusty = (marulan(folder, scene, seed, air) for air in ("clear", "dust"))
    ways = {"clear air": (clear, False), "dust": (dusty, False), "dust, --check": (dusty, True)}
    figure = new_figure(9.0, 3.6)
    axes = figure.subplots(1, len(ways), sharex=True, sharey=True)
    middle = None
    for ax, (title, (day, check)) in zip(axes, ways.items(), strict=True):
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
    """Single fixes that are up to 50 m off, one in ten for half of the day."""
    clean = etna(folder, seed)
    spiked, labels = inject(clean, "gnss_spike", 1.0, seed, streams=["Gnss/Pose"])
    usual, name = ate(transect.run(FILTER, clean), clean), f"spikes, seed {seed}"
    error = partial(quality, unit="m", peer=usual)
    error(f"{name}: gate off / clear day", ate(transect.run(FILTER, spiked, set=UNGATED), clean), at_least=2)
    error(f"{name}: the spikes taken out by hand", ate(transect.run(FILTER, without(clean, labels)), clean))
    error(f"{name}: gate", ate(transect.run(FILTER, spiked), clean))
    error(f"{name}: gate off, --check", ate(transect.run(FILTER, spiked, set=UNGATED, check=True), clean))
    error(f"{name}: gate, --check", ate(transect.run(FILTER, spiked, check=True), clean), at_most=1.1)
    same = ate(transect.run(FILTER, clean, check=True), clean)
    quality(f"clear day, seed {seed}: change by --check", 100 * abs(same / usual - 1), "%", at_most=1)


def without(clean: Recording, labels: pa.Table) -> Recording:
    """Return a day without the fixes whose rows a table of labels lists."""
    fixes = clean["Gnss/Pose"]
    kept = np.ones(len(fixes), np.bool_)
    kept[labels.column("index").to_numpy()] = False
    streams = tuple(s.take(kept) if s is fixes else s for s in clean)
    return clean.replace(streams=streams)


def bench_slip(folder: Path, seed: int) -> None:
    """Wheels whose rotation is slip by four fifths, for half of the day."""
    clean = etna(folder, seed)
    slipping, _ = inject(clean, "wheel_slip", 1.0, seed, streams=["Platform/MotorEncoders"])
    usual, name = ate(transect.run(FILTER, clean), clean), f"slip, seed {seed}"
    for words, how in (("gate", False), ("gate, --check", True)):
        quality(f"{name}: {words}", ate(transect.run(FILTER, slipping, check=how), clean), "m", peer=usual)


def etna(folder: Path, seed: int) -> Recording:
    """A day with wheels, IMU and RTK."""
    return _day(folder, "etna", "nav", Options(DRIVEN_S, seed, 1.0, NAV))


def ate(run: Run, truth: Recording) -> float:
    """Root mean square of the position error, m, after a shift and a turn about the vertical."""
    poses, true = run["pose"].values, truth["truth/trajectory"]
    found = Trajectory(run["pose"].t_ns, np.stack([each.position for each in poses]))
    pairs = associate(Trajectory(true.t_ns, true.array("x", "y", "z")), found)
    return absolute_error(pairs, "yaw").statistics.rmse


if __name__ == "__main__":
    main()

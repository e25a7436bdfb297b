"""The figures of a run, drawn from the files of its folder; also by a process that waits for the folder."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from transect import formats
from transect.base.processes import claim_process, cores
from transect.draw.figures import Drawing, prepare_drawing, save_figures
from transect.errors import TransectError
from transect.evaluation.figures import DPI, plan_figures
from transect.evaluation.inputs import open_input
from transect.evaluation.result import SUFFIX, load_result, port_of_path
from transect.geometry.ground import map_view
from transect.types import Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = "evaluation"
"""The folder of the figures, below the run's."""
CLOUD_DPI = 130  # of clouds, which have no thin lines
MAX_PROCESSES = 4  # that draw at the same time: a run has about as many figures
EARLY = (
    "concurrent.futures.thread",
    "multiprocessing.popen_fork",
    "transect.draw.clouds",
    "transect.formats.pcd",
)
"""What each forked process would import by itself, when somebody waits already."""
ANSWER = b"drawn\n"
"""What `serve` says of a folder whose figures are all there."""


def draw_run(folder: Path, part: int = 0, parts: int = 1) -> list[Path]:
    """Draw what the files of a run show: its errors, or else its path, and its clouds; return the paths.

    Parameters
    ----------
    part, parts : int
        Draw only every `parts`-th figure, from number `part` on: several processes can share the work.
    """
    return save_figures(islice(plan_run(folder), part, None, parts))


def plan_run(folder: Path) -> Iterator[Drawing]:
    """Yield the figures that `draw_run` draws; none is made before it is asked for."""
    port = port_of_path(folder)
    files = sorted(folder.glob(f"*{SUFFIX}"), key=lambda file: (file.stem not in (port, "run"), file.stem))
    results = [load_result(file) for file in files]
    target = folder / FIGURES
    yield from plan_figures(results, target)
    compared = any("ate_translation" in result.arrays for result in results)
    if (folder / f"{port}.tum").is_file() and not compared:
        yield Drawing(target / "path.png", partial(_path_figure, folder, results[0].estimate), DPI)
    for file in sorted(folder.glob("*.ply")):
        yield Drawing(target / f"{file.stem}.png", partial(_cloud_figure, file), CLOUD_DPI)


def own_trajectory(folder: Path) -> Trajectory | None:
    """Return the poses by which a run is judged, if it wrote any."""
    port = port_of_path(folder)
    try:
        return open_input(f"{folder}:{port}").trajectory if (folder / f"{port}.tum").is_file() else None
    except TransectError:
        return None


def _path_figure(folder: Path, name: str) -> Figure | None:
    """Draw where the run went, where nothing says how good that is."""
    from transect.draw.evaluation import path_figure

    path = own_trajectory(folder)
    if path is None:
        return None
    view = map_view(path.positions, path.orientations, path.frame)
    return path_figure(path.positions, title=name, view=view)


def _cloud_figure(file: Path) -> Figure | None:
    """Draw a cloud from above, if it has enough points to see something."""
    from transect.draw.clouds import MIN_CLOUD_POINTS, cloud_figure

    points = formats.open(file, format="pcd").streams[0][0].payload.points
    return cloud_figure(points, title=file.stem) if len(points) >= MIN_CLOUD_POINTS else None


# Drawing beside the run


def serve() -> None:
    """Draw the folders that standard input names, a line of JSON each, on all cores; answer with a line each.

    What draws is imported before the first folder is named. This process has no threads, so that it can fork
    one for each core.
    """
    claim_process()
    prepare_drawing()
    for module in EARLY:
        import_module(module)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # leaves no half-written file
    for line in sys.stdin:
        drawn = _draw_on_all_cores(Path(json.loads(line)))
        os.write(sys.stdout.fileno(), ANSWER if drawn else b"failed\n")


def _draw_on_all_cores(folder: Path) -> bool:
    """Return whether all figures were drawn."""
    from multiprocessing import get_context

    parts = min(cores(), MAX_PROCESSES)
    process = get_context("fork").Process
    workers = [process(target=draw_run, args=(folder, part, parts)) for part in range(parts)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return not any(worker.exitcode for worker in workers)

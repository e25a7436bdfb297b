"""Options of `eval`, `compare` and `allan`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

RELATIONS = ("ate", "rpe", "segments", "relations", "drift", "nees", "all")

_FIGURE = (
    click.option(
        "--figure", type=click.Path(path_type=Path), metavar="DIR", help="Draw figures into this folder."
    ),
    click.option(
        "--map", "ground", metavar="PATH[:STREAM]", help="A map in the reference's frame, for the figures."
    ),
)

_HOW = (
    click.option(
        "--align", type=click.Choice(["none", "origin", "yaw", "se3", "sim3"]), default="se3",
        show_default=True, help="What is taken out of the estimate first.",
    ),
    click.option(
        "--relation", "relations", type=click.Choice(RELATIONS), multiple=True,
        help="What to compute; may be repeated. By default ate, and rpe where it can be.",
    ),
    click.option(
        "--by", "per", type=click.Choice(["frames", "seconds", "metres"]), default="frames",
        show_default=True, help="Unit of --step.",
    ),
    click.option(
        "--step", type=click.FloatRange(0, min_open=True), default=1.0, show_default=True, metavar="X",
        help="Over which relative errors are made.",
    ),
    click.option(
        "--pairs", type=click.Choice(["nearest", "interpolate", "rows"]), default="nearest",
        show_default=True, help="Which poses belong together.",
    ),
    click.option(
        "--max-diff", type=click.FloatRange(0), metavar="S",
        help="Seconds between stamps that belong together: 0.01, and 0.5 for --relations.",
    ),
    click.option(
        "--least", type=click.FloatRange(0, 1), default=0.5, show_default=True, metavar="X",
        help="Part of the poses that must find a partner.",
    ),
    click.option(
        "--offset", default="0", metavar="S|auto",
        help="Added to the estimate's times; auto finds it from the motion.",
    ),
    click.option(
        "--relations", "relations_file", type=click.Path(path_type=Path), metavar="FILE",
        help="True relative motions: t_i t_j x y z roll pitch yaw.",
    ),
)  # fmt: skip

_FORMAT = (
    click.option(
        "--format", "written_as", type=click.Choice(["table", "latex", "markdown", "csv"]), default="table",
        show_default=True, help="How the table is written.",
    ),
    click.option(
        "--layout", type=click.Choice(["metrics", "sequences", "traverses", "runs"]), default="metrics",
        show_default=True, help="A row an estimate; Rosario's Table 4; AMEDS's Table 6; CDFF's Table 5.",
    ),
)  # fmt: skip


def how_option(function: F) -> F:
    """Add how trajectories are compared."""
    for decorate in reversed(_HOW):
        function = decorate(function)
    return function


def figure_options(function: F) -> F:
    """Add --figure and --map."""
    for decorate in reversed(_FIGURE):
        function = decorate(function)
    return function


def format_options(function: F) -> F:
    """Add --format and --layout."""
    for decorate in reversed(_FORMAT):
        function = decorate(function)
    return function

"""Traverses as rows of Table 6 of document 000, with what was published of them, and what to know first."""

from __future__ import annotations

import math
from typing import Any

from transect.base import plugins
from transect.evaluation.positions.streams import COVERED
from transect.recording import Recording

from .traverse import Traverse

HEADINGS = (
    "traverse",
    "length [m]",
    "height [m]",
    "duration",
    "speed [m/s]",
    "moved [m]",
    "moved for",
    "moving [m/s]",
    "RTK",
    "positions from",
)


def find_published(recording: Recording) -> dict[str, Any] | None:
    """Return what the catalogue of a recording's data set says of its traverse, or None."""
    for name in plugins.names("catalogues"):
        find = getattr(plugins.load("catalogues", name), "find_published", None)
        if find is not None and (found := find(recording)):
            return found
    return None


def remarks_of(traverse: Traverse) -> list[str]:
    """Return what a reader should know of a length before believing it."""
    if traverse.role == "truth":
        return [f"{traverse.stream} is truth, not a measurement"]
    alone = traverse.rtk is not None and traverse.rtk < COVERED and not traverse.velocities
    if alone and traverse.type == "NavFix":
        return ["few RTK fixes and no velocities: the length may be off by a fifth"]
    if traverse.type == "Odometry":
        return [f"{traverse.stream} counts slip as way"]
    return []


def row_of(traverse: Traverse) -> tuple[str, ...]:
    """Return the cells of a traverse, under `HEADINGS`."""
    rtk, covered = traverse.rtk, "yes" if traverse.covered else "no"
    return (
        traverse.name,
        _number(traverse.length_m, 1),
        _number(traverse.height_m, 1),
        _minutes(traverse.duration_s),
        _number(traverse.mean_speed, 2),
        _number(traverse.moving_m, 1),
        _minutes(traverse.moving_s),
        _number(traverse.moving_speed, 2),
        "-" if rtk is None else f"{covered} ({rtk:.0%})",
        traverse.source + (" (2-D)" if traverse.dimensions == 2 else ""),
    )


def published_row(table: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of what `find_published` found, under `HEADINGS`."""
    rtk = table.get("rtk")
    return (
        "  as published",
        _number(table["length_m"], 1),
        _number(table.get("height_m"), 1),
        _minutes(table["duration_s"]),
        "-",
        "-",
        "-",
        # It is not length / duration, so it stands where it probably belongs (see errata).
        _number(table.get("mean_velocity_m_s"), 2),
        "-" if rtk is None else "yes" if rtk else "no",
        table["table"],
    )


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def _minutes(seconds: float) -> str:
    """Return mm:ss, as the paper has it."""
    if math.isnan(seconds):
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:02d}:{rest:02d}"

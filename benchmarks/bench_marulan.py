"""Marulan without files: laser beams a second while driving, and two clear hours of lasers, radar and Nav."""

import sys

from benchmarks import _harness
from transect.datasets.marulan.world.disturbances import CLEAR_HOUR
from transect.recording import Recording
from transect.simulation.day import WorldOptions, iterate_windows, simulate

WINDOW_S, CLEAR_HOURS = 10, 2
RANGE_SENSORS = ("Laser*", "Radar*", "Nav")

_HOURS = f"""
from benchmarks.bench_marulan import recording, walk_through
walk_through(recording({CLEAR_HOURS * 3600}))
"""


def recording(seconds: float, **conditions: str) -> Recording:
    return simulate(
        "marulan", WorldOptions(seconds=seconds, streams=RANGE_SENSORS, conditions=conditions)
    ).recording


def walk_through(day: Recording) -> int:
    """Ask for every row of every stream, window by window; return how many there were."""
    return sum(stream.table.num_rows for window in iterate_windows(day, WINDOW_S) for stream in window)


def beams(day: Recording) -> int:
    return sum(stream.table.num_rows for stream in day.select("Laser*")) * 180


def main() -> None:
    walk_through(recording(1))  # compile
    driven = 20 * 4 * 75 * 180
    for scene in ("open", "houses", "dam"):
        _harness.rate(
            f"laser beams, driving ({scene})", lambda s=scene: beams(recording(20, scene=s)), driven, repeat=2
        )
    for name, conditions, target in (
        ("static, clear", {}, 10.0),
        ("static, a human walking", {"human": "walking"}, None),
        ("driving around houses", {"scene": "houses"}, None),
        ("an ordinary clear hour, static", CLEAR_HOUR, None),
        ("an ordinary clear hour, around houses", {**CLEAR_HOUR, "scene": "houses"}, None),
    ):
        day = recording(60, **conditions)
        _harness.rate(
            f"simulated seconds ({name})", lambda d=day: walk_through(d), 60, target=target, repeat=2
        )
    _harness.memory("two clear hours, window by window", [sys.executable, "-c", _HOURS], target=1e9)


if __name__ == "__main__":
    main()

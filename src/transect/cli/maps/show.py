"""`transect maps show MAP`: what a map is made of, and a picture of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from transect.cli.shared.options import json_option

CELL = 0.05
"""Metres: edge of a cell of the grid."""
BEFORE, AFTER = "odometry off [m]", "corrected off [m]"
"""What errors before and after closing are called."""


@click.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="MAP")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="PNG, SVG or PDF; without, none is drawn.")
@click.option(
    "--cell", type=click.FloatRange(0.005), default=CELL, show_default=True, metavar="M",
    help="Edge of a cell of the occupancy grid that is drawn of planar lasers.",
)  # fmt: skip
@json_option
def command(path: Path, out: Path | None, cell: float, as_json: bool) -> int:
    """Say what a map of places is made of, and draw it.

    MAP is the folder of a run of a SLAM, or its map. Drawn are what was seen, the way that was driven, each
    session in its colour, loops in green, and those that were doubted in red. Where the run kept its odometry
    the way before closing is drawn too, and the true one if the run was judged by a truth. If the run said
    that its result is bad, the first line says so again.
    """
    show_map(path, out, cell, as_json=as_json)
    return 0


def show_map(path: Path, out: Path | None, cell: float = CELL, *, as_json: bool = False) -> dict[str, Any]:
    """Print what a map is made of, and draw it if a file is named; return what was printed, by name."""
    import json

    from transect.algorithms.slam.map_summary import describe_places
    from transect.cli.shared.output import show_table
    from transect.draw.place_maps import draw_map
    from transect.engine.validity import check_run
    from transect.evaluation.closing import find_ways
    from transect.recording.place_maps import digest_of_map, read_map

    places = read_map(path)
    ways = find_ways(path, places)
    checked = check_run(path)
    failures = checked.failures
    facts = {**describe_places(places), "digest": digest_of_map(path)}
    if as_json and failures:
        facts["bad"] = list(failures)
    if as_json and checked.changes:
        facts["changed inputs"] = list(checked.changes)
    for text in () if as_json else failures:
        click.echo(f"BAD: {text}")
    if checked.changes and not as_json:
        click.echo(f"warning: {checked.outdated}", err=True)
    if ways is not None and ways.off is not None:
        facts[BEFORE], facts[AFTER] = (round(off, 3) for off in ways.off)
    if as_json:
        click.echo(json.dumps(facts, indent=2))
    else:
        show_table(("map", str(path)), [(name, str(value)) for name, value in facts.items()])
    if out is not None:
        from transect.draw.figures import save_figure

        save_figure(draw_map(places, cell, ways, failed=bool(failures)), out)
        click.echo(f"wrote {out}", err=as_json)
    return facts

"""`transect maps show MAP`: what a map is made of, and a picture of it."""

from __future__ import annotations

from pathlib import Path

import click

from transect.cli._options import json_option


@click.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="MAP")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="PNG, SVG or PDF; without, none is drawn.")
@click.option(
    "--cell", type=click.FloatRange(0.005), default=0.05, show_default=True, metavar="M",
    help="Edge of a cell of the occupancy grid that is drawn of planar lasers.",
)  # fmt: skip
@json_option
def command(path: Path, out: Path | None, cell: float, as_json: bool) -> int:
    """Say what a map of places is made of, and draw it.

    MAP is the folder of a run of a SLAM, or its map. Drawn are what was seen, the way that was driven, each
    session in its colour, loops in green, and those that were doubted in red.
    """
    import json

    from transect.cli._tables import show_table
    from transect.nodes.slam.backend.showing import describe_places, draw_map
    from transect.recording.place_maps import digest_of_map, read_map

    places = read_map(path)
    facts = {**describe_places(places), "digest": digest_of_map(path)}
    if as_json:
        click.echo(json.dumps(facts, indent=2))
    else:
        show_table(("map", str(path)), [(name, str(value)) for name, value in facts.items()])
    if out is not None:
        from transect.draw.figures import save_figure

        save_figure(draw_map(places, cell), out)
        click.echo(f"wrote {out}", err=as_json)
    return 0

"""`transect maps export MAP -o FILE`: a map of a planar laser as a grid that others read."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="MAP")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), required=True,
    help="NAME.yaml or NAME.png (both are written, as ROS's map_server reads them), or NAME.tif (GeoTIFF).",
)  # fmt: skip
@click.option(
    "--cell",
    type=click.FloatRange(0.005),
    default=0.05,
    show_default=True,
    metavar="M",
    help="Edge of a cell.",
)
def command(path: Path, out: Path, cell: float) -> int:
    """Write the occupancy grid of a map that LaserSlam made.

    A GeoTIFF of a map that satellite fixes anchored is in its coordinate system.
    """
    from transect.algorithms.slam.map_summary import raise_map
    from transect.algorithms.slam.occupancy_grid import occupancy_of
    from transect.base.files import refuse_existing, write_bytes
    from transect.errors import UsageError
    from transect.products.map_server import write_map_server
    from transect.recording.place_maps import read_map

    from ..shared.recordings import warn_of_run

    suffix = out.suffix.lower()
    if suffix not in (".png", ".yaml", ".tif", ".tiff"):
        raise UsageError(f"{out.name}: a map is exported as .yaml with .png, or as .tif", where=str(out))
    places = raise_map(read_map(path, "LaserSlam"))
    warn_of_run(path)
    if suffix in (".png", ".yaml"):
        written = write_map_server(places, out, cell)
    else:
        from transect.formats.geotiff.writing import encode_geotiff

        refuse_existing(out)
        write_bytes(out, encode_geotiff(occupancy_of(places, cell)))
        written = [out]
    click.echo("wrote " + ", ".join(map(str, written)))
    return 0

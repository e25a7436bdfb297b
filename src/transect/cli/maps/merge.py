"""`transect maps merge MAP MAP -o DIR`: two maps of places as one."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("first", type=click.Path(path_type=Path), metavar="MAP")
@click.argument("second", type=click.Path(path_type=Path), metavar="MAP")
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="A new folder for the map.")
def command(first: Path, second: Path, out: Path) -> int:
    """Bring two maps together by the places that both have: of two days, or of two robots.

    Each is a map of places, or its run; both of LaserSlam, of LidarSlam, or of VisualSlamStereo. The new map
    is in the frame of the first one. Exits with 1 if no place was known again.
    """
    import json

    from transect.algorithms.slam.map_merging import count_shared, merge_maps
    from transect.base.files import refuse_existing, write_text
    from transect.recording.place_maps import FOLDER, MERGED, read_map, write_map

    from ..shared.recordings import warn_of_run

    refuse_existing(out)
    one, other = read_map(first), read_map(second)
    failures = warn_of_run(first, second)
    merged = merge_maps(one, other)
    write_map(merged, out / FOLDER)
    if failures:  # those who use the merged map are told, too
        write_text(out / MERGED, json.dumps({"failures": failures}, indent=1) + "\n")
    shared = count_shared(merged, len(one))
    click.echo(f"{len(one)} and {len(other)} places became {len(merged)}; {shared} loops join the two")
    click.echo(f"wrote {out}")
    return 0

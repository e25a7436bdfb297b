"""Occupancy grids in the format of ROS's map_server: an image, and a YAML file with its scale and origin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from transect.algorithms.slam.occupancy_grid import (
    FREE_PROBABILITY,
    OCCUPIED_PROBABILITY,
    gray_image,
    occupancy_grid,
)
from transect.base.files import refuse_existing, write_bytes, write_text
from transect.formats.shared.images import encode_image
from transect.types import Image
from transect.types.places import PlaceMap


def write_map_server(places: PlaceMap, path: Path, cell: float) -> list[Path]:
    """Write NAME.png and NAME.yaml, as ROS's map_server reads them; return both."""
    grid = occupancy_grid(replace(places, anchor=None), cell)
    a, _, left, _, _, top = grid.transform
    rows = grid.layers["occupancy"].shape[0]
    image, text = path.with_suffix(".png"), path.with_suffix(".yaml")
    for each in (image, text):
        refuse_existing(each)
    write_bytes(image, encode_image(Image(gray_image(grid)), ".png"))
    write_text(
        text,
        f"image: {image.name}\nmode: trinary\nresolution: {a:g}\n"
        f"origin: [{left:.6g}, {top - rows * a:.6g}, 0.0]\nnegate: 0\n"
        f"occupied_thresh: {OCCUPIED_PROBABILITY}\nfree_thresh: {FREE_PROBABILITY}\n",
    )
    return [image, text]

"""The form in which a product is delivered: file type, frame, unit and resolution."""

from __future__ import annotations

from dataclasses import dataclass

from transect.base.units import unit_of
from transect.errors import UsageError

METRES = "m"


@dataclass(frozen=True)
class ProductForm:
    """File type, frame, unit and resolution; "" and None leave the product's own."""

    # File type: poses as `tum`, `csv` or `kitti`; clouds as `ply`, `pcd` or `csv`; maps as `tif` or `csv`
    format: str = ""
    frame: str = ""  # of positions
    unit: str = METRES  # of lengths in a `csv`; other files are in metres
    resolution: float | None = None  # m, cell size of a map or point distance of a cloud; only coarser

    def __post_init__(self) -> None:
        if unit_of(self.unit).si != METRES:
            raise UsageError(f"{self.unit!r} is not a unit of length", hint="m, cm, mm, km, ft")
        if self.resolution is not None and self.resolution <= 0:
            raise UsageError(f"a resolution of {self.resolution:g} m is not possible")

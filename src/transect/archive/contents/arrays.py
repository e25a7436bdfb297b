"""Images and other arrays, as raw numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from transect.errors import UsageError

from ..labels.objects import Array, DataObject
from .columns import Column
from .tables import number_type, store

AXES = {2: ("Line", "Sample"), 3: ("Band", "Line", "Sample")}
KINDS = {2: "Array_2D_Image", 3: "Array_3D_Image"}


@dataclass(frozen=True)
class ImageArray:
    """An image: (h, w), or (h, w, bands), which is stored band after band."""

    data: NDArray[Any]
    unit: str = ""
    description: str = ""
    identifier: str = "image"
    # (h, w) pixels that were measured; others of floats are stored as a special constant
    valid: NDArray[np.bool_] | None = None

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Write the pixels; return the array."""
        pixels = np.asarray(self.data)
        if pixels.ndim not in AXES:
            raise UsageError(f"an image of {pixels.ndim} axes cannot be archived", hint="two or three axes")
        if pixels.ndim == 3:
            pixels = np.moveaxis(pixels, -1, 0)
        if self.valid is not None and pixels.dtype.kind == "f":
            pixels = np.where(self.valid, pixels, np.nan).astype(pixels.dtype)
        offset = out.tell()
        pixels, constants = store(Column(self.identifier, pixels))
        out.write(np.ascontiguousarray(pixels).view(np.uint8).data)
        axes = tuple(zip(AXES[pixels.ndim], pixels.shape, strict=True))
        kind, about = KINDS[pixels.ndim], (self.unit, self.identifier, self.description, constants)
        return [Array(kind, offset, number_type(pixels.dtype) or "", axes, *about)]

"""Pictures to look at: a few images of each camera, as PNG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from transect.recording import Stream

from ..bundle import DataFile, Product
from ..contents.files import Picture
from ..identifiers import Lid
from ..labels.areas import Reference
from .streams import Later, load


def browse_products(
    stream: Stream, products: Sequence[Product], collection: Lid, count: int, every: int
) -> Iterator[Product]:
    """Give pictures of some of a stream's images, evenly spread; each refers to the product that it shows."""
    shown = [each for each in products if each.kind == "Product_Observational"]
    chosen = np.unique(np.linspace(0, len(shown) - 1, min(count, len(shown))).round().astype(int))
    for number in chosen.tolist():
        product = shown[number]
        name = product.lid.name
        content = Later(partial(_picture, stream, number * every))
        context = replace(product.context, levels=(), disciplines=())
        yield Product(
            collection.child(name), product.title, (DataFile(f"{name}.png", content),), "Product_Browse",
            context, (Reference(product.lid, "browse_to_data"),),
        )  # fmt: skip


def _picture(stream: Stream, row: int) -> Picture:
    """Return one image as PNG of 8 bits; other numbers are stretched to that."""
    from transect.formats.shared.images import encode_image

    image = load(stream, row)
    data = image.data
    if data.ndim == 3 and data.shape[2] not in (1, 3, 4):
        data = data[..., 0]
    if data.dtype != np.uint8:
        finite = data[np.isfinite(data)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        scaled = (np.nan_to_num(data, nan=low) - low) / max(high - low, 1e-12) * 255.0
        data = scaled.clip(0, 255).astype(np.uint8)
    mode = image.mode if data.ndim == 3 else "gray"
    return Picture(
        encode_image(replace(image, data=data, mode=mode), ".png"), "PNG", f"{stream.name}, to look at"
    )

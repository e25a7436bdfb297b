"""Products as the rows of a table that a person reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.tables import size_text

if TYPE_CHECKING:
    from .product import Product

HEADINGS = ("id", "kind", "name", "robot", "time", "place", "score", "size", "format")
SHORT = 12
"""Digits of an id that are shown; six are enough to name a product."""


def row_of(product: Product) -> tuple[str, ...]:
    """Return the cells of a product, under `HEADINGS`."""
    return (
        product.id[:SHORT], product.kind, product.name, product.robot, when_text(product),
        where_text(product),
        "" if product.score is None else f"{product.score:.2f}", size_text(product.payload.size),
        product.payload.format,
    )  # fmt: skip


def when_text(product: Product) -> str:
    """Return when a product is about: its start, and how long it lasts."""
    from transect.base.clocks import iso_from_ns, text_from_ns

    if product.t0_ns is None or product.t1_ns is None:
        return ""
    utc = product.clock == "utc"
    begin = iso_from_ns(product.t0_ns, 0) if utc else text_from_ns(product.t0_ns, product.clock)
    lasted = (product.t1_ns - product.t0_ns) / 1e9
    return f"{begin} + {lasted:.4g} s" if lasted and product.clock != "index" else begin


def where_text(product: Product) -> str:
    """Return where a product is: its coordinate reference system, and two corners."""
    if product.place is None:
        return ""
    box = product.place.box
    return f"{product.place.crs} {box.x0:.6g},{box.y0:.6g} {box.x1:.6g},{box.y1:.6g}"

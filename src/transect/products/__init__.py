"""Stored results: found by time and position, with full provenance, and reproducible.

`open_store` opens a GeoPackage, or a PostGIS database, as a `ProductStore`. Nothing here imports numpy or
pyarrow until a product is drawn, exported or reproduced.
"""

from __future__ import annotations

from pathlib import Path

from .place import Area, Place, Site
from .product import Payload, Product
from .store import DeletedError, Lineage, ProductQuery, ProductStore, RetentionPolicy, StoreError, StoreEvent

__all__ = [
    "Area",
    "DeletedError",
    "Lineage",
    "Payload",
    "Place",
    "Product",
    "ProductQuery",
    "ProductStore",
    "RetentionPolicy",
    "Site",
    "StoreError",
    "StoreEvent",
    "open_store",
]


def open_store(address: str | Path, create: bool = True) -> ProductStore:
    """Open a store of products; only the module of its kind of store is imported.

    Parameters
    ----------
    address : str or Path
        A GeoPackage (`mission.gpkg`), or `postgresql://...` for a PostGIS database.
    create : bool
        Make it if it is not there.
    """
    if str(address).startswith(("postgresql://", "postgres://")):
        from .postgis import PostgisStore

        return PostgisStore(str(address), create)
    from .geopackage import GeoPackageStore

    return GeoPackageStore(address, create)

"""Opening a store by where it is."""

from __future__ import annotations

from pathlib import Path

from .store import ProductStore


def open_store(address: str | Path, create: bool = True) -> ProductStore:
    """Open a store of products.

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

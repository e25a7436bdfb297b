"""Results that are kept: findable by time and place, with what they were made from, and made again on demand.

`open_store` opens a GeoPackage, or a PostGIS database, as a `ProductStore`. Nothing here imports numpy or
pyarrow until a product is drawn, exported or made again.
"""

from .place import Area, Place, Site
from .product import Payload, Product
from .store import DeletedError, Event, Lineage, Policy, ProductStore, StoreError, Wanted, open_store

__all__ = [
    "Area",
    "DeletedError",
    "Event",
    "Lineage",
    "Payload",
    "Place",
    "Policy",
    "Product",
    "ProductStore",
    "Site",
    "StoreError",
    "Wanted",
    "open_store",
]

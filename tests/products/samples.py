"""Small products for the tests."""

from typing import Any

from transect.products import Area, Payload, Place, Product, Site
from transect.types.provenance import Provenance, SourceFile

T0_NS = 1_700_000_000_000_000_000
NS_PER_S = 1_000_000_000
MARULAN = Site("marulan", 149.9, -34.6)


def make(number: int = 0, content: bytes | None = None, **changes: Any) -> tuple[Product, bytes]:
    """Return a DEM of 10 m x 10 m, `number` times 20 m to the east and `number` minutes later."""
    data = content if content is not None else f"heights {number}".encode()
    x = 20.0 * number
    said: dict[str, Any] = {
        "kind": "DEM",
        "payload": Payload.of(data, "tif"),
        "name": "dem",
        "robot": "argo",
        "t0_ns": T0_NS + 60 * number * NS_PER_S,
        "t1_ns": T0_NS + (60 * number + 30) * NS_PER_S,
        "place": Place.of_box(Area(x, 0.0, x + 10.0, 10.0, MARULAN.crs), MARULAN),
        "quality": {"score": 0.5, "rmse_m": 0.02},
        "provenance": Provenance((SourceFile("day/Laser.txt", 12, "ab" * 32),), "transect 0"),
    }
    return Product(**(said | changes)), data


def made_from(*parents: str, **changes: Any) -> tuple[Product, bytes]:
    """Return a product with parents."""
    return make(provenance=Provenance(tool="transect 0", parents=parents), **changes)

"""Stores of products: how fast they find and keep, and what is left of them after kills.

The peer of the GeoPackage is GDAL (pyogrio, where it is installed) reading the same box of the same file.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from pathlib import Path

from tests.products.servers import running_server
from tests.products.test_geopackage import check_after_kill, kill_at_random

from benchmarks._harness import measured, quality
from transect.products import Area, Payload, Place, Product, ProductQuery, ProductStore, open_store

PRODUCT_COUNT, BATCH_SIZE, QUERY_COUNT, KILL_COUNT = 200_000, 1000, 200, 200
FIELD_M, DAYS_S = 2000.0, 30 * 86_400
START_NS, NS_PER_S = 1_700_000_000_000_000_000, 1_000_000_000
KINDS = ("DEM", "Trajectory", "PointCloud", "Image")


def make(rng: random.Random, number: int) -> tuple[Product, bytes]:
    """Return a product of about 2 kB somewhere in a field of 2 km, some time in a month."""
    data = rng.randbytes(2000)
    x, y, t_ns = rng.uniform(0, FIELD_M), rng.uniform(0, FIELD_M), START_NS + rng.randrange(DAYS_S) * NS_PER_S
    box = Area(x, y, x + rng.uniform(1, 20), y + rng.uniform(1, 20), "site:field")
    product = Product(
        KINDS[number % 4], Payload.of(data, "tif"), robot=f"robot{number % 3}",
        t0_ns=t_ns, t1_ns=t_ns + NS_PER_S,
        place=Place.of_box(box), quality={"score": rng.random()},
    )  # fmt: skip
    return product, data


def fill(store: ProductStore, count: int) -> float:
    """Put products in batches and return the seconds that the store took."""
    rng, spent = random.Random(1), 0.0
    for start in range(0, count, BATCH_SIZE):
        items = [make(rng, number) for number in range(start, min(start + BATCH_SIZE, count))]
        for product, _ in items:
            assert product.id  # hashing the document is the maker's work, as much as making it
        began = time.perf_counter()
        store.put_many(items)
        spent += time.perf_counter() - began
    return spent


def ask(store: ProductStore) -> list[float]:
    """Return the seconds of queries for a box of 50 m, a day and a kind."""
    rng, times = random.Random(2), []
    for _ in range(QUERY_COUNT):
        x, y, t_ns = (
            rng.uniform(0, FIELD_M),
            rng.uniform(0, FIELD_M),
            START_NS + rng.randrange(DAYS_S) * NS_PER_S,
        )
        area = Area(x, y, x + 50, y + 50, "site:field")
        wanted = ProductQuery(kind="DEM", area=area, time=(t_ns, t_ns + 86_400 * NS_PER_S))
        began = time.perf_counter()
        store.find(wanted)
        times.append(time.perf_counter() - began)
    return times


def measure(name: str, store: ProductStore, limit_s: float) -> None:
    """Measure one store that is empty."""
    spent = fill(store, PRODUCT_COUNT)
    quality(f"{name}: inserts in batches of {BATCH_SIZE}", PRODUCT_COUNT / spent, "1/s", at_least=3000)
    times = sorted(ask(store))
    measured(f"{name}: box + time + kind, median", lambda: statistics.median(times), limit_s, repeat=1)
    measured(f"{name}: box + time + kind, 95 %", lambda: times[int(0.95 * len(times))], limit_s, repeat=1)


def ask_gdal(path: Path) -> None:
    """Print how long GDAL takes for such boxes, without time and kind."""
    try:
        import pyogrio
    except ImportError:
        print("GDAL: pyogrio is not installed")
        return
    rng, times = random.Random(2), list[float]()
    for _ in range(20):
        x, y = rng.uniform(0, FIELD_M), rng.uniform(0, FIELD_M)
        began = time.perf_counter()
        pyogrio.raw.read(path, layer="footprints_site_field", bbox=(x, y, x + 50, y + 50))
        times.append(time.perf_counter() - began)
    measured("GDAL: the same boxes of the same file, median", lambda: statistics.median(times), repeat=1)


def kill_many(folder: Path, kills: int) -> None:
    """Kill a process that puts and prunes at random moments; nothing may be lost or half there."""
    kept: set[str] = set()
    leftovers = 0
    for seed in range(kills):
        kept |= kill_at_random(folder / "killed.gpkg", seed)
        leftovers += check_after_kill(folder / "killed.gpkg", kept)
    quality(f"kill -9, {kills} times: acknowledged and not lost", len(kept), "products")
    quality(f"kill -9, {kills} times: leftovers, all swept", leftovers, "files")


def main() -> None:
    """Measure both stores, and kill one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.gpkg"
        with open_store(path) as store:
            measure("GeoPackage", store, 1e-3)
        ask_gdal(path)
        with running_server() as address, open_store(address.format("template1")) as store:
            measure("PostGIS", store, 5e-3)
        kill_many(Path(folder), KILL_COUNT)


if __name__ == "__main__":
    main()

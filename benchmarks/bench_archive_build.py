"""Building PDS4 bundles: 10,000 products, labels and checksums; and again, nothing changed."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks._harness import duration
from transect.archive.builder import build_bundle
from transect.archive.bundle import Bundle, BundleProduct, Collection, ProductFile
from transect.archive.contents.files import ImageArray
from transect.archive.contents.tables import BinaryTable, DelimitedTable, TableColumn, time_column
from transect.archive.identifiers import Lid
from transect.archive.labels.areas import LabelSubject, ProductContext
from transect.archive.labels.disciplines import FrameDefinition, display, geometry, processing
from transect.types.provenance import Provenance

PRODUCT_COUNT = 10_000
BUNDLE = Lid("urn:nasa:pds:large")


def make_bundle(count: int) -> Bundle:
    """Return a bundle of tables of 58 fields, images and clouds, in turn."""
    rng = np.random.default_rng(1)
    data = BUNDLE.child("data_raw")
    times = 1_650_000_000_000_000_000 + np.arange(50) * 20_000_000
    columns = [TableColumn(f"f{number}", rng.normal(size=50), "m", "A number") for number in range(57)]
    table = DelimitedTable([time_column(times), *columns])
    image = ImageArray(rng.integers(0, 255, (48, 64, 3), np.uint8))
    cloud = BinaryTable([TableColumn(name, rng.normal(size=1000).astype("f4"), "m") for name in "xyz"])
    contents = ((table, ".csv"), (image, ".img"), (cloud, ".dat"))
    lineage = processing(Provenance(tool="transect 0", format="ameds"), [BUNDLE.child("miscellaneous")])
    place = geometry([FrameDefinition("cam", "body", (0, 0, 1), (0, 0, 0, 1))])
    context = ProductContext(
        ("2022-04-15T00:00:00Z", "2022-04-15T00:00:01Z"),
        ("Raw",),
        investigations=(LabelSubject("Camp", "Field Campaign", BUNDLE.child("context")),),
        system=(LabelSubject("rover", "Host", BUNDLE.child("context")),),
        targets=(LabelSubject("Earth", "Planet", Lid("urn:nasa:pds:context:target:planet.earth")),),
        disciplines=tuple(each for each in (lineage, place) if each),
    )
    shown = ProductContext(**{**vars(context), "disciplines": (*context.disciplines, display(True))})
    products = [
        BundleProduct(
            data.child(f"p{number:05d}"), "A product", (ProductFile(f"p{number:05d}{suffix}", content),),
            context=shown if suffix == ".img" else context, folder=f"part_{number // 1000}",
        )
        for number in range(count)
        for content, suffix in [contents[number % 3]]
    ]  # fmt: skip
    collection = Collection(data, "Data", "Data", products)
    return Bundle(BUNDLE, "Large", (collection,), "2024-05-01T00:00:00Z", readme="Ten thousand products.")


def main() -> None:
    bundle = make_bundle(PRODUCT_COUNT)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "bundle"
        duration("build a bundle of 10,000 products", lambda: build_bundle(bundle, target), 120, 1)
        duration("build it again, nothing changed", lambda: build_bundle(bundle, target), 120, 1)


if __name__ == "__main__":
    main()

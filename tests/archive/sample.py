"""A small bundle with a product of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.archive.bundle import Bundle, BundleProduct, Collection, ProductDocument, ProductFile
from transect.archive.contents.files import CopiedFile, EncodedPicture, ImageArray, TextLines
from transect.archive.contents.tables import (
    BinaryTable,
    CharacterTable,
    DelimitedTable,
    TableColumn,
    time_column,
)
from transect.archive.identifiers import Lid
from transect.archive.labels.areas import CitationInformation, LabelReference, LabelSubject, ProductContext
from transect.archive.xml import group, leaf

BUNDLE = Lid("urn:nasa:pds:sample")
EARTH = Lid("urn:nasa:pds:context:target:planet.earth")
CREATED = "2024-05-01T12:00:00Z"
X = np.array([1.0, np.nan, np.inf, 1e-7, -99999.3])
T_NS = np.arange(5) * 1_234_567_891


def sample_context() -> ProductContext:
    place = BUNDLE.child("context")
    return ProductContext(
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:05.000001Z"),
        ("Raw",),
        investigations=(LabelSubject("Camp", "Field Campaign", place.child("investigation.camp")),),
        system=(LabelSubject("rover", "Host", place.child("host.rover")),),
        targets=(LabelSubject("Earth", "Planet", EARTH),),
    )


def sample_table(x: Any = X) -> DelimitedTable:
    return DelimitedTable(
        [
            time_column(T_NS),
            TableColumn("t_ns", T_NS, "ns"),
            TableColumn("x", x, "m", "Position"),
            TableColumn("beams", np.arange(15.0).reshape(5, 3), "m"),
            TableColumn("note", ["a,b", 'q"x', "ü", "", "two\nlines"]),
            TableColumn("ok", np.array([True, False, True, True, True])),
        ]
    )


def sample_products(table: DelimitedTable, title: str) -> list[BundleProduct]:
    data, context = BUNDLE.child("data_raw"), sample_context()
    cloud = BinaryTable([TableColumn("x", X.astype("f4"), "m"), TableColumn("rgb", np.eye(5, 3, dtype="u1"))])
    chars = CharacterTable([TableColumn("x", X, "m"), TableColumn("word", ["a", "bb", "ccc", "", "e"])])
    contents = {"table.csv": table, "cloud.dat": cloud, "chars.tab": chars}
    images = {"colour": np.zeros((4, 5, 3), "u1"), "depth": X.astype("f4").reshape(1, 5)}
    return [
        *(
            BundleProduct(
                data.child(name.split(".", 1)[0]), title, (ProductFile(name, content),), context=context
            )
            for name, content in contents.items()
        ),
        *(
            BundleProduct(
                data.child(name), name, (ProductFile(f"{name}.img", ImageArray(pixels)),), context=context
            )
            for name, pixels in images.items()
        ),
    ]


def sample_bundle(
    paper: Any, table: DelimitedTable | None = None, title: str = "Sample", **said: Any
) -> Bundle:
    import cv2

    misc, browse, texts = (BUNDLE.child(name) for name in ("miscellaneous", "browse", "document"))
    places = BUNDLE.child("context")
    png = cv2.imencode(".png", np.zeros((4, 4), "u1"))[1].tobytes()
    notes = BundleProduct(
        misc.child("notes"), "Notes", (ProductFile("notes.txt", TextLines("one\ntwo")),), "Product_Ancillary"
    )
    picture = BundleProduct(
        browse.child("picture"), "Picture", (ProductFile("picture.png", EncodedPicture(png, "PNG")),),
        "Product_Browse",
        references=(LabelReference(BUNDLE.child("data_raw").child("colour"), "browse_to_data"),),
    )  # fmt: skip
    document = BundleProduct(
        texts.child("paper"), "Paper", (ProductFile("paper.pdf", CopiedFile(paper)),), "Product_Document",
        document=ProductDocument("A paper", ("PDF/A",), "2024-01-01", "Doe, Jo; A University"),
    )  # fmt: skip
    camp = group(
        "Investigation", leaf("name", "Camp"), leaf("type", "Field Campaign"),
        leaf("start_date", "2024-01-01"), leaf("stop_date", "2024-01-02"), leaf("description", "Five days"),
    )  # fmt: skip
    host = group(
        "Instrument_Host", leaf("name", "rover"), leaf("type", "Rover"), leaf("description", "Six wheels")
    )
    local = [
        BundleProduct(places.child("investigation.camp"), "Camp", kind="Product_Context", subject=camp),
        BundleProduct(places.child("host.rover"), "Rover", kind="Product_Context", subject=host),
    ]
    collections = (
        Collection(
            BUNDLE.child("data_raw"), "Data", "Raw data", sample_products(table or sample_table(), title)
        ),
        Collection(misc, "Miscellaneous", "Notes", [notes]),
        Collection(browse, "Browse", "Pictures", [picture]),
        Collection(texts, "Document", "Papers", [document]),
        Collection(places, "Context", "What it is of", local, (EARTH,)),
    )
    citation = CitationInformation("A sample", 2024, "Doe, Jo", keywords=("rover",))
    said = {"created": CREATED, "readme": "What this is.\nAnd how to read it.", "citation": citation, **said}
    return Bundle(BUNDLE, "Sample bundle", collections, description="A product of every kind", **said)

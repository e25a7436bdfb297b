"""A small bundle with a product of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.archive.bundle import Bundle, Collection, DataFile, Document, Product
from transect.archive.contents.arrays import ImageArray
from transect.archive.contents.columns import Column, time_column
from transect.archive.contents.files import CopiedFile, Picture, TextLines
from transect.archive.contents.tables import BinaryTable, CharacterTable, DelimitedTable
from transect.archive.identifiers import Lid
from transect.archive.labels.areas import Citation, Context, Reference, Subject
from transect.archive.xml import group, leaf

BUNDLE = Lid("urn:nasa:pds:sample")
EARTH = Lid("urn:nasa:pds:context:target:planet.earth")
CREATED = "2024-05-01T12:00:00Z"
X = np.array([1.0, np.nan, np.inf, 1e-7, -99999.3])
T_NS = np.arange(5) * 1_234_567_891


def sample_context() -> Context:
    place = BUNDLE.child("context")
    return Context(
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:05.000001Z"),
        ("Raw",),
        investigations=(Subject("Camp", "Field Campaign", place.child("investigation.camp")),),
        system=(Subject("rover", "Host", place.child("host.rover")),),
        targets=(Subject("Earth", "Planet", EARTH),),
    )


def sample_table(x: Any = X) -> DelimitedTable:
    return DelimitedTable(
        [
            time_column(T_NS),
            Column("t_ns", T_NS, "ns"),
            Column("x", x, "m", "Position"),
            Column("beams", np.arange(15.0).reshape(5, 3), "m"),
            Column("note", ["a,b", 'q"x', "ü", "", "two\nlines"]),
            Column("ok", np.array([True, False, True, True, True])),
        ]
    )


def sample_products(table: DelimitedTable, title: str) -> list[Product]:
    data, context = BUNDLE.child("data_raw"), sample_context()
    cloud = BinaryTable([Column("x", X.astype("f4"), "m"), Column("rgb", np.eye(5, 3, dtype="u1"))])
    chars = CharacterTable([Column("x", X, "m"), Column("word", ["a", "bb", "ccc", "", "e"])])
    contents = {"table.csv": table, "cloud.dat": cloud, "chars.tab": chars}
    images = {"colour": np.zeros((4, 5, 3), "u1"), "depth": X.astype("f4").reshape(1, 5)}
    return [
        *(
            Product(data.child(name.split(".", 1)[0]), title, (DataFile(name, content),), context=context)
            for name, content in contents.items()
        ),
        *(
            Product(data.child(name), name, (DataFile(f"{name}.img", ImageArray(pixels)),), context=context)
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
    notes = Product(
        misc.child("notes"), "Notes", (DataFile("notes.txt", TextLines("one\ntwo")),), "Product_Ancillary"
    )
    picture = Product(
        browse.child("picture"), "Picture", (DataFile("picture.png", Picture(png, "PNG")),), "Product_Browse",
        references=(Reference(BUNDLE.child("data_raw").child("colour"), "browse_to_data"),),
    )  # fmt: skip
    document = Product(
        texts.child("paper"), "Paper", (DataFile("paper.pdf", CopiedFile(paper)),), "Product_Document",
        document=Document("A paper", ("PDF/A",), "2024-01-01", "Doe, Jo; A University"),
    )  # fmt: skip
    camp = group(
        "Investigation", leaf("name", "Camp"), leaf("type", "Field Campaign"),
        leaf("start_date", "2024-01-01"), leaf("stop_date", "2024-01-02"), leaf("description", "Five days"),
    )  # fmt: skip
    host = group(
        "Instrument_Host", leaf("name", "rover"), leaf("type", "Rover"), leaf("description", "Six wheels")
    )
    local = [
        Product(places.child("investigation.camp"), "Camp", kind="Product_Context", subject=camp),
        Product(places.child("host.rover"), "Rover", kind="Product_Context", subject=host),
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
    citation = Citation("A sample", 2024, "Doe, Jo", keywords=("rover",))
    said = {"created": CREATED, "readme": "What this is.\nAnd how to read it.", "citation": citation, **said}
    return Bundle(BUNDLE, "Sample bundle", collections, description="A product of every kind", **said)

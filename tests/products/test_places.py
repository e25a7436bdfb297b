"""Places and products that cannot be, and where the results of runs lie."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.products.conftest import NewStore
from tests.products.samples import MARULAN, NS_PER_S, T0_NS, made_from, make

from transect.errors import ParseError, UnsupportedError, UsageError
from transect.formats.geotiff import encode_geotiff
from transect.products import (
    Area,
    Payload,
    Place,
    Product,
    ProductQuery,
    ProductStore,
    RetentionPolicy,
    Site,
    StoreError,
    open_store,
)
from transect.products.export import map_figure
from transect.products.extents import extent_of_file
from transect.products.place import MARS, box_of_blob
from transect.products.run_products import stream_of
from transect.types import GridMap
from transect.types.provenance import Provenance

WGS84 = "EPSG:4326"


@pytest.mark.parametrize(
    ("make_place", "why"),
    [
        (lambda: Site(""), "needs a name"),
        (lambda: Site("x", longitude=1.0), "only one coordinate"),
        (lambda: Site("x", 1.0, 2.0, body="Pluto"), "is not a known body"),
        (lambda: Area(1.0, 0.0, 0.0, 1.0), "the area is empty"),
        (lambda: Area(0.0, 0.0, 1.0, 1.0, "EPSG:1"), "not a known coordinate system"),
        (lambda: Place("Circle", ((0.0, 0.0),)), "is not a geometry"),  # type: ignore[arg-type]
        (lambda: Place("Point", ((0.0, 0.0), (1.0, 1.0))), "cannot have 2 points"),
        (lambda: Place("LineString", ((0.0, 0.0),)), "cannot have 1 points"),
        (lambda: Place("Polygon", ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))), "end where it begins"),
        (lambda: Place("Point", ((math.nan, 0.0),)), "are not finite"),
    ],
)
def test_a_place_that_cannot_be_is_refused(make_place: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        make_place()


@pytest.mark.parametrize("blob", [b"", b"GP", b"XX" + bytes(50), b"GP\0\0" + bytes(50)])
def test_a_geometry_without_a_box_is_refused(blob: bytes) -> None:
    with pytest.raises(ParseError, match="has no box"):
        box_of_blob(blob)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"payload": ("ab" * 32, -1, "tif")}, "-1 bytes"),
        ({"payload": ("ab" * 31, 1, "tif")}, "64 hexadecimal"),
        ({"quality": {"rmse_m": math.nan}}, "is no number"),
    ],
)
def test_a_product_that_cannot_be_is_refused(change: dict[str, Any], why: str) -> None:
    payload = change.pop("payload", ("ab" * 32, 1, "tif"))
    with pytest.raises(UsageError, match=why):
        Product("DEM", Payload(*payload), **change)


def test_parameters_that_json_cannot_hold_are_refused() -> None:
    product = make(provenance=Provenance(parameters={"when": {1, 2}}))[0]
    with pytest.raises(UsageError, match="what JSON cannot hold"):
        assert product.id


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "DEM"}', "null"])
def test_a_document_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="not the document of a product"):
        Product.from_document(text)


def test_a_notebook_shows_what_a_product_says() -> None:
    page = make()[0]._repr_html_()
    assert [word in page for word in ("DEM", "0.50", "rmse_m", "0.02")] == [True] * 4


# Where files lie -------------------------------------------------------------------


def write_map(path: Path, crs: str, origin: tuple[float, float], cell: float) -> Path:
    """Write a map of 10 x 20 cells from an origin to the east and south."""
    grid = GridMap({"elevation": np.ones((10, 20))}, (cell, 0.0, origin[0], 0.0, -cell, origin[1]), crs=crs)
    path.write_bytes(bytes(encode_geotiff(grid)))
    return path


def test_a_map_lies_where_its_coordinate_system_says(tmp_path: Path) -> None:
    site = Site("field")
    degrees = extent_of_file(write_map(tmp_path / "a.tif", WGS84, (11.0, 48.0), 0.001), site).place
    assert degrees is not None
    assert degrees.crs == WGS84
    box = degrees.box
    assert (box.x0, box.y0, box.x1, box.y1) == pytest.approx((11.0, 47.99, 11.02, 48.0), abs=1e-9)
    # 500 km east is the central meridian of a zone: 9 degrees in zone 32.
    utm = extent_of_file(
        write_map(tmp_path / "b.tif", "EPSG:32632", (500_000.0, 5_300_000.0), 1.0), site
    ).place
    assert utm is not None
    assert utm.crs == WGS84
    assert utm.box.x0 == pytest.approx(9.0, abs=1e-6)
    assert 47.8 < utm.box.y0 < 47.9
    # Lambert-93 has its central meridian, 3 degrees, at 700 km east, and its origin, 46.5, at 6600 km north.
    lambert = extent_of_file(
        write_map(tmp_path / "c.tif", "EPSG:2154", (700_000.0, 6_600_000.0), 1.0), site
    ).place
    assert lambert is not None
    assert (lambert.box.x0, lambert.box.y1) == pytest.approx((3.0, 46.5), abs=1e-6)
    assert (
        extent_of_file(write_map(tmp_path / "d.tif", "IAU_2015:30100", (0.0, 0.0), 0.001), site).place is None
    )
    own = extent_of_file(write_map(tmp_path / "d.tif", "", (0.0, 0.0), 1.0), site).place
    assert own is not None
    assert own.crs == "site:field"


def test_a_cloud_without_points_and_an_empty_trajectory_lie_nowhere(tmp_path: Path) -> None:
    head = "VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\n"
    head += "WIDTH 2\nHEIGHT 1\nPOINTS 2\nDATA ascii\n"
    cloud = tmp_path / "cloud.pcd"
    cloud.write_text(head + "nan nan nan\nnan nan nan\n")
    assert extent_of_file(cloud, Site("field")).place is None
    cloud.write_text(head + "1 2 3\n4 6 3\n")
    found = extent_of_file(cloud, Site("field")).place
    assert found is not None
    assert (found.box.x0, found.box.y1) == (1.0, 6.0)
    empty = tmp_path / "pose.tum"
    empty.write_text("")
    assert extent_of_file(empty, Site("field")).place is None


def test_only_poses_and_arrays_can_be_fed_to_a_run() -> None:
    product, content = make()
    with pytest.raises(UnsupportedError, match="cannot be fed to a run"):
        stream_of(product, content, "dem")


# Pictures -------------------------------------------------------------------


def test_what_lies_on_earth_is_drawn_in_metres(tmp_path: Path) -> None:
    """A track of one hundredth of a degree to the north is 1.11 km long."""
    track = Place("LineString", ((11.0, 48.0), (11.0, 48.01)))
    with open_store(tmp_path / "a.gpkg") as store:
        store.put(*make(0, kind="Trajectory", name="drive", place=track))
        figure = map_figure(store, store.find())
    axes = figure.axes[0]
    [line] = [line for line in axes.lines if len(line.get_xdata()) == 2]
    assert np.ptp(np.asarray(line.get_ydata())) == pytest.approx(1111.9, abs=2.0)
    assert any(
        "11.000000 E" in text.get_text()
        for text in [axes.title, *figure.texts, *axes.texts, axes.xaxis.label]
    )


def test_what_lies_on_earth_is_brought_to_the_site_that_is_drawn(tmp_path: Path) -> None:
    """A site with an origin, and a track in longitude and latitude beside it."""
    assert MARULAN.origin is not None
    longitude, latitude = MARULAN.origin
    track = Place("LineString", ((longitude, latitude), (longitude, latitude + 0.001)))
    with open_store(tmp_path / "a.gpkg") as store:
        for number in range(2):
            line = Place("LineString", ((0.0, 0.0), (9.0, 4.0 + number)), site=MARULAN)
            store.put(*make(number, kind="Trajectory", name=f"drive {number}", place=line))
        store.put(*make(2, kind="Trajectory", name="abroad", place=track))
        store.put(*make(3, kind="Trajectory", name="mars", place=Place("Point", ((137.4, -4.6),), MARS)))
        figure = map_figure(store, store.find())
    heights = [float(np.ptp(np.asarray(line.get_ydata()))) for line in figure.axes[0].lines]
    assert any(abs(height - 110.9) < 1.0 for height in heights)


# Stores -------------------------------------------------------------------


def test_several_products_that_begin_alike_are_distinguished(
    store: ProductStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transect.products.store.MIN_ID_DIGITS", 3)
    seen: dict[str, str] = {}
    number = 0
    while True:  # two ids with the same first digits: one in 4,096 pairs has three
        identifier = make(number)[0].id
        if identifier[:3] in seen:
            break
        seen[identifier[:3]] = identifier
        number += 1
    first = next(n for n in range(number) if make(n)[0].id == seen[identifier[:3]])
    store.put_many([make(first), make(number)])
    with pytest.raises(StoreError, match="several products begin with") as error:
        store.get(identifier[:3])
    assert {*error.value.hint.split(", ")} == {identifier[:7], seen[identifier[:3]][:7]}


def test_bytes_of_a_product_that_is_not_there_are_refused(store: ProductStore) -> None:
    with pytest.raises(StoreError, match="there is no product"):
        list(store.read("0" * 64))


def test_what_a_file_does_not_hold_is_not_kept(store: ProductStore, tmp_path: Path) -> None:
    file = tmp_path / "dem.tif"
    file.write_bytes(b"heights 0")
    product, _ = make(0)
    file.write_bytes(b"heights 9")
    with pytest.raises(StoreError):
        store.put(product, file)
    assert not store.find()


def test_a_pruned_chain_keeps_what_its_last_product_needs(store: ProductStore) -> None:
    """Two products that stay share an ancestor, which is needed twice and kept once."""
    root = store.put(*make(0, kind="Cloud"))
    middle = store.put(*made_from(root, kind="Cloud", number=1))
    kept = [store.put(*made_from(middle, root, name=f"dem {n}", number=5 + n)) for n in range(2)]
    gone = store.put(*make(3, kind="Cloud"))
    removed = store.prune(RetentionPolicy(kinds=("Cloud",), keep_latest=0))
    assert [product.id for product in removed] == [gone]
    assert {product.id for product in store.find()} == {root, middle, *kept}
    assert "Lineage" in repr(store.lineage(root))


def test_large_stores_merge_in_several_steps(new_store: NewStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transect.products.store.MAX_BATCH_PRODUCTS", 3)
    mine, theirs = new_store(), new_store()
    theirs.put_many([make(number) for number in range(8)])
    merged = mine.merge(theirs)
    assert (len(merged.added), len(mine.find())) == (8, 8)


def test_a_damaged_database_is_an_error_of_the_store(tmp_path: Path) -> None:
    with open_store(tmp_path / "a.gpkg") as store:
        store.put_many([make(number, content=bytes([number]) * 3000) for number in range(50)])
    file = tmp_path / "a.gpkg"
    content = bytearray(file.read_bytes())
    content[len(content) // 3 :] = b"\xff" * (len(content) - len(content) // 3)
    file.write_bytes(content)
    with pytest.raises(StoreError), open_store(file) as store:
        store.find(ProductQuery(time=(T0_NS, T0_NS + 10**9 * NS_PER_S)))


def test_a_database_without_products_and_a_server_that_is_not_there_are_refused(server: str) -> None:
    import psycopg

    with psycopg.connect(server.format("postgres"), autocommit=True) as db:
        db.execute("CREATE DATABASE empty_one TEMPLATE template1")
    with pytest.raises(StoreError, match="has no products") as error:
        open_store(server.format("empty_one"), create=False)
    assert "--store" in error.value.hint
    with pytest.raises(StoreError, match="cannot be opened"):
        open_store(server.format("no_such_database"))


def test_what_a_server_refuses_is_an_error_of_the_store(server: str) -> None:
    """Its tables are gone while it is open."""
    import psycopg

    with psycopg.connect(server.format("postgres"), autocommit=True) as db:
        db.execute("CREATE DATABASE broken_one TEMPLATE template1")
    with open_store(server.format("broken_one")) as store:
        identifier = store.put(*make(0))
        with psycopg.connect(server.format("broken_one"), autocommit=True) as db:
            db.execute("DROP TABLE parents CASCADE")
        with pytest.raises(StoreError, match="could not be written"):
            store.put(*made_from(identifier, number=1))
        with pytest.raises(StoreError, match="could not be read"):
            store.children(identifier)


def test_payloads_that_no_product_has_are_swept_from_a_server(server: str) -> None:
    import psycopg

    with psycopg.connect(server.format("postgres"), autocommit=True) as db:
        db.execute("CREATE DATABASE swept_one TEMPLATE template1")
    with open_store(server.format("swept_one")) as store:
        store.put(*make(0))
        with psycopg.connect(server.format("swept_one"), autocommit=True) as db:
            db.execute("INSERT INTO payloads VALUES (%s, 3)", ("ab" * 32,))
        assert store.verify().orphans == ("ab" * 32,)
        assert store.verify(sweep=True).orphans == ("ab" * 32,)
        assert store.verify().orphans == ()
        with psycopg.connect(server.format("swept_one"), autocommit=True) as db:
            db.execute("UPDATE payloads SET size = 1")
            db.execute("UPDATE pieces SET bytes = 'x'")
        [(_, what)] = store.verify().problems
        assert "bytes" in what

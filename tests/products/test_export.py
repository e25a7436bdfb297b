"""Products for other programs, and as a picture."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.commands import transect
from tests.products.samples import MARULAN, NS_PER_S, T0_NS, made_from, make

from transect.formats.geotiff import encode_geotiff
from transect.products import Area, Payload, Place, ProductQuery, Site, open_store
from transect.products.export import map_figure
from transect.products.place import MARS
from transect.types import GridMap


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a height map, a track on it, and things that lie elsewhere."""
    path = tmp_path_factory.mktemp("taken") / "mission.gpkg"
    x, y = np.meshgrid(np.arange(60.0), np.arange(40.0))
    grid = GridMap({"elevation": np.sin(x / 9) + np.cos(y / 7)}, (1.0, 0.0, -10.0, 0.0, -1.0, 30.0))
    track = Place("LineString", tuple((float(n), n * n / 60) for n in range(30)), site=MARULAN)
    with open_store(path) as store:
        outline = Place.of_box(Area(-10.0, -10.0, 50.0, 30.0, MARULAN.crs), MARULAN)
        content = bytes(encode_geotiff(grid))
        store.put(*make(0, kind="GridMap", content=content, name="heights", place=outline))
        store.put(*make(1, kind="Trajectory", name="drive", place=track))
        store.put(*make(2, place=Place("Point", ((137.4, -4.6),), MARS)))
        told = Payload.of(b"{}", "json")
        store.put(*make(3, b"{}", payload=told, place=Place("Point", ((1.0, 2.0),), site=Site("nowhere"))))
        store.put(*make(4, place=None, t0_ns=None, t1_ns=None))
    return path


def test_geojson_has_what_lies_on_earth_where_it_lies(stored: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.geojson"
    assert transect("products", "export", stored, "--format", "geojson", "-o", out).returncode == 0
    features = {f["properties"]["name"]: f for f in json.loads(out.read_text())["features"]}
    [start, *_] = features["drive"]["geometry"]["coordinates"]
    assert start == pytest.approx([149.9, -34.6], abs=1e-9)
    assert features["drive"]["properties"]["start"] == "2023-11-14T22:14:20.000Z"
    features = json.loads(out.read_text())["features"]
    assert sorted(str(f["geometry"] and f["geometry"]["type"]) for f in features) == [
        "LineString", "None", "None", "None", "Polygon",
    ]  # fmt: skip
    assert {f["properties"].get("place", {}).get("crs") for f in features} == {None, MARS}


def test_a_metre_is_a_metre_on_earth(stored: Path, tmp_path: Path) -> None:
    import pyproj

    out = tmp_path / "a.geojson"
    transect("products", "export", stored, "--format", "geojson", "-o", out)
    track = next(
        f["geometry"]["coordinates"]
        for f in json.loads(out.read_text())["features"]
        if f["properties"]["name"] == "drive"
    )
    azimuth, _, length = pyproj.Geod(ellps="WGS84").inv(*track[0], *track[20])
    assert (length, azimuth) == pytest.approx(
        (np.hypot(20, 20 * 20 / 60), np.degrees(np.arctan2(20, 20 * 20 / 60))), rel=1e-4
    )


def test_a_stac_catalogue_is_valid_and_has_the_bytes(stored: Path, tmp_path: Path) -> None:
    import pystac

    out = tmp_path / "stac"
    told = transect("products", "export", stored, "--format", "stac", "-o", out)
    assert (told.returncode, "left out 1 without a time" in told.stderr) == (0, True)
    catalogue = pystac.Catalog.from_file(str(out / "catalog.json"))
    assert catalogue.validate_all() == 4
    with open_store(stored) as store:
        for item in catalogue.get_items():
            file = Path(item.assets["data"].get_absolute_href() or "")
            assert file.read_bytes() == store.content(item.id)
    again = transect("products", "export", stored, "--format", "stac", "-o", out)
    assert again.returncode == 2


def test_the_map_is_drawn_over_the_newest_heights(stored: Path, tmp_path: Path) -> None:
    out = tmp_path / "map.png"
    told = transect("products", "map", stored, "-o", out, "--kind", "Trajectory")
    assert told.returncode == 0, told.stderr
    with open_store(stored) as store:
        figure = map_figure(store, store.find())
        assert [len(axes.images) for axes in figure.axes[:1]] == [1]  # the ground
        assert figure.axes[0].get_xlim()[1] > 49  # all of it is shown
        assert not map_figure(store, store.find(ProductQuery(kind="Trajectory"))).axes[0].images
    nothing = transect("products", "map", stored, "-o", tmp_path / "none.png", "--kind", "Cloud")
    assert nothing.returncode == 2
    assert "no product lies" in nothing.stderr


def test_an_outline_beside_which_nothing_could_be_seen_is_left_out(tmp_path: Path) -> None:
    track = Place("LineString", ((0.0, 0.0), (9.0, 4.0)), site=MARULAN)
    near, far = (Place.of_box(Area(0.0, 0.0, width, 5.0, MARULAN.crs), MARULAN) for width in (20.0, 900.0))
    with open_store(tmp_path / "a.gpkg") as store:
        store.put(*make(0, kind="Trajectory", name="drive", place=track))
        store.put(*make(1, kind="PointCloud", name="near", place=near))
        store.put(*make(2, kind="PointCloud", name="far", place=far))
        assert 20 < map_figure(store, store.find()).axes[0].get_xlim()[1] < 100


def test_a_newcomer_finds_shows_follows_and_cleans(stored: Path, tmp_path: Path) -> None:
    area = ["--area", "149.89,-34.61,149.91,-34.59"]
    found = json.loads(transect("products", "find", stored, *area, "--json").stdout)["products"]
    assert {each["name"] for each in found} == {"drive", "heights"}
    late = json.loads(
        transect("products", "find", stored, "--from", str(T0_NS // NS_PER_S + 200), "--json").stdout
    )
    assert [each["time_ns"][0] for each in late["products"]] == [T0_NS + 180 * NS_PER_S]
    identifier = found[0]["id"][:8]
    assert identifier in transect("products", "show", stored, identifier).stdout
    assert "day/Laser.txt" in transect("products", "lineage", stored, identifier).stdout
    assert transect("products", "verify", stored).stdout == "5 products, 0 problems\n"
    assert transect("products", "merge", tmp_path / "b.gpkg", stored).stdout.startswith("5 added")
    gone = transect("products", "delete", tmp_path / "b.gpkg", identifier, "--reason", "rehearsal")
    assert gone.returncode == 0
    assert "rehearsal" in transect("products", "history", tmp_path / "b.gpkg", identifier).stdout
    wrong = transect("products", "show", tmp_path / "b.gpkg", identifier)
    assert (wrong.returncode, "rehearsal" in wrong.stderr) == (1, True)
    pruned = transect("products", "prune", tmp_path / "b.gpkg", "--keep-latest", 0)
    assert "removed 4 products" in pruned.stdout
    assert transect("products", "get", stored, identifier, "-o", tmp_path / "x").returncode == 0
    assert transect("products", "find", tmp_path / "none.gpkg").returncode == 1
    assert transect("products", "roles", stored).returncode == 2


def test_roles_let_read_write_and_prune(server: str) -> None:
    import psycopg

    with psycopg.connect(server.format("postgres"), autocommit=True) as db:
        db.execute("CREATE DATABASE roles TEMPLATE template1")
    address = server.format("roles")
    with open_store(address) as store:
        identifier = store.put(*make(0))
    assert transect("products", "roles", address).returncode == 0
    statements = {
        "SELECT id FROM products": ("transect_reader", "transect_writer", "transect_pruner"),
        "INSERT INTO events (t_ns, what, id, reason) VALUES (0, 'put', '', '')": (
            "transect_writer", "transect_pruner",
        ),
        "DELETE FROM products": ("transect_pruner",),
    }  # fmt: skip
    with psycopg.connect(address, autocommit=True) as db:
        for role in ("transect_reader", "transect_writer", "transect_pruner"):
            for statement, allowed in statements.items():
                db.execute(f"SET ROLE {role}".encode())
                try:
                    db.execute(statement.encode())
                    assert role in allowed
                except psycopg.errors.InsufficientPrivilege:
                    assert role not in allowed
                db.execute("RESET ROLE")
    assert identifier


def test_a_lineage_shows_each_product_once(tmp_path: Path) -> None:
    """A chain of 1,100 products, on top of a diamond."""
    items = [make()]
    sides = [made_from(items[0][0].id, name=side) for side in ("left", "right")]
    items += [*sides, made_from(*(product.id for product, _ in sides), name="both")]
    for number in range(1100):
        items.append(made_from(items[-1][0].id, name=f"step {number}"))
    with open_store(tmp_path / "a.gpkg") as store:
        store.put_many(items)
    last = items[-1][0].id
    told = transect("products", "lineage", tmp_path / "a.gpkg", last)
    lines = told.stdout.splitlines()
    assert [line.split()[0] for line in lines[:2]] == [last[:12], items[-2][0].id[:12]]
    assert len(lines) == 1100 + 5 + 1  # the first product comes below both sides, and has one file
    assert [line.strip() for line in lines if "(above)" in line] == [f"{items[0][0].id[:12]} DEM dem (above)"]
    told = transect("products", "lineage", tmp_path / "a.gpkg", last, "--json")
    products = json.loads(told.stdout)["products"]
    assert [each["id"] for each in products[:1]] == [last]
    assert len(products) == len(items)
    assert {len(each["parents"]) for each in products} == {0, 1, 2}

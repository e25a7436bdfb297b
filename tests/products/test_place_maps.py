"""Maps of places as products: kept whole, given back, used again, and found again for a run made with one."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.algorithms.slam.rooms import block, cast, odometry_of, walk
from tests.commands import transect as typed

import transect
from transect.archive.assembly.sources import build
from transect.geometry import geodesy, se3
from transect.products import ProductQuery, Site, open_store
from transect.products.extents import extent_of_map
from transect.products.reproduction import NotReproducibleError, reproduce
from transect.products.run_products import keep_run
from transect.recording.place_maps import digest_of_map, read_map
from transect.types import Anchor, PlaceMap

pytest.importorskip("gtsam")


def write_log(path: Path, poses: np.ndarray, start: float) -> None:
    """Write a drive through corridors as a CARMEN log."""
    walls, lines = block(), list[str]()
    for n, (pose, wheels) in enumerate(zip(poses, odometry_of(poses), strict=True)):
        ranges = " ".join(f"{each:.3f}" for each in cast(walls, pose))
        place = " ".join(f"{each:.4f}" for each in wheels)
        lines.append(f"FLASER 180 {ranges} {place} {place} {start + 0.2 * n:.3f} robot {0.2 * n:.3f}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two logs, the run `floor` of the first, and a store with it."""
    folder = tmp_path_factory.mktemp("floor")
    write_log(folder / "day.clf", walk([(0.0, 0.0), (5.0, 0.0)], step=0.25), 1000.0)
    write_log(folder / "next.clf", walk([(1.0, 0.1), (5.0, 0.1)], step=0.25), 9000.0)
    ran = typed("run", "LaserSlam", "day.clf", "-o", "floor", "--store", "a.gpkg", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    return folder


@pytest.fixture
def found(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the map as a file, and a run `again` that found itself in it."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(kept / "a.gpkg", "a.gpkg")
    shutil.copytree(kept / "a.payloads", "a.payloads")
    shutil.copy(kept / "next.clf", "next.clf")
    with open_store("a.gpkg") as store:
        [product] = store.find(ProductQuery(kind="PlaceMap"))
        Path("floor.zip").write_bytes(store.content(product.id))
    transect.run("LaserSlam", "next.clf", map="floor.zip", out="again")
    return tmp_path


def test_a_map_is_one_product_with_its_time_place_and_maker(kept: Path) -> None:
    places = read_map(kept / "floor")
    with open_store(kept / "a.gpkg") as store:
        [product] = store.find(ProductQuery(kind="PlaceMap"))
        [run] = store.find(ProductQuery(kind="Run"))
    assert product.provenance.parents == (run.id,)
    assert product.provenance.parameters == {"digest": digest_of_map(kept / "floor")}
    assert (product.t0_ns, product.t1_ns) == (places.t_ns[0], places.t_ns[-1])
    assert product.frame == "map"
    assert product.place is not None
    (x0, y0), (x1, y1) = places.poses[:, :2, 3].min(axis=0), places.poses[:, :2, 3].max(axis=0)
    box = product.place.box
    assert (box.x0, box.y0, box.x1, box.y1) == pytest.approx((x0, y0, x1, y1))


def test_a_map_that_a_store_gives_back_is_used_by_the_next_run(kept: Path, tmp_path: Path) -> None:
    with open_store(kept / "a.gpkg") as store:
        [product] = store.find(ProductQuery(kind="PlaceMap"))
    got = typed("products", "get", kept / "a.gpkg", product.id[:10], "-o", tmp_path / "floor.zip")
    assert got.returncode == 0, got.stderr
    shown = typed("maps", "show", tmp_path / "floor.zip", "--json")
    assert json.loads(shown.stdout)["digest"] == digest_of_map(kept / "floor")
    run = transect.run("LaserSlam", kept / "next.clf", map=tmp_path / "floor.zip")
    same = transect.run("LaserSlam", kept / "next.clf", map=kept / "floor")
    assert run.digest == same.digest
    assert any(said.text.startswith("FOUND") for said in run.conclusions)


def test_the_map_is_an_ancestor_of_the_run_that_used_it_and_stands_in_when_its_file_is_gone(
    found: Path,
) -> None:
    with open_store("a.gpkg") as store:
        [product] = store.find(ProductQuery(kind="PlaceMap"))
        identifier = keep_run(store, Path("again"))[0]
        assert [each.id for each in store.lineage(identifier).parents] == [product.id]
        again = reproduce(store, identifier)
        assert again.identical
        assert again.moved == {}
        (found / "floor.zip").unlink()
        again = reproduce(store, identifier)
        assert again.identical
        assert again.moved == {"floor.zip": f"the product {product.id[:12]}"}


def test_a_map_that_no_store_has_is_found_by_its_digest_or_named(found: Path, kept: Path) -> None:
    with open_store("b.gpkg") as store:
        identifier = keep_run(store, Path("again"))[0]
        shutil.move("floor.zip", "moved")
        with pytest.raises(NotReproducibleError, match=r"the map floor\.zip is gone") as error:
            reproduce(store, identifier)
        assert digest_of_map("moved")[:12] in error.value.why
        assert "--look-in" in error.value.hint
        again = reproduce(store, identifier, [kept / "floor"])
        assert again.identical
        assert again.moved == {"floor.zip": str(kept / "floor" / "map")}
        Path("floor.zip").write_bytes(Path("moved").read_bytes()[:-5000])
        with pytest.raises(NotReproducibleError, match="not what it was"):
            reproduce(store, identifier)
    told = typed("products", "reproduce", "b.gpkg", identifier[:10], cwd=found)
    assert told.returncode == 4


def test_an_archive_of_a_run_or_a_store_says_that_it_leaves_the_map_out(kept: Path, tmp_path: Path) -> None:
    made_by = json.loads((kept / "floor" / "run.json").read_text())["name"]
    for source, name in (("floor", "floor"), ("a.gpkg", made_by)):
        built = build(kept / source, tmp_path / source)
        assert any(note.startswith(f"{name}/map is a map of places") for note in built.notes)
        assert not list((tmp_path / source).rglob("*map*"))


def corners(places: PlaceMap) -> PlaceMap:
    """Return a map with keyframes on a square of 10 m, and one within."""
    poses = np.tile(np.eye(4), (5, 1, 1))
    poses[:, :2, 3] = [(0, 0), (10, 0), (10, 10), (0, 10), (4, 6)]
    return replace(
        places, t_ns=np.arange(5), poses=poses, covariances=np.zeros((5, 6, 6)), session=np.zeros(5, int),
        observations=[{}] * 5,
    )  # fmt: skip


NOTHING = PlaceMap("LaserSlam", np.zeros(0, int), np.zeros((0, 4, 4)), np.zeros((0, 6, 6)), np.zeros(0, int))


def test_the_footprint_of_a_map_is_the_hull_of_its_keyframes_on_earth_where_it_is_anchored() -> None:
    home = np.array([np.radians(48.2), np.radians(16.4), 200.0])
    [place], zone = geodesy.utm_from_geodetic(home[None])
    anchor = Anchor(f"EPSG:326{zone.number}", se3.from_matrix(np.eye(3), place))
    square = corners(NOTHING)
    local = extent_of_map(square, Site("yard")).place
    assert local is not None
    assert (local.crs, local.shape, set(local.points)) == (
        "site:yard", "Polygon", {(0.0, 0.0), (10.0, 0.0), (10.0, 10.0), (0.0, 10.0)},
    )  # fmt: skip
    placed = extent_of_map(replace(square, anchor=anchor), Site("yard")).place
    assert placed is not None
    assert placed.crs == "EPSG:4326"
    assert placed.box.x0 == pytest.approx(16.4, abs=1e-5)
    north = np.radians(placed.box.y1 - 48.2) * 6.37e6
    assert north == pytest.approx(10.0, abs=0.5)  # the grid is turned by a degree there


def test_a_map_of_one_place_is_a_point_and_one_of_none_is_nowhere() -> None:
    one = replace(
        NOTHING, t_ns=np.array([7]), poses=np.eye(4)[None], covariances=np.zeros((1, 6, 6)),
        session=np.zeros(1, int), observations=[{}],
    )  # fmt: skip
    seen = extent_of_map(one, Site("yard"))
    assert seen.time_ns == (7, 7)
    assert seen.place is not None
    assert (seen.place.shape, seen.place.points) == ("Point", ((0.0, 0.0),))
    assert extent_of_map(NOTHING, Site("yard")).place is None

"""What only the GeoPackage promises: GIS programs open it, and no kill, full disk or crowd harms it."""

import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.products.samples import MARULAN, made_from, make

import transect
from transect.products import Area, Place, ProductQuery, ProductStore, RetentionPolicy, StoreError, open_store
from transect.products.place import MARS, MOON

SOURCE = Path(transect.__file__).parent.parent
WRITER = Path(__file__).with_name("writer.py")
VALIDATOR = "from osgeo_utils.samples.validate_gpkg import main; import sys; sys.exit(main(sys.argv))"


def start(store: Path, name: str, count: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-I", "-S", WRITER, SOURCE, store, name, count]
    return subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)


def fill(path: Path) -> None:
    with open_store(path) as store:
        places = [
            Place("LineString", ((0, 0), (5, 1), (9, 2)), site=MARULAN),
            Place("Point", ((149.9, -34.6),)),
            Place("Polygon", ((10, 10), (11, 10), (11, 11), (10, 10)), MARS),
            Place("Point", ((1, 2),), MOON),
            Place("Point", ((1, 2),), "site:a yard; DROP TABLE products"),
            None,
        ]
        store.put_many([make(0), *(make(n, place=place) for n, place in enumerate(places, 1))])
        store.delete(store.put(*make(20)), "to be gone")


def test_gdal_finds_nothing_wrong_with_it(tmp_path: Path) -> None:
    python, path = "/usr/bin/python3", tmp_path / "a.gpkg"
    if not shutil.which("ogrinfo"):
        pytest.skip("gdal: GDAL's programs are not installed")
    fill(path)
    checked = subprocess.run([python, "-c", VALIDATOR, "-k", str(path)], capture_output=True, text=True)
    assert (checked.returncode, checked.stdout) == (0, ""), checked.stderr
    listed = subprocess.run(["ogrinfo", "-so", "-al", str(path)], capture_output=True, text=True, check=True)
    for layer in ("footprints_site_marulan", "tracks_site_marulan", "points", "footprints_iau_2015_49900"):
        assert f"Layer name: {layer}\n" in listed.stdout
    assert 'Latitude of natural origin",-34.6' in listed.stdout
    assert listed.stderr == ""


def test_the_module_needs_neither_numpy_nor_pyarrow() -> None:
    code = "import sys; sys.path[:0] = sys.argv[1:]; import transect.products.geopackage; print(*sys.modules)"
    told = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(SOURCE)], capture_output=True, text=True, check=True
    )
    assert "transect.products.store" in told.stdout.split()
    assert not {"numpy", "pyarrow"} & set(told.stdout.split())


def kill_at_random(path: Path, seed: int) -> set[str]:
    """Kill a writer after a while; return what it said was kept."""
    with start(path, "pruned", 10_000) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        time.sleep(random.Random(seed).uniform(0.0, 0.25))
        writer.kill()
        said = writer.stdout.read()
    lines = [line.split() for line in said.splitlines(keepends=True) if line.endswith("\n")]
    return {words[1] for words in lines if words[0] == "put"}


def check_after_kill(path: Path, kept: set[str]) -> int:
    """Assert that a store is whole and lacks nothing; return how many orphans there were."""
    with open_store(path, create=False) as store:
        found = store.verify(sweep=True)
        assert found.problems == ()
        present = {product.id for product in store.find()}
        pruned = {event.id for event in store.changes() if event.what == "prune"}
        assert kept <= present | pruned
        area = Area(-1, -1, 1e6, 2, "site:yard")
        assert {product.id for product in store.find(ProductQuery(area=area))} == present
        assert store.verify().orphans == ()
    return len(found.orphans)


def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    path, kept = tmp_path / "a.gpkg", set[str]()
    for seed in range(6):
        kept |= kill_at_random(path, seed)
        check_after_kill(path, kept)
    assert kept


def test_four_processes_write_at_once_and_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.gpkg"
    writers = [start(path, f"robot{number}", 15) for number in range(4)]
    said = [writer.communicate()[0] for writer in writers]
    kept = {line.split()[1] for text in said for line in text.splitlines() if line.startswith("put")}
    assert [writer.returncode for writer in writers] == [0] * 4
    assert len(kept) == 60
    with open_store(path) as store:
        assert {product.id for product in store.find()} == kept
        assert store.verify().problems == ()


def test_a_full_disk_leaves_it_readable(tmp_path: Path) -> None:
    path = tmp_path / "a.gpkg"
    with open_store(path) as store:
        first = store.put(*make(0))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_store(path) as store:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
        try:
            with pytest.raises(StoreError, match="could not be written"):
                store.put_many([make(n, content=os.urandom(4000)) for n in range(1, 200)])
            with pytest.raises(StoreError, match="could not be written"):
                store.put(*make(1, content=b"x" * 300_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert [product.id for product in store.find()] == [first]
        second = store.put(*make(1))
        assert {product.id for product in store.find()} == {first, second}
        found = store.verify()
    assert (found.problems, found.orphans) == ((), ())


@pytest.fixture
def damaged(tmp_path: Path) -> ProductStore:
    """A store whose large payload has a flipped byte."""
    store = open_store(tmp_path / "a.gpkg")
    store.put_many([make(0), make(1, content=b"x" * 5000)])
    [payload] = (tmp_path / "a.payloads").rglob("*.tif")
    payload.write_bytes(b"y" + b"x" * 4999)
    return store


def test_a_payload_that_was_changed_is_named_and_not_merged(damaged: ProductStore, tmp_path: Path) -> None:
    [(identifier, what)] = damaged.verify().problems
    assert (identifier, what) == (make(1, content=b"x" * 5000)[0].id, "its payload has other bytes")
    with open_store(tmp_path / "b.gpkg") as other:
        merged = other.merge(damaged)
        assert (len(merged.added), merged.damaged) == (1, (identifier,))
    damaged.close()


def test_a_payload_that_is_gone_is_named(tmp_path: Path) -> None:
    with open_store(tmp_path / "a.gpkg") as store:
        identifier = store.put(*make(1, content=b"x" * 5000))
        shutil.rmtree(tmp_path / "a.payloads")
        assert store.verify().problems == ((identifier, "its payload cannot be read"),)


def test_a_document_that_was_changed_is_named(tmp_path: Path) -> None:
    with open_store(tmp_path / "a.gpkg") as store:
        store.put(*make())
    with sqlite3.connect(tmp_path / "a.gpkg") as db:
        db.execute("UPDATE products SET document = replace(document, 'argo', 'ogra')")
    db.close()
    with open_store(tmp_path / "a.gpkg") as store:
        [(_, what)] = store.verify().problems
        assert "changed" in what


def test_orphans_are_told_and_swept_by_pruning(tmp_path: Path) -> None:
    with open_store(tmp_path / "a.gpkg") as store:
        store.put(*make(1, content=b"x" * 5000))
        orphan = tmp_path / "a.payloads" / "ab" / ("ab" * 32 + ".tif")
        orphan.parent.mkdir()
        orphan.write_bytes(b"left by a killed process")
        assert store.verify().orphans == (str(orphan),)
        store.prune(RetentionPolicy(keep_latest=10))
        assert not orphan.exists()
        assert store.verify().problems == ()


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\x00" + b"\x00" * 2000])
def test_what_is_no_store_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.gpkg"
    path.write_bytes(content)
    with pytest.raises(StoreError):
        open_store(path)
    assert path.read_bytes() == content


def test_another_geopackage_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.gpkg") as db:
        db.execute("CREATE TABLE roads (fid INTEGER PRIMARY KEY)")
    db.close()
    with pytest.raises(StoreError, match="not a store of products"):
        open_store(tmp_path / "a.gpkg")
    with pytest.raises(StoreError, match="there is no store"):
        open_store(tmp_path / "none.gpkg", create=False)


def test_a_product_that_names_itself_as_its_origin_ends(tmp_path: Path) -> None:
    with open_store(tmp_path / "a.gpkg") as store:
        one = store.put(*make(0))
        two = store.put(*made_from(one, number=1))
        forged = store.get(one).document.replace('"parents":[]', f'"parents":["{two}"]')
        with sqlite3.connect(tmp_path / "a.gpkg") as db:
            db.execute("UPDATE products SET document = ? WHERE id = ?", (forged, one))
        db.close()
        lineage = store.lineage(two)
        assert lineage.parents[0].parents[0].note == "made from itself"

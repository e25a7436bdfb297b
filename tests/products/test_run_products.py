"""Runs as products, and their reproduction."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.commands import transect

from transect.formats import open as open_recording
from transect.products import Area, ProductQuery, ProductStore, open_store
from transect.products.reproduction import NotReproducibleError, reproduce
from transect.products.run_products import keep_run


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recording `day`, a run `fused` and a store of it."""
    folder = tmp_path_factory.mktemp("kept")
    streams = [word for name in ("Odometry", "Imu", "Gps/*") for word in ("--streams", name)]
    assert transect("simulate", "rosario", "-o", "day", "--seconds", 6, *streams, cwd=folder).returncode == 0
    kept = ("--store", "a.gpkg", "--mission", "spring")
    ran = transect("run", "PoseFusion", "day", "-o", "fused", "--to", "+5.5s", *kept, cwd=folder)
    assert ran.returncode == 0, ran.stderr
    assert "stored in a.gpkg" in ran.stderr
    return folder


@pytest.fixture
def store(kept: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(kept)
    with open_store(kept / "a.gpkg", create=False) as opened:
        yield opened


def newest(store: ProductStore, name: str) -> str:
    return store.find(ProductQuery(name=name))[0].id


def test_every_output_of_a_run_is_a_product_and_its_parent_is_the_run(
    kept: Path, store: ProductStore
) -> None:
    content = json.loads((kept / "fused" / "run.json").read_text())
    files = [(port, name) for port, output in content["outputs"].items() for name in output["files"]]
    [run] = store.find(ProductQuery(kind="Run"))
    outputs = [product for product in store.find(ProductQuery(mission="spring")) if product.kind != "Run"]
    assert sorted((p.name, f"{p.name}.{p.payload.format}") for p in outputs) == sorted(files)
    assert {product.provenance.parents for product in outputs} == {(run.id,)}
    assert {(file.path, file.sha256) for file in run.provenance.sources} == set(
        content["config"]["inputs"].items()
    )
    assert all(file.size == (kept / "day" / file.path).stat().st_size for file in run.provenance.sources)
    for product in outputs:
        assert (
            store.content(product.id)
            == (kept / "fused" / f"{product.name}.{product.payload.format}").read_bytes()
        )


def test_a_track_is_found_by_longitude_and_latitude_where_there_were_fixes(
    kept: Path, store: ProductStore
) -> None:
    fixes = np.degrees(open_recording(kept / "day")["Gps/Fix"].array("lon", "lat"))
    (west, south), (east, north) = fixes.min(axis=0).tolist(), fixes.max(axis=0).tolist()
    found = {product.name for product in store.find(ProductQuery(area=Area(west, south, east, north)))}
    assert {"pose", "trajectory", "ground"} <= found
    assert store.find(ProductQuery(area=Area(west + 1, south, east + 1, north))) == []


def test_time_place_and_error_of_a_trajectory_are_those_of_its_file(kept: Path, store: ProductStore) -> None:
    product = store.get(newest(store, "pose"))
    text = (kept / "fused" / "pose.tum").read_text()
    rows = [line.split() for line in text.splitlines() if line[0] != "#"]
    assert product.place is not None
    assert (product.place.shape, product.place.crs) == ("LineString", "site:sequence00")
    assert product.place.points[0] == (float(rows[0][1]), float(rows[0][2]))
    assert product.place.points[-1] == (float(rows[-1][1]), float(rows[-1][2]))
    assert product.t0_ns == int(rows[0][0].replace(".", "").ljust(19, "0"))
    judged = transect("eval", "day", "fused:pose", "--align", "yaw", "--json", cwd=kept)
    [result] = json.loads(judged.stdout)["results"]
    assert product.quality["ate_rmse_m"] == pytest.approx(result["metrics"]["ate"]["translation"]["rmse"])


def test_a_product_is_reproduced_byte_by_byte(store: ProductStore) -> None:
    found = reproduce(store, newest(store, "pose"))
    assert found.identical
    assert not found.difference
    assert found.moved == {}


def test_a_recording_that_was_moved_is_found_by_its_content(
    kept: Path, store: ProductStore, tmp_path: Path
) -> None:
    identifier = newest(store, "pose")
    shutil.move(kept / "day", tmp_path / "far" / "away")
    try:
        with pytest.raises(NotReproducibleError, match="is gone") as error:
            reproduce(store, identifier)
        assert "--look-in" in error.value.hint
        with pytest.raises(NotReproducibleError, match="is gone"):
            reproduce(store, identifier, [kept / "fused"])
        found = reproduce(store, identifier, [tmp_path])
        assert found.identical
        assert found.moved == {"day": str(tmp_path / "far" / "away")}
        asked = ("products", "reproduce", kept / "a.gpkg", identifier, "--look-in", tmp_path)
        facts = json.loads(transect(*asked, "--json", cwd=kept).stdout)
        assert (facts["id"], facts["identical"], facts["moved"]) == (identifier, True, found.moved)
        assert (facts["first_port"], facts["first_ns"]) == (None, None)
        assert f"day was found at {tmp_path / 'far' / 'away'}\n" in transect(*asked, cwd=kept).stdout
    finally:
        shutil.move(tmp_path / "far" / "away", kept / "day")


def test_an_input_that_was_changed_is_named(kept: Path, store: ProductStore) -> None:
    file = kept / "day" / "sequence00" / "odometry.log"
    before = file.read_bytes()
    file.write_bytes(before.replace(b"1", b"2", 1))
    try:
        with pytest.raises(NotReproducibleError, match="not what they were") as error:
            reproduce(store, newest(store, "pose"))
        assert "odometry.log" in error.value.why
    finally:
        file.write_bytes(before)


def test_another_parameter_shows_which_port_differs_first(
    kept: Path, store: ProductStore, tmp_path: Path
) -> None:
    """The run is kept with another parameter than it had, so that the second one differs."""
    forged = tmp_path / "forged"
    shutil.copytree(kept / "fused", forged)
    content = json.loads((forged / "run.json").read_text())
    content["request"]["end"] = "+5s"
    (forged / "run.json").write_text(json.dumps(content))
    with open_store(tmp_path / "b.gpkg") as other:
        run, *_ = keep_run(other, forged)
        found = reproduce(other, run)
        assert not found.identical
        assert found.difference.first is not None
        told = transect("products", "reproduce", tmp_path / "b.gpkg", run[:8], cwd=kept)
    assert told.returncode == 4
    assert "differs first" in told.stdout


def test_what_a_person_put_cannot_be_reproduced(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("a note")
    told = transect("products", "put", "b.gpkg", "note.txt", "--kind", "Note", cwd=tmp_path)
    assert told.returncode == 0
    told = transect("products", "reproduce", "b.gpkg", told.stdout[:10], cwd=tmp_path)
    assert told.returncode == 4
    assert "it was added by hand, or its run is not in this store" in told.stderr


def test_a_run_that_was_written_is_kept_later_without_the_words_of_its_command(
    kept: Path, store: ProductStore, tmp_path: Path
) -> None:
    told = transect("products", "keep", tmp_path / "b.gpkg", "fused", "--mission", "spring", cwd=kept)
    assert told.returncode == 0, told.stderr
    [typed] = store.find(ProductQuery(kind="Run"))
    assert typed.provenance.command.startswith("transect run PoseFusion day -o fused --to +5.5s --store")
    with open_store(tmp_path / "b.gpkg") as other:
        [later] = other.find(ProductQuery(kind="Run"))
        assert (later.payload, later.provenance.command) == (typed.payload, "")


def test_a_store_wants_a_run_that_is_written(kept: Path) -> None:
    told = transect("run", "PoseFusion", "day", "--store", "c.gpkg", cwd=kept)
    assert (told.returncode, "-o DIR" in told.stderr) == (2, True)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    told = transect("products", "keep", tmp_path / "b.gpkg", tmp_path)
    assert told.returncode == 1
    assert "not the folder of a run" in told.stderr


def test_a_run_that_checked_by_a_configuration_is_reproduced_with_it(kept: Path, tmp_path: Path) -> None:
    """Of a sensor whose limits are changed, other windows are BAD than usually."""
    (tmp_path / "own.yaml").write_text(
        "window: 0.5\nchecks:\n  rate: {limits: {deviation: [0.0001, 0.0002]}, k_on: 1}\nskip: [C04]\n"
    )
    store = tmp_path / "a.gpkg"
    typed = ("--config", tmp_path / "own.yaml", "--store", store, "-o", tmp_path / "out")
    ran = transect("run", "PoseFusion", "day", *typed, cwd=kept)
    assert ran.returncode in (0, 4), ran.stderr
    config = json.loads((tmp_path / "out" / "run.json").read_text())["config"]["verdicts"]["config"]
    assert config["window"] == 0.5
    with open_store(store) as opened:
        identifier = newest(opened, "verdicts")
    told = transect("products", "reproduce", store, identifier, cwd=kept)
    assert "identical" in told.stdout, told.stderr


def test_verdicts_on_another_recording_are_refused(kept: Path, tmp_path: Path) -> None:
    """The same streams at the same times, but for one value of one sample."""
    assert transect("check", "day", "-o", tmp_path / "judged", cwd=kept).returncode in (0, 4)
    table = tmp_path / "judged" / "verdicts.parquet"
    shutil.copytree(kept / "day", tmp_path / "other")
    typed = ("run", "PoseFusion", tmp_path / "other", "--verdicts", table, "-o")
    assert transect(*typed, tmp_path / "same").returncode in (0, 4)
    assert transect(*typed, tmp_path / "part", "--to", "+5s").returncode in (0, 4)
    [log] = (tmp_path / "other").rglob("imu.log")
    content = log.read_text()
    where = next(at for at in range(len(content) // 2, len(content)) if content[at] in "1234567")
    log.write_text(content[:where] + "8" + content[where + 1 :])
    told = transect(*typed, tmp_path / "changed")
    assert told.returncode == 2
    assert "the verdicts on Imu are of another recording" in told.stderr


def test_a_run_in_hindsight_is_reproduced_with_the_verdicts_that_it_was_given(
    kept: Path, tmp_path: Path
) -> None:
    assert transect("check", "day", "-o", tmp_path / "judged", cwd=kept).returncode in (0, 4)
    table, store = tmp_path / "judged" / "verdicts.parquet", tmp_path / "a.gpkg"
    typed = ("--verdicts", table, "-o", tmp_path / "out", "--store", store)
    assert transect("run", "PoseFusion", "day", *typed, cwd=kept).returncode in (0, 4)
    shutil.rmtree(tmp_path / "judged")
    with open_store(store) as opened:
        identifier = newest(opened, "pose")
    told = transect("products", "reproduce", store, identifier, cwd=kept)
    assert "identical" in told.stdout, told.stderr

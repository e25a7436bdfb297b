"""`transect products ...` on small stores of files that a person put there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import Done, transect

HERE = "149.90,-34.60,149.91,-34.59"
LARGE_CONTENT = b"a cloud " * 1000  # more than 4 kB: a file of its own beside the GeoPackage


def put(store: Path, file: Path, *words: object) -> str:
    done = transect("products", "put", store, file, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a cloud, and a report that was made from it."""
    (tmp_path / "cloud.ply").write_bytes(LARGE_CONTENT)
    (tmp_path / "report.txt").write_text("all is well")
    store = tmp_path / "field.gpkg"
    cloud = put(store, tmp_path / "cloud.ply", "--kind", "PointCloud", "--area", HERE, "--robot", "argo")
    made = ("--from-product", cloud[:8], "--mission", "spring")
    put(store, tmp_path / "report.txt", "--kind", "Report", "--name", "summary", *made)
    return store


def listed(store: Path, *words: object) -> dict[str, str]:
    """The ids of what is found, by name."""
    done = transect("products", "find", store, *words, "--json")
    assert done.returncode == 0, done.stderr
    return {each["name"]: each["id"] for each in json.loads(done.stdout)["products"]}


def payload_of(store: Path) -> Path:
    [file] = store.with_suffix(".payloads").rglob("*.ply")
    return file


def test_a_product_says_what_a_person_said_of_it_and_what_it_was_made_from_and_into(store: Path) -> None:
    ids = listed(store)
    cloud, report = ids["cloud"], ids["summary"]
    told = dict(
        line.split(maxsplit=1)
        for line in transect("products", "show", store, report).stdout.splitlines()
        if not line.startswith("made")
    )
    assert (told["kind"], told["name"], told["mission"]) == ("Report", "summary", "spring")
    assert "robot" not in told  # nobody said whose it is
    shown = transect("products", "show", store, cloud[:6]).stdout
    assert f"used in      {report[:6]}" in shown
    assert json.loads(transect("products", "show", store, cloud, "--json").stdout)["children"] == [report]
    ancestors = transect("products", "lineage", store, report).stdout.splitlines()
    assert ancestors[0].startswith(report[:6])
    assert ancestors[1].startswith(f"  {cloud[:6]}")
    found = json.loads(transect("products", "lineage", store, report, "--json").stdout)
    assert [(each["id"], each["parents"]) for each in found["products"]] == [(report, [cloud]), (cloud, [])]


def test_the_same_ancestor_is_printed_once_and_then_referred_to(store: Path, tmp_path: Path) -> None:
    ids = listed(store)
    (tmp_path / "page.html").write_text("both")
    both = ("--from-product", ids["cloud"], "--from-product", ids["summary"])
    page = put(store, tmp_path / "page.html", "--kind", "Report", *both)
    told = transect("products", "lineage", store, page).stdout
    assert told.count(ids["cloud"][:6]) == 2
    assert told.count("(above)") == 1


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--area", "149.905,-34.595,150,-34"), {"cloud"}),
        (("--area", "10,10,11,11"), set[str]()),
        (("--from", "2020-01-01T00:00:00"), set[str]()),
        (("--to", "2020-01-01T00:00:00"), set[str]()),
        (("--mission", "spring"), {"summary"}),
        (("--robot", "argo"), {"cloud"}),
    ],
)
def test_products_are_found_by_what_is_asked_of_them(
    store: Path, words: tuple[object, ...], names: set[str]
) -> None:
    assert set(listed(store, *words)) == names
    told = transect("products", "find", store, *words).stdout
    assert {name for name in ("cloud", "summary") if f"  {name}" in told} == names
    assert ("kinds in the store: PointCloud, Report" in told) == (not names)


def test_only_the_newest_are_listed_if_a_number_is_given(store: Path) -> None:
    assert len(listed(store, "--latest", 1)) == 1


def test_the_bytes_of_a_product_are_written_once(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "again.ply"
    cloud = listed(store)["cloud"]
    done = transect("products", "get", store, cloud, "-o", out)
    assert (done.returncode, out.read_bytes()) == (0, LARGE_CONTENT)
    assert f"wrote {out}" in done.stderr
    assert transect("products", "get", store, cloud, "-o", out).returncode == 2


def test_history_is_that_of_one_product_or_of_all(store: Path) -> None:
    ids = listed(store)
    gone = transect("products", "delete", store, ids["summary"], "--reason", "wrong calibration")
    assert (gone.returncode, ids["summary"][:6] in gone.stdout) == (0, True)

    def events(*words: object) -> list[tuple[str, str]]:
        done = transect("products", "history", store, *words, "--json")
        return [(each["what"], each["id"]) for each in json.loads(done.stdout)["events"]]

    assert events(ids["summary"]) == [("put", ids["summary"]), ("delete", ids["summary"])]
    assert len(events()) == 3
    told = transect("products", "history", store, ids["summary"]).stdout
    assert "wrong calibration" in told
    assert ids["cloud"][:6] not in told


def test_pruning_shows_what_would_go_then_removes_it_and_keeps_what_others_were_made_from(
    store: Path, tmp_path: Path
) -> None:
    clouds = ("products", "prune", store, "--kind", "PointCloud", "--keep-latest", 0)
    nothing = transect(*clouds)
    assert nothing.stdout == "removed 0 products, 0 B\n"  # the report was made from it
    rehearsed = transect("products", "prune", store, "--keep-latest", 0, "--dry-run")
    assert "would remove 2 products, 8 kB" in rehearsed.stdout
    assert len(listed(store)) == 2
    assert "removed 0 products" in transect("products", "prune", store, "--before", "1999-01-01").stdout
    low = transect("products", "prune", store, "--below", 0.5, "--reason", "no score")
    assert "removed 2 products" in low.stdout
    assert listed(store) == {}
    assert "no score" in transect("products", "history", store).stdout


def verify(store: Path, *words: str) -> tuple[Done, dict[str, object]]:
    told = transect("products", "verify", store, *words)
    document = transect("products", "verify", store, "--json")
    assert told.returncode == document.returncode
    return told, json.loads(document.stdout)


def test_a_payload_that_was_altered_is_found_and_not_taken_over_by_others(
    store: Path, tmp_path: Path
) -> None:
    cloud, file = listed(store)["cloud"], payload_of(store)
    file.chmod(0o644)
    file.write_bytes(LARGE_CONTENT.replace(b"cloud", b"cl0ud"))
    told, document = verify(store)
    assert told.returncode == 4
    assert told.stdout.startswith(f"{cloud[:6]}")
    assert told.stdout.endswith("2 products, 1 problems\n")
    assert [identifier for identifier, _ in document["problems"]] == [cloud]  # pyright: ignore[reportGeneralTypeIssues]
    merged = transect("products", "merge", tmp_path / "other.gpkg", store)
    assert merged.returncode == 3
    assert merged.stdout.endswith("1 corrupt there\n")
    assert f"corrupt: {cloud[:6]}" in merged.stderr
    again = transect("products", "merge", tmp_path / "other.gpkg", store)
    assert again.stdout.startswith("0 added, 1 known")
    assert set(listed(tmp_path / "other.gpkg")) == {"summary"}


def test_a_payload_that_no_product_has_is_counted_and_swept(store: Path) -> None:
    orphan = payload_of(store).parent / f"{'0' * 64}.ply"
    orphan.write_bytes(b"left by a process that was killed")
    told, document = verify(store)
    assert (told.returncode, "1 orphaned payloads" in told.stdout) == (0, True)
    assert len(document["orphans"]) == 1  # pyright: ignore[reportArgumentType]
    assert orphan.exists()
    assert "1 orphaned payloads deleted" in verify(store, "--sweep")[0].stdout
    assert not orphan.exists()
    assert "orphan" not in verify(store)[0].stdout


def test_products_are_exported_to_programs_that_know_places_and_times(store: Path, tmp_path: Path) -> None:
    done = transect("products", "export", store, "--format", "geojson", "-o", tmp_path / "a.geojson")
    assert (done.returncode, "wrote 2 products" in done.stderr) == (0, True)
    features = json.loads((tmp_path / "a.geojson").read_text())["features"]
    shapes = {each["properties"]["name"]: each["geometry"] for each in features}
    assert shapes["summary"] is None
    assert shapes["cloud"]["type"] == "Polygon"
    stac = transect("products", "export", store, "--format", "stac", "-o", tmp_path / "stac")
    assert "left out 2 without a time in UTC" in stac.stderr
    few = transect(
        "products", "export", store, "--format", "stac", "-o", tmp_path / "few", "--kind", "Nothing"
    )
    assert (few.returncode, "left out" in few.stderr) == (0, False)


def test_a_map_is_drawn_of_what_is_asked_for(store: Path, tmp_path: Path) -> None:
    whole = transect("products", "map", store, "-o", tmp_path / "map.png", "--area", HERE)
    assert (whole.returncode, (tmp_path / "map.png").stat().st_size > 1000) == (0, True)
    assert transect("products", "map", store, "-o", tmp_path / "map.png").returncode == 2
    unknown = transect("products", "map", store, "-o", tmp_path / "m.png", "--area", "a,b,c,d")
    assert (unknown.returncode, "--area 149.89,-34.61" in unknown.stderr) == (2, True)

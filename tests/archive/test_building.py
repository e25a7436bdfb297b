"""Bundles on disk: the same bytes twice, versions that grow by the rules, and nothing half-written."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest
from tests.archive.sample import BUNDLE, X, sample_bundle, sample_table

from transect.archive.builder import build_bundle
from transect.archive.bundle import Bundle, BundleProduct, Collection, ProductFile
from transect.archive.bundle_reader import find_products, read_bundle
from transect.archive.contents.files import TextLines
from transect.archive.identifiers import Lid, Vid
from transect.errors import UsageError

Make = Callable[..., Bundle]
TABLE = BUNDLE.child("data_raw").child("table")


@pytest.fixture
def make(tmp_path: Path) -> Make:
    paper = tmp_path / "paper.pdf"
    paper.write_bytes(b"%PDF-1.7 of three bytes")
    return lambda *given, **said: sample_bundle(paper, *given, **said)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _versions(folder: Path) -> dict[Lid, str]:
    return {lid: str(each.lidvid.vid) for lid, each in find_products(folder).items()}


def test_building_twice_gives_the_same_bytes(make: Make, tmp_path: Path) -> None:
    for name in ("a", "b"):
        build_bundle(make(), tmp_path / name)
    assert _files(tmp_path / "a") == _files(tmp_path / "b")
    assert len(_files(tmp_path / "a")) == 30  # 16 labels, 8 files of products, 5 inventories, a readme


def test_building_over_a_bundle_that_did_not_change_changes_nothing(make: Make, tmp_path: Path) -> None:
    build_bundle(make(), tmp_path / "b")
    before = _files(tmp_path / "b")
    built = build_bundle(make(created="2025-01-01T00:00:00Z"), tmp_path / "b")
    assert set(built.changes.values()) == {"none"}
    assert _files(tmp_path / "b") == before


def test_inventories_are_sorted_and_end_their_lines_with_crlf(make: Make, tmp_path: Path) -> None:
    build_bundle(make(), tmp_path / "b")
    raw = (tmp_path / "b/context/collection_context_inventory.csv").read_bytes()
    assert raw == (
        b"P,urn:nasa:pds:sample:context:host.rover::1.0\r\n"
        b"P,urn:nasa:pds:sample:context:investigation.camp::1.0\r\n"
        b"S,urn:nasa:pds:context:target:planet.earth\r\n"
    )


def test_every_label_has_sizes_and_checksums_that_hold(make: Make, tmp_path: Path) -> None:
    build_bundle(make(), tmp_path / "b")
    count = 0
    for product in find_products(tmp_path / "b").values():
        for path, (md5, created) in zip(product.paths, product.files.values(), strict=True):
            assert hashlib.md5(path.read_bytes()).hexdigest() == md5
            assert f'<file_size unit="byte">{path.stat().st_size}<' in product.label.read_text()
            assert created == "2024-05-01T12:00:00Z"
            count += 1
    assert count == 14  # 8 files of products, 5 inventories, a readme


def test_the_checksum_manifest_names_every_file(make: Make, tmp_path: Path) -> None:
    built = build_bundle(make(), tmp_path / "b")
    lines = built.checksums.read_text().splitlines()
    listed = {line[34:]: line[:32] for line in lines}
    assert listed == {name: hashlib.md5(data).hexdigest() for name, data in _files(tmp_path / "b").items()}


def test_other_data_is_a_major_version_up_to_the_bundle(make: Make, tmp_path: Path) -> None:
    build_bundle(make(), tmp_path / "b")
    kept = (tmp_path / "b/data_raw/cloud.xml").read_bytes()
    build_bundle(make(sample_table(X + 1), created="2025-02-03T00:00:00Z"), tmp_path / "b")
    versions = _versions(tmp_path / "b")
    assert {lid for lid, vid in versions.items() if vid == "2.0"} == {TABLE, TABLE.parent, BUNDLE}
    assert {vid for lid, vid in versions.items()} == {"1.0", "2.0"}
    assert (tmp_path / "b/data_raw/cloud.xml").read_bytes() == kept
    label = (tmp_path / "b/data_raw/table.xml").read_text()
    assert "<modification_date>2025-02-03<" in label
    assert "<description>data changed<" in label


def test_another_label_is_a_minor_version_up_to_the_bundle(make: Make, tmp_path: Path) -> None:
    build_bundle(make(), tmp_path / "b")
    build_bundle(make(title="Better said"), tmp_path / "b")
    versions = _versions(tmp_path / "b")
    assert versions[TABLE] == versions[BUNDLE] == versions[BUNDLE.child("data_raw")] == "1.1"
    assert versions[BUNDLE.child("browse")] == "1.0"
    assert "<creation_date_time>2024-05-01T12:00:00Z<" in (tmp_path / "b/data_raw/table.xml").read_text()


def test_histories_keep_all_versions(make: Make, tmp_path: Path) -> None:
    for number in range(3):
        build_bundle(make(sample_table(X + number)), tmp_path / "b")
    [table] = [each for lid, each in find_products(tmp_path / "b").items() if lid == TABLE]
    assert [str(change.vid) for change in table.history] == ["3.0", "2.0"]


def test_a_product_that_is_gone_or_new_is_a_major_version_of_its_collection(
    make: Make, tmp_path: Path
) -> None:
    build_bundle(make(), tmp_path / "b")
    bundle = make()
    first, *others = bundle.collections
    fewer = replace(first, members=first.members[1:])
    built = build_bundle(replace(bundle, collections=(fewer, *others)), tmp_path / "b")
    assert built.removed == (TABLE,)
    assert _versions(tmp_path / "b")[BUNDLE] == _versions(tmp_path / "b")[first.lid] == "2.0"
    assert not (tmp_path / "b/data_raw/table.csv").exists()


def test_a_version_is_never_used_again_for_other_bytes(make: Make, tmp_path: Path) -> None:
    build_bundle(make(), tmp_path / "b")
    before = _files(tmp_path / "b")
    bundle = make(sample_table(X + 1))
    first, *others = bundle.collections
    fixed = [replace(each, vid=Vid(1, 0)) for each in first.members if isinstance(each, BundleProduct)]
    asked = replace(bundle, collections=(replace(first, members=fixed), *others))
    with pytest.raises(UsageError, match=r"table::1\.0 exists already, with other data") as error:
        build_bundle(asked, tmp_path / "b")
    assert "2.0" in error.value.hint
    assert _files(tmp_path / "b") == before


class _Broken:
    def write(self, out: IO[bytes]) -> list[object]:
        out.write(b"half of it")
        raise KeyboardInterrupt


def test_an_interrupted_build_leaves_the_previous_bundle_whole(make: Make, tmp_path: Path) -> None:
    build_bundle(make(), tmp_path / "b")
    before = _files(tmp_path)
    bundle = make(sample_table(X + 1))
    misc = bundle.collections[1]
    bad = BundleProduct(
        misc.lid.child("bad"), "Bad", (ProductFile("bad.txt", _Broken()),), "Product_Ancillary"
    )
    others = (bundle.collections[0], replace(misc, members=[bad]), *bundle.collections[2:])
    with pytest.raises(KeyboardInterrupt):
        build_bundle(replace(bundle, collections=others), tmp_path / "b")
    assert _files(tmp_path) == before


def test_a_folder_that_holds_something_else_is_refused(make: Make, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="does not hold"):
        build_bundle(make(), tmp_path / "mine")
    assert (tmp_path / "mine/thesis.txt").exists()


def test_two_products_of_one_name_and_names_that_are_not_allowed_are_refused() -> None:
    lid = BUNDLE.child("miscellaneous")
    notes = BundleProduct(
        lid.child("notes"), "Notes", (ProductFile("notes.txt", TextLines("x")),), "Product_Ancillary"
    )
    odd = replace(notes, files=(ProductFile("no suffix", TextLines("x")),))
    for members, why in (([notes, notes], "two products"), ([odd], "no name for a file")):
        collection = Collection(lid, "Miscellaneous", "Notes", members)
        with pytest.raises(UsageError, match=why):
            Bundle(BUNDLE, "Twice", (collection,), "2024-05-01T00:00:00Z")


def test_members_and_collections_are_called_by_what_they_belong_to() -> None:
    with pytest.raises(UsageError, match="begins with 'data'"):
        Collection(BUNDLE.child("raw"), "Data", "Raw data")
    stranger = BundleProduct(Lid("urn:nasa:pds:other:data:x"), "X", (ProductFile("x.txt", TextLines("x")),))
    with pytest.raises(UsageError, match="cannot be a member"):
        Collection(BUNDLE.child("data"), "Data", "Data", [stranger])


def test_a_bundle_that_is_read_and_built_again_has_the_same_products(make: Make, tmp_path: Path) -> None:
    build_bundle(make(), tmp_path / "b")
    build_bundle(read_bundle(tmp_path / "b", "2026-01-01T00:00:00Z"), tmp_path / "again")
    before, after = _files(tmp_path / "b"), _files(tmp_path / "again")
    own = {name for name in before if "collection_" in name or "bundle_" in name}
    assert {name: data for name, data in before.items() if name not in own} == {
        name: data for name, data in after.items() if name not in own
    }
    inventories = [name for name in before if name.endswith("_inventory.csv")]
    assert all(before[name] == after[name] for name in inventories)
    assert _versions(tmp_path / "b") == _versions(tmp_path / "again")

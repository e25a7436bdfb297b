"""Bundles against NASA's schemas and rules; what is registered; and bundles of others, built again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.archive.sample import sample_bundle
from tests.archive.test_making import recording as every_type
from tests.formats.corpus import sample

import transect
from transect.archive.assembly.bundles import Material, make_bundle
from transect.archive.assembly.config import parse_config
from transect.archive.assembly.sources import build, template_text
from transect.archive.builder import build_bundle, context_path
from transect.archive.bundle_reader import ExistingProduct, find_versions, read_bundle, read_inventory
from transect.archive.context import ContextRegistry, find_registry
from transect.archive.identifiers import Lidvid, identifier_part
from transect.archive.validation.options import ValidationOptions
from transect.archive.validation.validator import validate
from transect.errors import ParseError
from transect.recording import Recording

pytestmark = pytest.mark.real

RECORDINGS = ("ameds", "rosario", "sdi", "rosbag-ros1", "pds4", "calibration-ros")
"""Small ones of the formats' own tests."""


@pytest.fixture
def pds4(real_data: Path) -> Path:
    return real_data / "pds4"


@pytest.fixture
def registry(pds4: Path) -> ContextRegistry:
    return find_registry(pds4 / "registered_context_products.json")


def _judge(folder: Path, pds4: Path) -> Any:
    """Validate a bundle by every rule there is; its own context products are reported."""
    own = (context_path(folder),) if context_path(folder).is_file() else ()
    return validate([folder], ValidationOptions("bundle", (pds4 / "schemas",), added_context=own))


def _unwanted(report: Any) -> list[str]:
    """Return all that was found but that context products of the bundle's own are not registered yet."""
    assert not report.notes, "something was not checked"
    found = [each for each in report.problems if not each.type.endswith("product_not_registered")]
    return [f"{each.file}: {each.type} {each.text}" for each in found]


def test_a_product_of_every_kind_has_a_label_that_is_valid(pds4: Path, tmp_path: Path) -> None:
    paper = tmp_path / "paper.pdf"
    shutil.copy(pds4 / "bundles/ladee_test/mission_bundle/document/ladee_spacecraft_rev1_2.pdf", paper)
    made = build_bundle(sample_bundle(paper), tmp_path / "b")
    report = _judge(made.folder, pds4)
    assert report.labels == 16
    assert [each for each in _unwanted(report) if "not_pdfa" not in each] == []


def test_every_type_of_stream_has_labels_that_are_valid(pds4: Path, tmp_path: Path) -> None:
    recording: Recording = every_type.__wrapped__()  # pyright: ignore[reportFunctionMemberAccess]
    config = parse_config(template_text(recording, "nowhere"), tmp_path / "archive.yaml")
    bundle, _ = make_bundle(config, Material(recording), ContextRegistry())
    made = build_bundle(bundle, tmp_path / "b")
    report = _judge(made.folder, pds4)
    assert report.labels == len(list(made.folder.rglob("*.xml"))) > 60
    assert _unwanted(report) == []


@pytest.mark.parametrize("name", RECORDINGS)
def test_any_recording_becomes_a_valid_bundle_with_the_same_numbers(
    name: str, pds4: Path, tmp_path: Path
) -> None:
    path = sample(name).write(tmp_path / "recording")
    made = build(path, tmp_path / "b", pds4 / "registered_context_products.json")
    assert _unwanted(_judge(made.folder, pds4)) == []
    before, after = transect.open(path), transect.open(made.folder)
    for stream in (each for each in before.streams if each.loader is None):
        name = identifier_part(stream.name)
        assert np.array_equal(after[name].t_ns, stream.t_ns)
        for column in (each for each in stream.columns if each in after[name].columns):
            if stream._is_numeric(column):
                assert np.array_equal(
                    np.asarray(after[name][column], float), np.asarray(stream[column], float), equal_nan=True
                )


def test_what_is_registered_is_referred_to_and_what_is_not_gets_a_product(
    registry: ContextRegistry, tmp_path: Path
) -> None:
    path = tmp_path / "path.tum"
    path.write_text("1650000000 0 0 0 0 0 0 1\n1650000001 1 0 0 0 0 0 1\n")
    text = template_text(transect.open(path), "path.tum")
    insight = "urn:nasa:pds:context:instrument_host:spacecraft.insight"
    changes = {f"lid: {EARTH}": 'lid: ""', "  name: Earth": "  name: mars"}
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    head, host, rest = text.partition("host:")
    text = head + host + rest.replace('lid: ""', f"lid: {insight}", 1)
    bundle, _ = make_bundle(parse_config(text, tmp_path / "a.yaml"), Material(transect.open(path)), registry)
    context = next(each for each in bundle.collections if each.type == "Context")
    assert [str(lid) for lid in context.secondary] == [insight, "urn:nasa:pds:context:target:planet.mars"]
    assert [each.lid.name for each in context.members] == ["investigation.path"]
    build_bundle(bundle, tmp_path / "b")
    label = (tmp_path / "b/data_derived/trajectory.xml").read_text()
    assert "<name>Mars</name>" in label
    wrong = text.replace(insight, f"{insight}t")
    with pytest.raises(ParseError, match="is not registered") as error:
        make_bundle(parse_config(wrong, tmp_path / "a.yaml"), Material(transect.open(path)), registry)
    assert "spacecraft.insight" in error.value.hint


EARTH = "urn:nasa:pds:context:target:planet.earth"


@pytest.mark.parametrize("name", ["ladee_test/mission_bundle", "naif1", "naif2", "naif3"])
def test_a_bundle_that_is_built_again_has_the_same_tables_members_and_versions(
    name: str, pds4: Path, tmp_path: Path
) -> None:
    folder = pds4 / "bundles" / name
    build_bundle(read_bundle(folder, "2024-05-01T00:00:00Z"), tmp_path / "b")
    before, after = find_versions(folder), find_versions(tmp_path / "b")
    newest = max(each for each in before if before[each].kind == "Product_Bundle")
    assert newest in after
    assert set(after) <= set(before)
    kept: set[Lidvid] = set()
    for lidvid, product in after.items():
        if product.kind == "Product_Collection":
            assert _members(product) == _members(before[lidvid])
        elif product.kind != "Product_Bundle":
            assert product.label.read_bytes() == before[lidvid].label.read_bytes()
            pairs = zip(product.paths, before[lidvid].paths, strict=True)
            assert all(new.read_bytes() == old.read_bytes() for new, old in pairs)
            kept.add(lidvid)
    inside = [to for each in after.values() if each.kind == "Product_Collection" for _, to in _members(each)]
    assert kept == {each for each in before if str(each) in inside}
    assert len(kept) >= 3


def _members(collection: ExistingProduct) -> list[tuple[str, str]]:
    return sorted((status, str(to)) for status, to in read_inventory(collection))

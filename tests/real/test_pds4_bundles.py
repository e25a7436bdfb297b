"""Whole bundles: LADEE's mission, and three growing states of the kernels of Mars 2020."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from transect.archive.validation.options import ValidationOptions
from transect.archive.validation.problems import ValidationReport
from transect.archive.validation.validator import validate

NAMES = {"naif1": b"mars2020.spice_test1", "naif2": b"mars2020.spice_test2", "naif3": b"mars2020.spice"}
"""Bundles that were made for tests: their identifiers differ, and only some sizes were corrected."""


def judge(path: Path, real_data: Path, **options: object) -> ValidationReport:
    schemas = (real_data / "pds4" / "schemas",)
    return validate([path], ValidationOptions(rule="bundle", schemas=schemas, **options))  # pyright: ignore[reportArgumentType]


@pytest.fixture(scope="module")
def states(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The three states under one identifier, without the sizes and sums of inventories that were changed."""
    found: list[Path] = []
    for name, lid in NAMES.items():
        folder = tmp_path_factory.mktemp("states") / name
        shutil.copytree(real_data / "pds4" / "bundles" / name, folder, copy_function=shutil.copyfile)
        for path in (*folder.rglob("*.xml"), *folder.rglob("*.csv")):
            content = re.sub(lid + rb"(?=[:<])", b"mars2020.spice", path.read_bytes())
            if path.name.startswith("collection"):
                content = re.sub(rb"\s*<(file_size|md5_checksum).*", b"", content)
            path.write_bytes(content)
        found.append(folder)
    return found


def test_the_bundle_whose_sizes_were_corrected_is_valid(real_data: Path) -> None:
    report = judge(real_data / "pds4" / "bundles" / "naif2", real_data)
    assert (report.verdict, report.skipped) == ("valid with warnings", 2)  # the first bundle and collection
    assert {each.type for each in report.problems if each.severity != "info"} == {
        "warning.integrity.reference_not_found"
    }


@pytest.mark.parametrize("name", ["naif1", "naif3"])
def test_inventories_that_were_changed_after_their_labels_are_found(real_data: Path, name: str) -> None:
    report = judge(real_data / "pds4" / "bundles" / name, real_data)
    errors = [each for each in report.problems if each.severity == "error"]
    assert {each.kind for each in errors} <= {"label.filesize_mismatch", "label.checksum_mismatch"}
    assert {each.kind for each in errors} >= {"label.filesize_mismatch"}
    assert all("inventory" in each.data for each in errors)


def test_ladee_s_bundle_of_an_old_model_breaks_rules_that_came_later(real_data: Path) -> None:
    report = judge(real_data / "pds4" / "bundles" / "ladee_test" / "mission_bundle", real_data, context=False)
    errors = {each.kind for each in report.problems if each.severity == "error"}
    assert errors == {"integrity.missing_parent_prefix", "table.records_mismatch", "table.missing_CRLF"}
    assert not [
        each for each in report.problems if each.type in ("error.label.schema", "error.label.schematron")
    ]


@pytest.mark.parametrize("step", [0, 1])
def test_each_state_is_accepted_as_growth_of_the_one_before(
    states: list[Path], real_data: Path, step: int
) -> None:
    report = judge(states[step + 1], real_data, against=states[step], products=False)
    assert not [each for each in report.problems if each.severity == "error"]
    assert not [each for each in report.problems if each.kind == "integrity.member_not_found"]


def test_other_bytes_under_an_old_version_are_refused(
    states: list[Path], real_data: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(states[1], folder)
    kernel = folder / "spice_kernels" / "m2020_168_sclkscet_refit_v01.tsc"
    kernel.write_bytes(kernel.read_bytes() + b"\n")
    report = judge(folder, real_data, against=states[0], products=False)
    (said,) = [each for each in report.problems if each.severity == "error"]
    assert (said.type, said.data) == (
        "error.integrity.version_reused", "spice_kernels/m2020_168_sclkscet_refit_v01.tsc"
    )  # fmt: skip

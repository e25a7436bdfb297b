"""`transect archive validate`, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from tests.archive.validation.products import area, label, write
from tests.commands import transect

from transect.archive.validation.problems import ValidationReport, problem
from transect.cli.archive import show_report

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TRANSECT_PDS4_SCHEMAS", raising=False)
    return write(tmp_path, "a.xml", label(area("b.dat", more="<file_size>2</file_size>")), b_dat=b"x")


def test_it_ends_with_4_if_something_is_invalid_and_says_what_was_not_checked_first(product: Path) -> None:
    done = transect("archive", "validate", product)
    assert done.returncode == 4
    lines = done.stdout.splitlines()
    assert lines[0].startswith("note: XSD and Schematron were not checked")
    assert "  error.label.filesize_mismatch  line 11, b.dat" in lines
    assert lines[-1] == "invalid: 1 error, 0 warnings in 1 label"


def test_it_ends_with_0_if_there_are_only_warnings(product: Path) -> None:
    (product.parent / "b.dat").write_bytes(b"xy")
    product.write_text(product.read_text().replace("b.dat", "B.dat"))
    done = transect("archive", "validate", product)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (
        0, "valid with warnings as far as checked: 0 errors, 1 warning in 1 label"
    )  # fmt: skip


def test_json_is_what_its_schema_says(product: Path) -> None:
    done = transect("archive", "validate", product, "--json")
    report = json.loads(done.stdout)
    page = (ROOT / "docs" / "pds4.md").read_text()
    schema = json.loads(page.rpartition("```json schema\n")[2].partition("```")[0])
    jsonschema.Draft202012Validator(schema).validate(report)
    assert (report["verdict"], report["labels"], report["counts"]["error"]) == ("invalid", 1, 1)
    assert report["types"]["error.label.filesize_mismatch"] == 1
    (said,) = [each for each in report["problems"] if each["severity"] == "error"]
    assert (said["file"], said["line"], said["data"]) == ("a.xml", 11, "b.dat")


def test_several_processes_say_what_one_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transect.archive.validation.validator.MIN_PARALLEL_LABELS", 2)
    for number in range(3):
        write(tmp_path, f"p{number}.xml", label(vid=f"{number}.x"))
    one = transect("archive", "validate", tmp_path, "--json").stdout
    assert transect("archive", "validate", tmp_path, "--json", "--jobs", "2").stdout == one
    assert json.loads(one)["counts"]["error"] == 3


def test_paths_may_stand_in_a_file(product: Path) -> None:
    listing = product.parent / "targets.txt"
    listing.write_text(f"{product}\n\n")
    assert "in 1 label" in transect("archive", "validate", "--targets", listing).stdout


def test_a_typing_mistake_is_a_usage_error(product: Path) -> None:
    assert transect("archive", "validate", product, "--rule", "bundel").returncode == 2
    assert transect("archive", "validate").returncode == 2
    assert transect("archive", "validate", product, "--schemas", "nowhere").returncode == 2


def test_what_is_said_of_many_labels_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    same = [
        problem("label.context_ref_not_found", "nobody knows x", file=f"{k}.xml", line=9) for k in range(3)
    ]
    other = [problem("label.schema", "two labels have it", file=f"{k}.xml", line=4) for k in range(2)]
    show_report(ValidationReport(("bundle",), 3, 0, (), tuple(same + other)))
    said = capsys.readouterr().out
    assert said.count("nobody knows x") == 1
    assert "(in 3 labels, first 0.xml:9)" in said
    assert said.count("two labels have it") == 2
    assert said.endswith("invalid: 5 errors, 0 warnings in 3 labels\n")


def test_at_most_200_problems_are_printed_with_one_heading_for_each_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    many = [problem("label.schema", f"element {k} is unknown", file="a.xml", line=k) for k in range(1, 251)]
    silent = problem("label.schema", "it was looked at", file="a.xml")
    show_report(ValidationReport(("bundle",), 1, 3, ("schemas are old",), (*many, silent)))
    said = capsys.readouterr().out
    assert said.startswith("note: schemas are old\na.xml\n")
    assert said.count("a.xml\n") == 1
    assert "... and 51 more; --json lists all\n" in said
    assert said.endswith("251 errors, 0 warnings in 1 label, 3 older ones left out\n")


def test_only_labels_of_one_suffix_are_looked_at_if_that_is_asked_for(tmp_path: Path) -> None:
    for name in ("a.xml", "b.lblx"):
        write(tmp_path, name, label(vid="1.x"))
    both = json.loads(transect("archive", "validate", tmp_path, "--json").stdout)
    one = json.loads(transect("archive", "validate", tmp_path, "--json", "--extension", "lblx").stdout)
    assert (both["labels"], one["labels"]) == (2, 1)
    assert {each["file"] for each in one["problems"] if each["file"]} == {"b.lblx"}
    known = transect("archive", "validate", tmp_path, "--alternate-file-paths", tmp_path)
    assert known.returncode == 4
    wrong = transect("archive", "validate", tmp_path, "--alternate-file-paths", f"{tmp_path}, none")
    assert (wrong.returncode, "there is no folder none" in wrong.stderr) == (2, True)
    assert "--alternate-file-paths DIR,DIR" in wrong.stderr

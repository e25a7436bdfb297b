"""Cases of NASA's validate tool, with their switches: the same verdict, the same types of problems.

`MANIFEST.json` says what NASA's tool finds in each. A case is complete if all of its files are here.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.commands import transect

VERDICTS = {"valid": "pass", "valid with warnings": "pass_with_warnings", "invalid": "fail"}
FLAGS = {
    "--skip-content-validation": ["--skip-content"],
    "--no-data-check": ["--skip-content"],
    "--skip-context-validation": ["--skip-context"],
    "-skip-context-validation": ["--skip-context"],
    "--disable-context-mismatch-warnings": ["--skip-context-mismatches"],
    "--skip-context-reference-check": [],
    "--skip-product-validation": ["--skip-products"],
    "--skip-strict-collection-membership": ["--lenient-members"],
    "--strict-field-checks": ["--strict-fields"],
    "-t": [],
    "-v1": [],
}
"""NASA's switches without a value, and ours."""
VALUES = {"-R": "--rule", "-M": "--checksums", "-x": "--schema", "-S": "--schematron",
          "--add-context-products": "--add-context"}  # fmt: skip
"""NASA's switches with a value, and ours, if they are called otherwise."""
OTHER_VERDICT = {("690", "1")}
OTHER_TYPES = {("416", "2"), ("416", "4"), ("292", "7")}
"""What differs, and why: docs/pds4.md."""


@dataclass(frozen=True)
class Case:
    """One case, and what came out."""

    number: tuple[str, str]
    expected: dict[str, Any]
    report: dict[str, Any]

    @property
    def verdict(self) -> str:
        return VERDICTS[self.report["verdict"]]

    @property
    def expected_errors(self) -> dict[str, int]:
        named = {key.partition(":")[2]: int(count) for key, count in self.expected["expect"].items()}
        return {name: count for name, count in named.items() if name.startswith("error.")}


def arguments(case: dict[str, Any], cases: Path) -> Iterator[str]:
    """Give our arguments for those of NASA's tool."""
    folder = cases / case["dir"]
    words = iter(
        shlex.split(case["args"].replace("{datasrc}", str(folder)).replace("{datasink}", str(folder)))
    )
    extension = "xml"  # NASA's default; ours is both
    for word in words:
        if word in FLAGS:
            yield from FLAGS[word]
        elif word in ("-e", "--label-extension"):
            extension = next(words)
        elif word == "-C":
            catalog = here(next(words), cases)
            yield from ("--catalog", str(catalog)) if catalog.is_file() else ()
        elif word == "-c":
            next(words)  # a configuration: it says where schemas are
        elif word == "--target-manifest":
            text = here(next(words), cases).read_text()
            yield from text.replace("{datasrc}", str(folder)).split()
        elif word.startswith("-"):
            yield VALUES.get(word) or f"--{word.lstrip('-')}"
            yield str(here(next(words).removeprefix("pds4."), cases))
        else:
            yield word
    yield from ("--extension", extension)


def here(name: str, cases: Path) -> Path:
    """Return the file that an argument names; a schema that is not with the cases is with the others."""
    path = Path(name.replace("src/test/resources", str(cases)))
    return (
        cases.parent / "schemas" / path.name
        if path.suffix in (".xsd", ".sch") and not path.exists()
        else path
    )


@pytest.fixture(scope="module")
def cases(real_data: Path) -> list[Case]:
    folder = real_data / "pds4" / "validate-cases"
    done: list[Case] = []
    listed = json.loads((folder / "MANIFEST.json").read_text())
    once = {(each["dir"], each["args"]): each for each in listed if each["available"]}  # some are there twice
    for each in once.values():
        words = list(arguments(each, folder))
        targets = [Path(word) for word in words if word.startswith(str(folder / each["dir"]))]
        missing = [path for path in targets if not path.exists() and "nonexistent" not in path.name]
        if missing or each["absent_files"]:
            continue  # incomplete here
        printed = transect("archive", "validate", "--json", "--schemas", folder.parent / "schemas", *words)
        assert printed.returncode in (0, 4), printed.stderr
        done.append(Case((each["issue"], each["subtest"]), each, json.loads(printed.stdout)))
    return done


def test_nearly_all_complete_cases_get_the_verdict_that_nasa_gives(cases: list[Case]) -> None:
    other = {case.number for case in cases if case.verdict != case.expected["verdict"]}
    assert len(cases) >= 100
    assert len(other) <= 0.05 * len(cases)
    assert other == OTHER_VERDICT


def test_nearly_all_failing_cases_fail_for_the_reason_that_nasa_gives(cases: list[Case]) -> None:
    failing = [case for case in cases if case.expected["verdict"] == "fail"]
    other = {case.number for case in failing if not set(case.expected_errors) <= set(case.report["types"])}
    assert len(failing) >= 30
    assert len(other) <= 0.1 * len(failing)
    assert other == OTHER_TYPES


def test_there_are_at_most_twice_as_many_errors_as_nasa_finds(cases: list[Case]) -> None:
    failing = [case for case in cases if case.expected["verdict"] == "fail"]
    for case in failing:
        found = sum(each["severity"] == "error" for each in case.report["problems"])
        assert found <= 2 * sum(case.expected_errors.values()), case.number


def test_valid_cases_have_no_errors_at_all(cases: list[Case]) -> None:
    for case in cases:
        if case.expected["verdict"] != "fail":
            assert case.report["counts"]["error"] == 0, case.number

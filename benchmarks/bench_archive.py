"""Validating PDS4: many labels through XSD and Schematron, one large table, and the memory that both take.

NASA's own tool is a Java archive that is not on PyPI; beside the table stands what pds4_tools needs to read
it, and beside Schematron the same rules compiled as the ISO skeleton does, each pattern in a mode of its own.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tests.conftest import REAL_DATA

from benchmarks._harness import compare, duration, measured, memory
from benchmarks.bench_pds4 import TABLE, read_pds4_tools, write_product
from transect.archive.validation.labels import Label
from transect.archive.validation.options import ValidationOptions
from transect.archive.validation.schematron import Saxon, read_rules, stylesheet
from transect.archive.validation.validator import LabelValidator, validate

SCHEMA_DIR = REAL_DATA / "pds4" / "schemas"
MANY_LABELS, FEW_LABELS = 10_000, 1_000
RULES = ("PDS4_PDS_1B10.sch", "PDS4_MSN_1B00_1100.sch")


def write_labels(folder: Path, count: int) -> Path:
    """Write copies of the arm's label, each with an identifier and a file of its own."""
    [label] = (REAL_DATA / "pds4" / "ida_label").glob("*.xml")
    text = label.read_text(encoding="utf-8")
    folder.mkdir()
    for number in range(count):
        (folder / f"p{number:05d}.xml").write_text(
            text.replace("0629192905_eu", f"{number:010d}_eu"), "utf-8"
        )
    return folder


def check_labels(folder: Path) -> None:
    """Hold all labels of a folder against XSD and Schematron, by two processes."""
    report = validate(
        [folder], ValidationOptions(schemas=(SCHEMA_DIR,), content=False, context=False), jobs=2
    )
    assert report.verdict == "valid", report.problems[:3]


def cpu_of(fn: Callable[[], object]) -> float:
    """Return half of the CPU time that this process and its children take: seconds on two free cores."""

    def used() -> float:
        both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(each.ru_utime + each.ru_stime for each in both)

    before = used()
    fn()
    return (used() - before) / 2


def command(folder: Path) -> list[str]:
    """Return the command that does the same in one process."""
    start = "from transect.cli import main; main()"
    options = ["--skip-content", "--skip-context", "--schemas", str(SCHEMA_DIR)]
    return [sys.executable, "-c", start, "archive", "validate", str(folder), *options]


def walks() -> tuple[Label, Any, Any]:
    """Return a label, our one walk over it, and a walk for each pattern."""
    [path] = (REAL_DATA / "pds4" / "ida_label").glob("*.xml")
    label = Label(path, path.name, path.read_bytes())
    rules = read_rules(SCHEMA_DIR / name for name in RULES)
    apart = [replace(rule, pattern=number) for number, rule in enumerate(rules)]
    saxon = Saxon.start()
    return label, saxon.compile(stylesheet(rules)), saxon.compile(stylesheet(apart))


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        many, few = write_labels(folder / "many", MANY_LABELS), write_labels(folder / "few", FEW_LABELS)
        labels = partial(check_labels, many)
        measured(f"{MANY_LABELS} labels, XSD and Schematron, two cores", lambda: cpu_of(labels), 30, 1)
        memory(f"memory, {FEW_LABELS} labels", command(few))
        memory(f"memory, {MANY_LABELS} labels", command(many), 400e6)
        (folder / "table").mkdir()
        path = write_product(folder / "table")
        judge = LabelValidator(ValidationOptions(schemas=(SCHEMA_DIR,), context=False), path.parent)
        duration(f"{TABLE} checked", partial(judge.check, path), 1)
        check, read = partial(judge.check, path), partial(read_pds4_tools, path)
        compare(f"{TABLE} checked / read by pds4_tools", check, read, repeat=3)
    label, one, each = walks()
    node = Saxon.start().processor.parse_xml(xml_text=label.text)
    ours, theirs = (partial(walk.transform_to_string, xdm_node=node) for walk in (one, each))
    compare("Schematron, one walk / one per pattern", ours, theirs, 10)

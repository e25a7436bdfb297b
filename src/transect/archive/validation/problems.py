"""Problems that validation finds, and the report of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")

WARNINGS = frozenset(
    {
        "label.missing_schematron_spec", "label.bad_schematypens",
        "label.missing_schematypens", "label.file_ref_case_mismatch", "label.context_ref_mismatch",
        "label.not_understandable", "integrity.reference_not_found", "integrity.pds4_version_mismatch",
        "integrity.missing_context_reference", "integrity.unreferenced_member",
        "file.not_referenced_in_label", "file.reserved_name_mismatch", "sub_directory.unallowed_name",
        "product_not_registered",
        "table.characters_between_fields", "table.field_value_out_of_special_constant_min_max_range",
        "array.value_out_of_special_constant_min_max_range", "table.field_value_format_specifier_mismatch",
        "table.field_value_format_precision_mismatch", "data.not_described",
        "data_objects.out_of_order", "field.invalid_special_constant", "array.invalid_special_constant",
    }
)  # fmt: skip


@dataclass(frozen=True)
class ValidationProblem:
    """One problem, or one cause of many."""

    kind: str  # NASA's name of the type of problem, without its severity: `table.records_mismatch`
    text: str  # one sentence
    severity: Severity = "error"
    file: str = ""  # the label, or the file or folder that it is about, from the folder that is validated
    line: int = 0  # of the label, from 1; 0 if there is none
    data: str = ""  # the data file, where that is another one
    part: str = ""  # the table, array or header in that file
    field: str = ""  # name and number of the field
    record: int = 0  # first record, from 1; 0 if there is none
    count: int = 1  # how often it occurs
    cause: str = ""  # what would make all of it disappear, where that is known

    @property
    def type(self) -> str:
        """NASA's name of the type: `error.table.records_mismatch`."""
        return f"{self.severity}.{self.kind}"

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON says of it: what is empty is left out."""
        said = {name: getattr(self, name) for name in self.__dataclass_fields__ if getattr(self, name)}
        return {"type": self.type, **{name: value for name, value in said.items() if name != "kind"}}


def problem(kind: str, text: str, **where: Any) -> ValidationProblem:
    """Return a problem of the severity that its kind has, unless one is given."""
    usual: Severity = "warning" if kind in WARNINGS else "error"
    return ValidationProblem(kind, text, where.pop("severity", usual), **where)


def located(problems: Iterable[ValidationProblem], **where: Any) -> Iterator[ValidationProblem]:
    """Yield problems with what they do not say of their place filled in."""
    for each in problems:
        missing = {name: value for name, value in where.items() if not getattr(each, name)}
        yield replace(each, **missing) if missing else each


Verdict = Literal["valid", "valid with warnings", "invalid"]


@dataclass(frozen=True)
class ValidationReport:
    """What came out."""

    paths: tuple[str, ...]  # what was validated
    # how many labels were judged, and how many were left out: older versions of bundles and collections
    labels: int
    skipped: int
    notes: tuple[str, ...]  # what was not checked, and why
    problems: tuple[ValidationProblem, ...]  # in the order of the files

    @property
    def verdict(self) -> Verdict:
        """The worst that was found."""
        counts = self.counts
        return "invalid" if counts["error"] else "valid with warnings" if counts["warning"] else "valid"

    @property
    def headline(self) -> str:
        """The verdict for people, who have to know if it is one on a part of what there is to check."""
        if self.verdict == "invalid" or not self.notes:
            return self.verdict
        return f"{self.verdict} as far as checked"

    @property
    def counts(self) -> dict[str, int]:
        """Number of problems by severity; one cause of many counts once."""
        found = Counter[str](each.severity for each in self.problems)
        return {severity: found[severity] for severity in SEVERITIES}

    @property
    def types(self) -> dict[str, int]:
        """How often each type of problem occurs, each record counted."""
        found: Counter[str] = Counter()
        for each in self.problems:
            found[each.type] += each.count
        return dict(sorted(found.items()))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as `--json` prints it; `docs/pds4.md` describes it."""
        return {
            "verdict": self.verdict,
            "paths": list(self.paths),
            "labels": self.labels,
            "skipped": self.skipped,
            "notes": list(self.notes),
            "counts": self.counts,
            "types": self.types,
            "problems": [each.to_dict() for each in self.problems],
        }

"""Tables in the layouts of the documents."""

from __future__ import annotations

import csv
import io

import pytest

from transect.errors import UsageError
from transect.evaluation.result import Result
from transect.evaluation.tables import Table, table_of, text_of


def judged(reference: str, estimate: str, rmse: float | None, length: float, **truth: float) -> Result:
    if rmse is None:
        return Result(estimate, reference, truth={"length_m": length, **truth}, failure="no poses")
    statistics = dict.fromkeys(("rmse", "mean", "median", "std", "max"), rmse)
    ate = {"translation": statistics, "rotation": None, "percent": 100 * rmse / length}
    pairs = {"matched": 9, "candidates": 10}
    return Result(estimate, reference, {"ate": ate}, pairs=pairs, truth={"length_m": length, **truth})


# Errors of document 001, Table 4; lengths of its Table 3.
ROSARIO = [
    judged("Rosario 01", "ORB-SLAM2", 1.41, 615.15),
    judged("Rosario 01", "S-PTAM", 3.85, 615.15),
    judged("Rosario 05", "ORB-SLAM2", 2.23, 330.43),
    judged("Rosario 05", "S-PTAM", None, 330.43),
]


def test_sequences_are_rosarios_table_4() -> None:
    table = table_of(ROSARIO, "sequences")
    assert table.headings == ("Sequence", "ORB-SLAM2", "S-PTAM")
    assert table.rows[0] == ("Rosario 01", "1.41 (0.23%)", "3.85 (0.63%)")
    assert table.rows[1][2] == "X"
    assert "X denotes tracking failure" in table.caption


def test_traverses_are_amedss_table_6_with_the_error_beside() -> None:
    """Traverses 0 and 1 of document 000, Table 6; the second's 0.36 is cut, not rounded."""
    results = [
        judged("0", "VO", 3.298, 329.8, height_m=46.6, duration_s=25 * 60 + 2),
        judged("1", "VO", 1.0, 195.6, height_m=4.7, duration_s=8 * 60 + 55),
    ]
    table = table_of(results, "traverses")
    assert table.rows[0] == ("0", "329.8", "46.6", "25:02", "0.22", "3.30 (1.00%)")
    assert table.rows[1][1:5] == ("195.6", "4.7", "08:55", "0.37")
    assert table.rows[2] == ("Total", "525.4", None, "33:57", None, None)


def test_metrics_are_a_row_an_estimate_and_only_columns_that_someone_has() -> None:
    table = table_of(ROSARIO)
    assert table.headings[:3] == ("reference", "estimate", "ATE rmse [m]")
    assert not any("deg" in heading or "RPE" in heading for heading in table.headings)
    assert set(table.rows[3][2:]) == {"X"}
    assert table.texts()[0][-1] == "9/10"


def test_latex_markdown_and_csv_escape_what_they_must() -> None:
    table = Table(("name_a", "x|y", "50 %"), (("a&b", 1 / 3, None), ("c,d", float("nan"), 2)), "A_b")
    latex = text_of(table, "latex")
    assert r"name\_a & x|y & 50 \% \\" in latex
    assert r"a\&b & 0.33333 & - \\" in latex
    assert latex.count(r"\begin{") == latex.count(r"\end{") == 2
    markdown = text_of(table, "markdown").splitlines()
    assert markdown[0] == r"| name_a | x\|y | 50 % |"
    assert markdown[1] == "|---|---:|---:|"
    rows = list(csv.reader(io.StringIO(text_of(table, "csv"))))
    assert rows[1:] == [["a&b", repr(1 / 3), ""], ["c,d", "", "2"]]


def test_an_unknown_layout_or_format_names_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="no layout"):
        table_of(ROSARIO, "wide")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="cannot be written"):
        text_of(table_of(ROSARIO), "word")  # type: ignore[arg-type]

"""The page of checks, and that each says what it is for."""

from __future__ import annotations

import runpy
from pathlib import Path

from transect.integrity import catalogue

ROOT = Path(__file__).resolve().parents[2]


def test_the_catalogue_on_the_page_is_that_of_the_checks():
    tool = runpy.run_path(str(ROOT / "tools" / "check_table.py"))
    assert tool["page"]() == tool["PAGE"].read_text("utf-8"), "run tools/check_table.py"


def test_every_check_names_its_limits_and_its_motive():
    for check, _, judges, measures, limits, motive in catalogue.describe():
        assert all((judges, measures, limits, motive)), check

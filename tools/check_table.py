"""Write the catalogue at the end of docs/integrity-checks.md: every check, from the checks themselves."""

from __future__ import annotations

from pathlib import Path

from transect.integrity import catalogue

PAGE = Path(__file__).resolve().parent.parent / "docs" / "integrity-checks.md"
FIRST = "## Catalogue\n"
"""From this line on the page is written by this tool."""


def page() -> str:
    """Return the page."""
    return f"{PAGE.read_text('utf-8').partition(FIRST)[0]}{FIRST}\n{catalogue.markdown_table()}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"wrote {PAGE}")

"""Write the table of docs/faults.md: every fault of `transect inject`, from the faults themselves."""

from __future__ import annotations

from pathlib import Path

from transect.simulation.faults import FAULTS, Fault, target_of

PAGE = Path(__file__).resolve().parent.parent / "docs" / "faults.md"
FIRST = "| fault |"
"""From this line on the page is written by this tool."""


def page() -> str:
    """Return the page."""
    text = PAGE.read_text("utf-8").partition(FIRST)[0]
    head = f"{FIRST} what happens | to | severity 1 | severity counts | a check says |"
    return text + "\n".join([head, "|---" * 6 + "|", *(row(fault) for fault in FAULTS.values()), ""])


def row(fault: Fault) -> str:
    """Return a fault as a row."""
    reasons = " ".join(f"`{reason}`" for reason in fault.reasons) or "(the reader tells)"
    cells = (f"`{fault.name}`", fault.what, target_of(fault), fault.severity, fault.unit, reasons)
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"wrote {PAGE}")

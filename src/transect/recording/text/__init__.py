"""Parsing of numbers and exact times from text; bad rows are located and left out.

- `read_csv` reads delimited text with a known `CsvLayout`, with pyarrow.
- `scan` and `blocks` read free text, separated by blanks or commas, with words among numbers, as `Tokens`.
- `line_pieces` splits a text of any size into pieces of whole lines, `whole_piece` is for a small text;
  `read_twice` is for texts whose pieces depend on the whole text.
- `whole_lines` finds the end of the last complete line; `is_number` defines numbers.
- `refuse_long_lines` raises an error for extremely long lines.
"""

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .delimited import Csv, CsvLayout, read_csv
    from .digits import NO_STAMP, bad_stamp, stamps
    from .lines import (
        TextPiece,
        ends_whole,
        line_pieces,
        read_twice,
        refuse_long_lines,
        whole_lines,
        whole_piece,
    )
    from .tokens import Tokens, blocks, scan

__all__ = [
    "NO_STAMP",
    "Csv",
    "CsvLayout",
    "TextPiece",
    "Tokens",
    "bad_stamp",
    "blocks",
    "ends_whole",
    "is_number",
    "line_pieces",
    "read_csv",
    "read_twice",
    "refuse_long_lines",
    "scan",
    "stamps",
    "whole_lines",
    "whole_piece",
]

__getattr__ = importer(
    __name__,
    {
        "delimited": ("Csv", "CsvLayout", "read_csv"),
        "digits": ("NO_STAMP", "bad_stamp", "stamps"),
        "lines": (
            "TextPiece",
            "ends_whole",
            "line_pieces",
            "read_twice",
            "refuse_long_lines",
            "whole_lines",
            "whole_piece",
        ),
        "tokens": ("Tokens", "blocks", "scan"),
    },
)


def is_number(text: str | bytes) -> bool:
    """Return whether a field is a number; Python's `1_000` is not a number in a file."""
    try:
        float(text)
    except ValueError:
        return False
    return not (b"_" in text if isinstance(text, bytes) else "_" in text)

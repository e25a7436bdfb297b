"""Numbers and exact times out of text, for readers: bad rows are located and left out.

- `read_csv` reads delimited text with a known `Layout`, through pyarrow.
- `scan` and `blocks` read free text, blanks or commas, words among numbers, into `Tokens`.
- `line_pieces` cuts a text of any size into pieces of whole lines, `whole_piece` makes one of a small text;
  `read_twice` is for texts that have to be known as a whole before a piece can be read.
- `whole_lines` says where the complete lines of a text end, `is_number` what a number is.
- `refuse_long_lines` refuses a text with a line that no log has.
"""

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .delimited import Csv, Layout, read_csv
    from .digits import NO_STAMP, bad_stamp, stamps
    from .lines import (
        Piece,
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
    "Layout",
    "Piece",
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
        "delimited": ("Csv", "Layout", "read_csv"),
        "digits": ("NO_STAMP", "bad_stamp", "stamps"),
        "lines": (
            "Piece",
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

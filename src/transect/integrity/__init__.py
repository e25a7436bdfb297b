"""Integrity: which sensor could be trusted, when, and why.

`check` lays windows of a second over a recording and lets every check judge every stream of its types.
A check is one file in `checks/`; `docs/integrity.md` says how to write one.

- `model`: what a check is; `windows`: what it sees
- `rules`: scores, states, what is declared, what checks say together
- `runner`, `config`, `catalogue`: which checks run on which streams, with which limits
- `acting`: runs that act on verdicts, while they are played or in hindsight
- `live`: the same checks on samples that are pushed while they are measured, and as nodes of a flow
- `table`: verdicts, kept as Parquet and CSV
- `learning`, `motion`: what checks learn of a stream, and whether the robot moved
"""

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .config import Config, load_config
    from .model import Check, Finding, Limit, Unknown
    from .runner import check
    from .table import VerdictTable
    from .windows import Window

__all__ = [
    "Check",
    "Config",
    "Finding",
    "Limit",
    "Unknown",
    "VerdictTable",
    "Window",
    "check",
    "load_config",
]

__getattr__ = importer(
    __name__,
    {
        "config": ("Config", "load_config"),
        "model": ("Check", "Finding", "Limit", "Unknown"),
        "runner": ("check",),
        "table": ("VerdictTable",),
        "windows": ("Window",),
    },
)

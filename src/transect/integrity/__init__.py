"""Integrity monitoring: which sensor could be trusted, when, and why.

`check` divides a recording into windows of one second and evaluates every check on every stream of its
types. The checks are in `checks/`; `docs/integrity.md` describes how to write one.

- `model`: base class of checks; `windows`: their input
- `rules`: scores, states, declaration, and the combination of several checks
- `runner`, `config`, `catalogue`: which checks run on which streams, with which limits
- `verdict_sources`: verdicts for a run, computed during playback or read from a table
- `live`: the same checks on live samples, and as nodes of a graph
- `table`: verdicts as Parquet and CSV
- `baselines`, `motion`: usual values of a stream, and the robot's motion
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

"""How good a run is: its poses, height map and model, judged by the truth of the recording that it played.

Names are imported when they are used: the process that draws needs no judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .evaluation import JudgedRun, judge_run
    from .figures import draw_run
    from .reference import reference_of

__all__ = ["DRAWN", "JudgedRun", "draw_run", "judge_run", "reference_of"]

DRAWN = b"drawn\n"  # what the process that draws answers once all figures of a folder are there

__getattr__ = importer(
    __name__,
    {
        "evaluation": ("JudgedRun", "judge_run"),
        "figures": ("draw_run",),
        "reference": ("reference_of",),
    },
)

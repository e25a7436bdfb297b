"""How good a run is: its poses, height map and model, judged by the truth of the recording that it played."""

from .figures import FIGURES, draw_run
from .judging import JudgedRun, judge_run
from .reference import reference_of

__all__ = ["FIGURES", "JudgedRun", "draw_run", "judge_run", "reference_of"]

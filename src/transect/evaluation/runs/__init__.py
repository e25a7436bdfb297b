"""How good a run is: its poses, height map and model, judged by the truth of the recording that it played."""

from .judging import FIGURES, JudgedRun, judge_run
from .reference import reference_of

__all__ = ["FIGURES", "JudgedRun", "judge_run", "reference_of"]

"""How well the checks find faults: recordings that are clear, faults that are put into them, scores.

A case is one fault of one severity in one recording, or a clear recording. What was put in, and what was
said, is one file for each case, so that a long benchmark goes on where it was stopped; scores are counted
from these files.

- `bases`: the clear recordings, simulated and real
- `cases`: the selected faults, recordings and streams
- `results`: results of a case: truth and findings of the checks
- `running`: run the missing cases
- `scores`: what was found of one case; `summary`: of all of them
- `gates`: what was promised
- `peers`: what other tools say of the same recordings
"""

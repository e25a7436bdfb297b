"""What was in the air of a recording: what it is labelled with, or what verdicts say."""

from __future__ import annotations

import re

from transect.recording import Recording
from transect.recording.arrow import texts
from transect.types import Verdict

from .config import conditions_of
from .events import CLOUD, LEAST_RAIN, RAIN
from .report import badness
from .table import VerdictTable

AIR = ("dust", "smoke", "rain", "fog")
"""What may be in the air, as recordings are labelled."""
LABELS = "truth/faults"
CLEAR, HUMAN = "clear", "human"


def conditions_among(recording: Recording, verdicts: VerdictTable) -> tuple[str, ...]:
    """Return the words for what was in the air and the scene: dust, smoke, rain, fog, human; or clear.

    They are what the catalogue or the labels of faults say, else words of the recording's name, else what
    the verdicts say: a cloud or rain.
    """
    known = (*AIR, HUMAN)
    words = {part for word in conditions_of(recording) for part in word.split("_")}
    if LABELS in recording:
        words |= set(texts(recording[LABELS].table, "fault"))
    words |= {HUMAN} if words & {"walking", "visitors"} else set()
    if not words & {*known, CLEAR}:
        words |= {word.lower() for word in re.findall(r"[A-Z]?[a-z]+", recording.name)}
    if not words & {*known, CLEAR}:
        words |= {"rain" if verdict.reason == RAIN else "cloud" for verdict in air_windows(verdicts)}
    return tuple(word for word in (*known, "cloud") if word in words) or (CLEAR,)


def air_windows(verdicts: VerdictTable) -> list[Verdict]:
    """Return verdicts that name a cloud, if one was declared, else rain, if it lasted; the worst first."""
    found = [v for v in verdicts.select(reason=(*CLOUD, RAIN), muted="") if v.raw != "UNKNOWN"]
    clouds = [v for v in found if v.reason in CLOUD]
    if not any(v.state == "BAD" for v in clouds):
        clouds = [v for v in found if v.reason == RAIN]
        clouds = clouds if len(clouds) >= LEAST_RAIN else []
    return sorted(clouds, key=lambda verdict: (*badness(verdict), verdict.stream))

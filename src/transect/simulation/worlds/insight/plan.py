"""From a story to joint angles: goals become postures, postures become moves, and some are recorded.

All of a story is lived through, at the speed of the real arm. A recording that is shorter than it holds the
acts that matter most, in their order; between them the spacecraft clock runs on, as it does in the archive
between the data of two commands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import TransectError

from ...arm.flight import Flight
from ...arm.model import cross
from ...arm.moves import Limits, Timeline, jam, move, rest
from .story import STOW, Step

ROUNDS = 80
"""Most rounds of the search for a posture."""
LARGEST = 0.25
"""rad that a joint turns at most in one of them."""
CLOSE = 1e-9
"""m and rad to which a posture is found."""
SHORTEST = 20
"""Rows under which an act is not worth recording."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What the arm does, row by row of the control loop.

    Attributes
    ----------
    steps : tuple of Step
    timeline : Timeline
    step : (n,) int array
        Which step a row belongs to.
    goals : (k, 4) array
        Joint angles at the end of each step, rad.
    recorded : (n,) bool array
        Whether a row is in the recording.
    """

    steps: tuple[Step, ...]
    timeline: Timeline
    step: Ints
    goals: Floats
    recorded: Mask

    def __len__(self) -> int:
        return len(self.step)

    def of_steps(self, values: Callable[[Step], float]) -> Floats:
        """Return a number of each row's step, (n,)."""
        return np.array([values(step) for step in self.steps], dtype=np.float64)[self.step]

    @property
    def resting(self) -> Mask:
        """Rows (n,) in which no motor has power."""
        return np.asarray(~self.timeline.on.any(axis=1))


@dataclass
class _Life:
    """The arm's moves so far."""

    limits: Limits
    q: Floats = field(default_factory=lambda: np.array(STOW))
    steps: list[Step] = field(default_factory=list[Step])
    parts: list[Timeline] = field(default_factory=list[Timeline])
    goals: list[Floats] = field(default_factory=list[Floats])
    rows: list[int] = field(default_factory=list[int])

    def live(self, step: Step, posture: Floats) -> None:
        """Add a step that ends in a posture (4,), NaN for joints that stay."""
        goal = np.where(np.isnan(posture), self.q, posture)
        sense = float(np.sign(goal[0] - self.q[0]))
        held = jam(self.q, 1, sense, round(step.jam / self.limits.loop))
        moved = move(self.q, goal, self.limits, step.speed)
        self.q = moved.q[-1] if len(moved) else self.q
        pause = rest(self.q, round(step.seconds / self.limits.loop))
        self.steps.append(step)
        self.goals.append(goal)
        self.parts += [held, moved, pause]
        self.rows.append(len(held) + len(moved) + len(pause))


def make_plan(rounds: Callable[[int], Sequence[Step]], flight: Flight, seconds: float) -> Plan:
    """Live through a story, as many rounds of it as fill a recording.

    Parameters
    ----------
    rounds : callable
        Steps of round 0, 1, ...
    flight : Flight
        Which knows where its tools are.
    seconds : float
        How long is recorded.
    """
    limits = Limits.of(flight.sets)
    life, wanted = _Life(limits), max(1, round(seconds / limits.loop))
    for turn in count():
        several = rounds(turn)
        for step, posture in zip(several, solve_postures(several, flight), strict=True):
            life.live(step, posture)
        if sum(life.rows) >= wanted:
            break
    owner = np.repeat(np.arange(len(life.steps)), life.rows)
    steps = tuple(life.steps)
    return Plan(
        steps, Timeline.joined(life.parts), owner, np.array(life.goals), _record(steps, owner, wanted)
    )


def solve_postures(steps: Sequence[Step], flight: Flight) -> Floats:
    """Return joint angles (k, 4) in rad that bring the tools where the steps want them; NaN: as before."""
    found = np.full((len(steps), 4), np.nan)
    for number, step in enumerate(steps):
        if step.joints is not None:
            found[number] = step.joints
    for tool, phase in sorted({(step.tool, step.phase) for step in steps if step.goal}):
        chosen = [n for n, s in enumerate(steps) if s.goal and (s.tool, s.phase) == (tool, phase)]
        goals = np.array([steps[n].goal for n in chosen])
        found[chosen] = _reach(flight, goals, tool, phase)
    lower, upper = (flight.numbers("RA_JOINT_PARAMS", key) for key in ("q_min", "q_max"))
    bad = ((found < lower) | (found > upper)).any(axis=1)
    if bad.any():
        step = steps[int(bad.argmax())]
        raise TransectError(f"the arm cannot do {step.act!r}", why=f"{step.goal} needs {found[bad][0]} rad")
    return found


def _reach(flight: Flight, goals: Floats, tool: int, phase: int) -> Floats:
    """Newton's search for joint angles (k, 4) of goals (k, 4), elbow up, with the sag that is expected."""
    arm, chosen = flight.arm, flight.arm.tools[tool]
    aside = arm.d[1] + chosen.offset[1]
    radius = np.hypot(goals[:, 0], goals[:, 1])
    q: Floats = np.tile(np.array([0.0, -1.0, 1.9, 0.6]), (len(goals), 1))
    q[:, 0] = np.arctan2(goals[:, 1], goals[:, 0]) + np.arcsin(aside / radius)
    q[:, 0] = np.where(q[:, 0] > flight.numbers("RA_JOINT_PARAMS", "q_max")[0], q[:, 0] - 2 * np.pi, q[:, 0])
    off = np.full(goals.shape, np.inf)
    for _ in range(ROUNDS):
        pose = flight.poses(q, tool, phase)[1]
        off = goals - np.column_stack([pose[:, :3], q[:, 3] if chosen.hangs else pose[:, 3]])
        if np.abs(off).max() < CLOSE:
            return q
        frames = arm.walk(q)
        slope = np.zeros((len(q), 4, 4))
        for joint in range(4):
            slope[:, :3, joint] = cross(
                frames.axis(joint + 1), arm.held(frames, chosen) - frames.origin[joint]
            )
        slope[:, 3] = [0.0, 0.0, 0.0, 1.0] if chosen.hangs else [0.0, 1.0, 1.0, 1.0]
        q += np.clip(np.linalg.solve(slope, off[..., None])[..., 0], -LARGEST, LARGEST)
    worst = int(np.abs(off).max(axis=1).argmax())
    raise TransectError(
        "the arm cannot reach a goal", why=f"tool {tool} at {goals[worst]} is off by {off[worst]}"
    )


def _record(steps: Sequence[Step], owner: Ints, wanted: int) -> Mask:
    """Choose rows (n,): whole acts, those of the greatest value first, until as many as wanted are there."""
    acts = np.array([step.act for step in steps])
    edges = [0, *(np.flatnonzero(acts[owner][1:] != acts[owner][:-1]) + 1).tolist(), len(owner)]
    spans = [slice(a, b) for a, b in pairwise(edges)]

    def worth(span: slice) -> tuple[int, int]:
        return -max(steps[n].value for n in np.unique(owner[span])), span.start

    chosen, left = np.zeros(len(owner), dtype=bool), wanted
    for span in sorted(spans, key=worth):
        rows = min(left, span.stop - span.start)
        if rows >= min(SHORTEST, wanted):
            late = any(steps[n].late for n in np.unique(owner[span]))
            chosen[span.stop - rows : span.stop] |= late
            chosen[span.start : span.start + rows] |= not late
            left -= rows
    return chosen

"""What the simulated arm does: a deployment (SIS 2.6.2.2), soil mechanics (2.6.2.3), imaging (2.6.2.1).

A story becomes a plan: goals become postures, postures become moves, and some are recorded. All of a story is
lived through, at the speed of the real arm. A recording that is shorter than it holds the acts that matter
most, in their order; between them the spacecraft clock runs on, as it does in the archive between the data of
two commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import TransectError

from .arm.flight import Flight
from .arm.model import PAYLOADS, Contact, Support, cross
from .arm.motion import Limits, Timeline, jam, move, rest
from .site import PLACES, SPOTS, Site

SCOOP, CAMERA, WRIST, GRAPPLE = 2, 3, 4, 5
STOWED_PHASE, OPEN_PHASE = 1, 2
CARRIED = {3: 7, 4: 8, 5: 9}
"""Tool that is selected while a payload is grappled, by grapple phase."""
STOW = (-2.95, -1.95, 0.9, 0.3)
"""Joint angles on the deck, rad; invented, well inside the limits."""
READY = (-1.4, -1.5, 1.5, 0.6)
HANGING_WRIST = 0.1
"""rad of joint 4 while something hangs from the arm."""
STRAIGHT_DOWN = np.pi / 2
TEACH, DESCENT = 0.05, 0.04
"""m above the hook, and m down from there (SIS 2.6.2.2)."""
OPENING, CLOSING, OPENED = 165.0, 90.0, 20.0
"""s that the fingers are heated, that they cool, and that they are kept open."""
SLACK = 0.075
"""m that the arm goes on down after its load stands: relieved, it rises by 5 cm."""
OVERDRIVE = 0.026
"""m below the ground that the arm is sent to press; it bends, the scoop goes in by three quarters."""
BOTTOMLESS = 1e3
"""m down to nothing that could carry a load."""
STORIES = ("all", "deploy", "soil", "imaging")


@dataclass(frozen=True)
class Step:
    """A move and the rest after it."""

    act: str  # steps of one act are recorded together
    # tool, phase: SIS Tables 14 and 15
    tool: int
    phase: int
    # (4,) or None, where the flight software is to bring the tool: x, y, z (m) of the sagging arm, and th
    # (rad), or the angle of joint 4 for what hangs
    goal: tuple[float, float, float, float] | None = None
    # (4,) or None, joint angles instead, rad; NaN for those that stay
    joints: tuple[float, float, float, float] | None = None
    seconds: float = 1.0  # rest after the move
    speed: float = 1.0  # part of the greatest
    contact: Contact | None = None  # what may be touched
    heat: bool = False  # whether the grapple is heated during the rest
    picture: bool = False  # whether the camera looks at the end
    value: int = 1  # how much a short recording wants the act; 9 most
    guarded: bool = False  # whether contact is expected (algo_code 2)
    late: bool = False  # whether a short recording wants the end of the act, not its beginning
    jam: float = 0.0  # s for which something holds joint 1 fast before the move


def list_steps(name: str, site: Site, turn: int) -> Iterator[Step]:
    """Yield the steps of one round of a story.

    Parameters
    ----------
    name : str
        One of `STORIES`.
    turn : int
        Number of the round: another payload, other spots. There are three payloads; after them the arm only
        works the soil and looks around.
    """
    phases = list(PAYLOADS)
    if turn == 0:
        yield Step("unstow", WRIST, STOWED_PHASE, joints=READY)
    if name in ("deploy", "all") and turn < len(phases):
        yield from _deployment(site, phases[turn])
    if name in ("soil", "all"):
        yield from _soil(site, turn)
    if name in ("imaging", "all") or turn >= len(phases):
        yield from _imaging(turn)
    yield Step("return", WRIST, STOWED_PHASE, joints=READY)


def _deployment(site: Site, phase: int) -> Iterator[Step]:
    name = PAYLOADS[phase]
    hook = np.asarray(site.sets["PAYLOAD_COL_PARAMS"][f"{name}_t"], dtype=np.float64)
    stood = _support(site, phase, float(site.arm.down @ hook))
    high = _above(hook, 0.3)
    act = f"{name} approach"
    yield Step(act, GRAPPLE, OPEN_PHASE, goal=high)
    yield Step(act, GRAPPLE, OPEN_PHASE, goal=_above(hook, TEACH), value=4)
    yield Step(f"{name} open", GRAPPLE, OPEN_PHASE, seconds=OPENING, heat=True, value=2)
    capture = Step(f"{name} capture", GRAPPLE, OPEN_PHASE, _above(hook, TEACH - DESCENT), speed=0.5, value=8)
    yield replace(capture, seconds=OPENED, heat=True)
    yield Step(f"{name} close", GRAPPLE, OPEN_PHASE, seconds=CLOSING)
    carried = Step(f"{name} lift", CARRIED[phase], phase, contact=stood, value=7)
    yield replace(carried, seconds=2.0)
    yield replace(carried, goal=_above(hook, 0.35))
    yield from _placing(site, phase)


def _placing(site: Site, phase: int) -> Iterator[Step]:
    name, (x, y) = PAYLOADS[phase], PLACES[PAYLOADS[phase]]
    tall = -float(site.sets["PAYLOAD_COL_PARAMS"][f"{name}_t"][2])
    ground = np.array([x, y, site.surface(x, y) - tall])
    stands = _support(site, phase, site.level(x, y) - tall)
    step = Step(f"{name} carry", CARRIED[phase], phase, contact=_hanging(stands), value=3)
    yield replace(step, joints=(-1.2, np.nan, np.nan, np.nan))
    yield replace(step, goal=_above(ground, 0.2))
    place = Step(f"{name} place", CARRIED[phase], phase, contact=stands, value=6, guarded=True)
    yield replace(place, goal=_above(ground, 0.05))
    yield replace(place, goal=_above(ground, -SLACK), speed=0.5, seconds=3.0)
    yield Step(f"{name} release", GRAPPLE, OPEN_PHASE, seconds=OPENING, heat=True, value=2)
    yield Step(f"{name} away", GRAPPLE, OPEN_PHASE, goal=_above(ground, 0.12), value=5)
    yield Step(f"{name} away", GRAPPLE, OPEN_PHASE, goal=_above(ground, 0.4), seconds=5.0)


def _support(site: Site, phase: int, level: float) -> Support:
    mass = float(site.sets["RA_DEFL_GENERAL"][f"{PAYLOADS[phase]}_mass"])
    return Support(level, mass * site.arm.gravity)


def _hanging(support: Support) -> Support:
    """Return the same load with nothing under it."""
    return replace(support, level=BOTTOMLESS)


def _above(point: Floats, height: float) -> tuple[float, float, float, float]:
    x, y, z = point.tolist()
    return x, y, z - height, HANGING_WRIST


def _soil(site: Site, turn: int) -> Iterator[Step]:
    first = 3 * turn
    yield Step("reach", SCOOP, STOWED_PHASE, goal=_scoop(site, first, -0.05), seconds=2.0)
    for press in ("press", "press again"):
        soil = site.soil(first)
        act = Step(press, SCOOP, STOWED_PHASE, contact=soil, speed=0.6, value=9, guarded=True)
        yield replace(act, goal=_scoop(site, first, OVERDRIVE), seconds=2.0)
        yield replace(act, goal=_scoop(site, first, -0.03))
    yield from _scrape(site, first + 1)
    pat = Step("pat", SCOOP, STOWED_PHASE, contact=site.soil(first + 2), value=4, guarded=True)
    yield replace(pat, goal=_scoop(site, first + 2, -0.05))
    for _ in range(3):
        yield replace(pat, goal=_scoop(site, first + 2, 0.015), seconds=0.5)
        yield replace(pat, goal=_scoop(site, first + 2, -0.02), seconds=0.5)
    yield Step("lift", SCOOP, STOWED_PHASE, goal=_scoop(site, first + 2, -0.3))


def _scrape(site: Site, spot: int) -> Iterator[Step]:
    """Draw the scoop towards the lander, a little into the ground."""
    act = Step("scrape", SCOOP, STOWED_PHASE, contact=site.soil(spot, drag=0.6), value=5, guarded=True)
    yield replace(act, goal=_scoop(site, spot, -0.05))
    yield replace(act, goal=_scoop(site, spot, 0.01), speed=0.6)
    for inwards in (0.04, 0.08, 0.12):
        yield replace(act, goal=_scoop(site, spot, 0.012, inwards), seconds=0.0, speed=0.6)
    yield replace(act, goal=_scoop(site, spot, -0.06, 0.12))


def _scoop(site: Site, spot: int, deep: float, inwards: float = 0.0) -> tuple[float, float, float, float]:
    """Pose of the scoop `deep` m below the ground of a spot, pointing straight down."""
    x, y = SPOTS[spot % len(SPOTS)]
    z = site.surface(x, y) + deep
    closer = 1.0 - inwards / float(np.hypot(x, y))
    return x * closer, y * closer, z, STRAIGHT_DOWN


def _imaging(turn: int) -> Iterator[Step]:
    """Two tiers of the workspace, then the deck.

    Within a tier only the azimuth changes, between the tiers only the elbow (SIS 2.6.2.1).
    """
    start, step = -0.75 + 0.05 * (turn % 5), 0.22
    shoulder, wrist, elbows = -1.5, 0.35, (2.35, 2.05)
    yield Step("look", CAMERA, STOWED_PHASE, joints=(start, shoulder, elbows[0], wrist))
    for tier, elbow in enumerate(elbows):
        for number in range(4):
            azimuth = start + step * (3 - number if tier else number)
            look = Step(f"tier {tier + 1}", CAMERA, STOWED_PHASE, seconds=3.0, picture=True, value=4)
            yield replace(look, joints=(azimuth, shoulder, elbow, wrist))
    yield Step(
        "deck", CAMERA, STOWED_PHASE, joints=(-2.45, shoulder, 2.4, wrist), seconds=3.0, picture=True, value=3
    )


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
    """What the arm does, row by row of the control loop."""

    steps: tuple[Step, ...]
    timeline: Timeline
    step: Ints  # (n,), which step a row belongs to
    goals: Floats  # (k, 4), joint angles at the end of each step, rad
    recorded: Mask  # (n,) bool, Whether a row is in the recording

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
    return Plan(steps, Timeline.join(life.parts), owner, np.array(life.goals), _record(steps, owner, wanted))


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

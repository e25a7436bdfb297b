"""Activities of the simulated arm: a deployment (SIS 2.6.2.2), soil mechanics (2.6.2.3), imaging (2.6.2.1).

A story is a list of steps. Inverse kinematics turns the tool poses of the steps into joint angles, and
trapezoidal moves connect them. The whole story is simulated at the speed of the real arm. A recording that is
shorter than the story holds the acts of the highest priority in their order; the spacecraft clock jumps
between them, as it does in the archive between the data of two commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.datasets.insight.robot.codes import GrapplePhase, ToolCode
from transect.errors import TransectError

from .arm.flight import FlightSoftware
from .arm.model import PAYLOADS, Contact, PayloadSupport, cross
from .arm.motion import JointTimeline, MotionLimits, jam, move, rest
from .site import PAYLOAD_POSITIONS, SOIL_SPOTS, LandingSite

Posture = tuple[float, float, float, float]
"""Joint angles, rad."""
STORIES = ("all", "deploy", "soil", "imaging")


@dataclass(frozen=True)
class StorySettings:
    """Postures, heights and durations of the commands; invented where no section of the SIS is named."""

    # postures well inside the joint limits
    stowed: Posture = (-2.95, -1.95, 0.9, 0.3)  # on the deck
    ready: Posture = (-1.4, -1.5, 1.5, 0.6)
    hanging_wrist_rad: float = 0.1  # joint 4 while a tool hangs from the arm
    scoop_pitch_rad: float = np.pi / 2  # the scoop points straight down
    # deployment of a payload
    teach_height_m: float = 0.05  # of the teach point above the hook (SIS 2.6.2.2)
    capture_descent_m: float = 0.04  # from the teach point down to the hook (SIS 2.6.2.2)
    open_heating_s: float = 165.0  # heating until the fingers are open
    close_cooling_s: float = 90.0  # cooling until the fingers are closed
    keep_open_s: float = 20.0  # heating while the hook is captured
    # commanded descent beyond touchdown: the unloaded arm rises by 5 cm
    touchdown_descent_m: float = 0.075
    # commanded depth of a press: the arm bends, the scoop reaches three quarters of it
    press_depth_m: float = 0.026
    # drop below a hanging payload while nothing supports it
    unsupported_level_m: float = 1e3
    # inverse kinematics
    max_iterations: int = 80
    max_joint_step_rad: float = 0.25
    tolerance: float = 1e-9  # m and rad
    min_act_rows: int = 20  # shorter parts of an act are not recorded


STORY = StorySettings()
_CARRIED_TOOL: dict[int, ToolCode] = {
    GrapplePhase.SEIS_GRAPPLED: ToolCode.SEIS,
    GrapplePhase.WTS_GRAPPLED: ToolCode.WTS,
    GrapplePhase.HP3_GRAPPLED: ToolCode.HP3,
}
"""Tool that is selected while a payload is grappled."""


@dataclass(frozen=True)
class ArmStep:
    """A move and the rest after it."""

    act: str  # steps of one act are recorded together
    # tool, phase: SIS Tables 14 and 15
    tool: int
    phase: int
    # (4,) or None, tool pose for the flight software: x, y, z (m) of the sagging arm, and th (rad), or the
    # angle of joint 4 for a hanging tool
    goal: Posture | None = None
    # (4,) or None, joint angles instead of a goal, rad; NaN for joints that stay
    joints: Posture | None = None
    rest_s: float = 1.0  # after the move
    speed_ratio: float = 1.0  # of the maximum joint velocities
    contact: Contact | None = None  # what the tool may touch
    heat_grapple: bool = False  # during the rest
    take_picture: bool = False  # at the end of the rest
    priority: int = 1  # of the act in a short recording, up to 9 (10 with a fault)
    guarded: bool = False  # whether contact is expected (algo_code 2)
    record_end: bool = False  # whether a short recording holds the end of the act instead of its start
    jam_s: float = 0.0  # time for which joint 1 is blocked before the move


def list_steps(name: str, site: LandingSite, turn: int) -> Iterator[ArmStep]:
    """Yield the steps of one round of a story.

    Parameters
    ----------
    name : str
        One of `STORIES`.
    turn : int
        Number of the round: each uses another payload and other spots. After the three payloads the arm only
        works the soil and takes pictures.
    """
    phases = list(PAYLOADS)
    if turn == 0:
        yield ArmStep("unstow", ToolCode.WRIST, GrapplePhase.STOWED, joints=STORY.ready)
    if name in ("deploy", "all") and turn < len(phases):
        yield from _deployment(site, phases[turn])
    if name in ("soil", "all"):
        yield from _soil(site, turn)
    if name in ("imaging", "all") or turn >= len(phases):
        yield from _imaging(turn)
    yield ArmStep("return", ToolCode.WRIST, GrapplePhase.STOWED, joints=STORY.ready)


def _grapple_step(act: str, goal: Posture | None = None, priority: int = 1) -> ArmStep:
    return ArmStep(act, ToolCode.GRAPPLE, GrapplePhase.OK_TO_OPEN, goal, priority=priority)


def _open_step(act: str) -> ArmStep:
    return replace(_grapple_step(act, priority=2), rest_s=STORY.open_heating_s, heat_grapple=True)


def _deployment(site: LandingSite, phase: int) -> Iterator[ArmStep]:
    name = PAYLOADS[phase]
    hook = np.asarray(site.sets["PAYLOAD_COL_PARAMS"][f"{name}_t"], dtype=np.float64)
    on_deck = _support(site, phase, float(site.arm.down @ hook))
    yield _grapple_step(f"{name} approach", _above(hook, 0.3))
    yield _grapple_step(f"{name} approach", _above(hook, STORY.teach_height_m), priority=4)
    yield _open_step(f"{name} open")
    at_hook = _above(hook, STORY.teach_height_m - STORY.capture_descent_m)
    capture = _grapple_step(f"{name} capture", at_hook, priority=8)
    yield replace(capture, speed_ratio=0.5, rest_s=STORY.keep_open_s, heat_grapple=True)
    yield replace(_grapple_step(f"{name} close"), rest_s=STORY.close_cooling_s)
    lift = ArmStep(f"{name} lift", _CARRIED_TOOL[phase], phase, contact=on_deck, priority=7)
    yield replace(lift, rest_s=2.0)
    yield replace(lift, goal=_above(hook, 0.35))
    yield from _placement(site, phase)


def _placement(site: LandingSite, phase: int) -> Iterator[ArmStep]:
    name, (x, y) = PAYLOADS[phase], PAYLOAD_POSITIONS[PAYLOADS[phase]]
    height = -float(site.sets["PAYLOAD_COL_PARAMS"][f"{name}_t"][2])
    ground = np.array([x, y, site.surface(x, y) - height])
    on_ground = _support(site, phase, site.level(x, y) - height)
    unsupported = replace(on_ground, level=STORY.unsupported_level_m)
    carry = ArmStep(f"{name} carry", _CARRIED_TOOL[phase], phase, contact=unsupported, priority=3)
    yield replace(carry, joints=(-1.2, np.nan, np.nan, np.nan))
    yield replace(carry, goal=_above(ground, 0.2))
    place = ArmStep(f"{name} place", carry.tool, phase, contact=on_ground, priority=6, guarded=True)
    yield replace(place, goal=_above(ground, 0.05))
    yield replace(place, goal=_above(ground, -STORY.touchdown_descent_m), speed_ratio=0.5, rest_s=3.0)
    yield _open_step(f"{name} release")
    yield _grapple_step(f"{name} away", _above(ground, 0.12), priority=5)
    yield replace(_grapple_step(f"{name} away", _above(ground, 0.4)), rest_s=5.0)


def _support(site: LandingSite, phase: int, level: float) -> PayloadSupport:
    mass = float(site.sets["RA_DEFL_GENERAL"][f"{PAYLOADS[phase]}_mass"])
    return PayloadSupport(level, mass * site.arm.gravity)


def _above(point: Floats, height: float) -> Posture:
    x, y, z = point.tolist()
    return x, y, z - height, STORY.hanging_wrist_rad


def _soil(site: LandingSite, turn: int) -> Iterator[ArmStep]:
    first = 3 * turn

    def scoop(act: str, priority: int, contact: Contact | None = None) -> ArmStep:
        step = ArmStep(act, ToolCode.SCOOP, GrapplePhase.STOWED, contact=contact, priority=priority)
        return replace(step, guarded=contact is not None)

    yield replace(scoop("reach", 1), goal=_scoop_pose(site, first, -0.05), rest_s=2.0)
    for act in ("press", "press again"):
        press = replace(scoop(act, 9, site.soil(first)), speed_ratio=0.6)
        yield replace(press, goal=_scoop_pose(site, first, STORY.press_depth_m), rest_s=2.0)
        yield replace(press, goal=_scoop_pose(site, first, -0.03))
    # scrape: the scoop is drawn towards the lander, a little below the surface
    scrape = scoop("scrape", 5, site.soil(first + 1, drag=0.6))
    yield replace(scrape, goal=_scoop_pose(site, first + 1, -0.05))
    yield replace(scrape, goal=_scoop_pose(site, first + 1, 0.01), speed_ratio=0.6)
    for inwards in (0.04, 0.08, 0.12):
        yield replace(scrape, goal=_scoop_pose(site, first + 1, 0.012, inwards), rest_s=0.0, speed_ratio=0.6)
    yield replace(scrape, goal=_scoop_pose(site, first + 1, -0.06, 0.12))
    pat = scoop("pat", 4, site.soil(first + 2))
    yield replace(pat, goal=_scoop_pose(site, first + 2, -0.05))
    for _ in range(3):
        yield replace(pat, goal=_scoop_pose(site, first + 2, 0.015), rest_s=0.5)
        yield replace(pat, goal=_scoop_pose(site, first + 2, -0.02), rest_s=0.5)
    yield replace(scoop("lift", 1), goal=_scoop_pose(site, first + 2, -0.3))


def _scoop_pose(site: LandingSite, spot: int, depth: float, inwards: float = 0.0) -> Posture:
    """Pose of the scoop `depth` m below the ground of a spot, `inwards` m nearer to the lander."""
    x, y = SOIL_SPOTS[spot % len(SOIL_SPOTS)]
    z = site.surface(x, y) + depth
    scale = 1.0 - inwards / float(np.hypot(x, y))
    return x * scale, y * scale, z, STORY.scoop_pitch_rad


def _imaging(turn: int) -> Iterator[ArmStep]:
    """Two tiers of the workspace, then the deck.

    Only the azimuth changes within a tier, and only the elbow between the tiers (SIS 2.6.2.1).
    """
    start, step = -0.75 + 0.05 * (turn % 5), 0.22
    shoulder, wrist, elbows = -1.5, 0.35, (2.35, 2.05)
    move_only = ArmStep("look", ToolCode.CAMERA, GrapplePhase.STOWED)
    yield replace(move_only, joints=(start, shoulder, elbows[0], wrist))
    picture = replace(move_only, rest_s=3.0, take_picture=True)
    for tier, elbow in enumerate(elbows):
        for number in range(4):
            azimuth = start + step * (3 - number if tier else number)
            joints = (azimuth, shoulder, elbow, wrist)
            yield replace(picture, act=f"tier {tier + 1}", joints=joints, priority=4)
    yield replace(picture, act="deck", joints=(-2.45, shoulder, 2.4, wrist), priority=3)


@dataclass(frozen=True, eq=False)
class ArmPlan:
    """Planned motion of the arm, one row per cycle of the control loop."""

    steps: tuple[ArmStep, ...]
    timeline: JointTimeline
    step_of_row: Ints  # (n,), index into `steps`
    goals: Floats  # (k, 4), joint angles at the end of each step, rad
    recorded: Mask  # (n,) bool, whether a row is in the recording

    def __len__(self) -> int:
        return len(self.step_of_row)

    def per_row(self, value: Callable[[ArmStep], float]) -> Floats:
        """Return a value of each row's step, (n,)."""
        return np.array([value(step) for step in self.steps], dtype=np.float64)[self.step_of_row]

    @property
    def resting(self) -> Mask:
        """Rows (n,) in which no motor has power."""
        return np.asarray(~self.timeline.on.any(axis=1))


@dataclass
class _PlanBuilder:
    """The moves planned so far."""

    limits: MotionLimits
    q: Floats = field(default_factory=lambda: np.array(STORY.stowed))
    steps: list[ArmStep] = field(default_factory=list[ArmStep])
    parts: list[JointTimeline] = field(default_factory=list[JointTimeline])
    goals: list[Floats] = field(default_factory=list[Floats])
    rows: list[int] = field(default_factory=list[int])

    def add(self, step: ArmStep, posture: Floats) -> None:
        """Append a step that ends in a posture (4,), NaN for joints that stay."""
        goal = np.where(np.isnan(posture), self.q, posture)
        direction = float(np.sign(goal[0] - self.q[0]))
        blocked = jam(self.q, 1, direction, round(step.jam_s / self.limits.loop))
        moved = move(self.q, goal, self.limits, step.speed_ratio)
        self.q = moved.q[-1] if len(moved) else self.q
        pause = rest(self.q, round(step.rest_s / self.limits.loop))
        self.steps.append(step)
        self.goals.append(goal)
        self.parts += [blocked, moved, pause]
        self.rows.append(len(blocked) + len(moved) + len(pause))


def make_plan(rounds: Callable[[int], Sequence[ArmStep]], flight: FlightSoftware, seconds: float) -> ArmPlan:
    """Plan as many rounds of a story as fill a recording.

    Parameters
    ----------
    rounds : callable
        Steps of round 0, 1, ...
    flight : FlightSoftware
        Provides the forward kinematics.
    seconds : float
        Duration of the recording.
    """
    limits = MotionLimits.of(flight.sets)
    plan, wanted = _PlanBuilder(limits), max(1, round(seconds / limits.loop))
    for turn in count():
        steps = rounds(turn)
        for step, posture in zip(steps, solve_postures(steps, flight), strict=True):
            plan.add(step, posture)
        if sum(plan.rows) >= wanted:
            break
    step_of_row = np.repeat(np.arange(len(plan.steps)), plan.rows)
    recorded = _choose_recorded(plan.steps, step_of_row, wanted)
    timeline = JointTimeline.join(plan.parts)
    return ArmPlan(tuple(plan.steps), timeline, step_of_row, np.array(plan.goals), recorded)


def solve_postures(steps: Sequence[ArmStep], flight: FlightSoftware) -> Floats:
    """Return joint angles (k, 4) in rad at which the tools reach the goals of the steps; NaN: unchanged."""
    found = np.full((len(steps), 4), np.nan)
    for number, step in enumerate(steps):
        if step.joints is not None:
            found[number] = step.joints
    for tool, phase in sorted({(step.tool, step.phase) for step in steps if step.goal}):
        chosen = [n for n, s in enumerate(steps) if s.goal and (s.tool, s.phase) == (tool, phase)]
        goals = np.array([steps[n].goal for n in chosen])
        found[chosen] = _solve_inverse_kinematics(flight, goals, tool, phase)
    lower, upper = (flight.numbers("RA_JOINT_PARAMS", key) for key in ("q_min", "q_max"))
    bad = ((found < lower) | (found > upper)).any(axis=1)
    if bad.any():
        step = steps[int(bad.argmax())]
        raise TransectError(f"the arm cannot do {step.act!r}", why=f"{step.goal} needs {found[bad][0]} rad")
    return found


def _solve_inverse_kinematics(flight: FlightSoftware, goals: Floats, tool: int, phase: int) -> Floats:
    """Newton's method for the joint angles (k, 4) of goals (k, 4), elbow up, including the expected sag."""
    arm, chosen = flight.arm, flight.arm.tools[tool]
    lateral = arm.d[1] + chosen.offset[1]
    radius = np.hypot(goals[:, 0], goals[:, 1])
    q: Floats = np.tile(np.array([0.0, -1.0, 1.9, 0.6]), (len(goals), 1))
    q[:, 0] = np.arctan2(goals[:, 1], goals[:, 0]) + np.arcsin(lateral / radius)
    q[:, 0] = np.where(q[:, 0] > flight.numbers("RA_JOINT_PARAMS", "q_max")[0], q[:, 0] - 2 * np.pi, q[:, 0])
    residual = np.full(goals.shape, np.inf)
    for _ in range(STORY.max_iterations):
        pose = flight.poses(q, tool, phase)[1]
        residual = goals - np.column_stack([pose[:, :3], q[:, 3] if chosen.hangs else pose[:, 3]])
        if np.abs(residual).max() < STORY.tolerance:
            return q
        frames = arm.forward_frames(q)
        jacobian = np.zeros((len(q), 4, 4))
        for joint in range(4):
            lever = arm.attachment(frames, chosen) - frames.origin[joint]
            jacobian[:, :3, joint] = cross(frames.axis(joint + 1), lever)
        jacobian[:, 3] = [0.0, 0.0, 0.0, 1.0] if chosen.hangs else [0.0, 1.0, 1.0, 1.0]
        step = np.linalg.solve(jacobian, residual[..., None])[..., 0]
        q += np.clip(step, -STORY.max_joint_step_rad, STORY.max_joint_step_rad)
    worst = int(np.abs(residual).max(axis=1).argmax())
    raise TransectError(
        "the arm cannot reach a goal", why=f"tool {tool} at {goals[worst]} is off by {residual[worst]}"
    )


def _choose_recorded(steps: Sequence[ArmStep], step_of_row: Ints, wanted: int) -> Mask:
    """Choose `wanted` rows (n,): whole acts, those of the highest priority first."""
    acts = np.array([step.act for step in steps])
    edges = [0, *(np.flatnonzero(acts[step_of_row][1:] != acts[step_of_row][:-1]) + 1).tolist()]
    spans = [slice(a, b) for a, b in pairwise([*edges, len(step_of_row)])]

    def rank(span: slice) -> tuple[int, int]:
        return -max(steps[n].priority for n in np.unique(step_of_row[span])), span.start

    chosen, remaining = np.zeros(len(step_of_row), dtype=bool), wanted
    for span in sorted(spans, key=rank):
        rows = min(remaining, span.stop - span.start)
        if rows >= min(STORY.min_act_rows, wanted):
            from_end = any(steps[n].record_end for n in np.unique(step_of_row[span]))
            start = span.stop - rows if from_end else span.start
            chosen[start : start + rows] = True
            remaining -= rows
    return chosen

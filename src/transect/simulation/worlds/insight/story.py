"""What the simulated arm does: a deployment (SIS 2.6.2.2), soil mechanics (2.6.2.3), imaging (2.6.2.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from transect.base.arrays import Floats

from ...arm.contact import Contact, Support
from ...arm.model import PAYLOADS
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
STORIES = ("deploy", "soil", "imaging", "all")


@dataclass(frozen=True)
class Step:
    """A move and the rest after it.

    Attributes
    ----------
    act : str
        Steps of one act are recorded together.
    tool, phase : int
        SIS Tables 14 and 15.
    goal : (4,) or None
        Where the flight software is to bring the tool: x, y, z (m) of the sagging arm, and th (rad), or the
        angle of joint 4 for what hangs.
    joints : (4,) or None
        Joint angles instead, rad; NaN for those that stay.
    seconds : float
        Rest after the move.
    speed : float
        Part of the greatest.
    contact : Contact or None
        What may be touched.
    heat : bool
        Whether the grapple is heated during the rest.
    picture : bool
        Whether the camera looks at the end.
    value : int
        How much a short recording wants the act; 9 most.
    guarded : bool
        Whether contact is expected (algo_code 2).
    late : bool
        Whether a short recording wants the end of the act, not its beginning.
    jam : float
        s for which something holds joint 1 fast before the move.
    """

    act: str
    tool: int
    phase: int
    goal: tuple[float, float, float, float] | None = None
    joints: tuple[float, float, float, float] | None = None
    seconds: float = 1.0
    speed: float = 1.0
    contact: Contact | None = None
    heat: bool = False
    picture: bool = False
    value: int = 1
    guarded: bool = False
    late: bool = False
    jam: float = 0.0


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

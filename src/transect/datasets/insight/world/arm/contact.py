"""What the arm touches: soil that yields and stays dented, and the ground or deck under what it carries.

Depth is measured along gravity. The arm bends away from what it presses on, so that force and depth are found
together, row after row, since soil remembers how deep it was pressed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from transect.base.arrays import Floats

from .model import Arm, Links, Load, Settled, Tool, settle

PROBE = 5.0
"""N with which the arm's own compliance is tried."""
ROUNDS = 4
"""How often force and shape are brought to agree; each round is some 30 times as close as the one before."""


@dataclass(frozen=True)
class Soil:
    """A place in the ground."""

    name: str  # contacts of one name share their dent
    level: float  # where its surface lies along gravity, m from the IDA frame's origin
    stiffness: float  # N/m while it is pressed deeper than ever before
    rebound: float  # N/m while it is let go, or pressed again
    drag: float = 0.0  # friction of a tool that is drawn over it, part of the normal force


@dataclass(frozen=True)
class Support:
    """Deck or ground that carries a payload: a stiff spring that gives no more than its weight."""

    level: float  # where the payload's hook is along gravity while it stands there, m
    weight: float  # N
    stiffness: float = 4.0e4


Contact = Soil | Support


@dataclass
class Dents:
    """How deep each place was pressed so far, m."""

    deepest: dict[str, float] = field(default_factory=dict[str, float])

    def press(self, soil: Soil, depth: Floats, give: Floats) -> Floats:
        """Return normal forces (n,) in N of a tool that an unloaded arm would have at depths (n,).

        Parameters
        ----------
        depth : (n,) array
            m below the surface; negative above.
        give : (n,) array
            m/N by which the arm gives way.
        """
        worst = self.deepest.get(soil.name, 0.0)
        k, stiff = soil.stiffness, soil.rebound
        normal = np.zeros(len(depth))
        for row, (free, soft) in enumerate(zip(depth.tolist(), give.tolist(), strict=True)):
            force = k * free / (1.0 + k * soft)
            if soil.drag == 0.0 and free - soft * force < worst:
                force = (stiff * free - (stiff - k) * worst) / (1.0 + stiff * soft)
            normal[row] = max(force, 0.0)
            if soil.drag == 0.0 and force > 0.0:  # a blade that is drawn along meets fresh ground
                worst = max(worst, free - soft * force)
        self.deepest[soil.name] = worst
        return normal


@dataclass(frozen=True, eq=False)
class Touch:
    """The arm on what it touches."""

    settled: Settled
    force: Floats  # (n, 3), which the surroundings, and the weight of a payload, exert on the arm, N
    normal: Floats  # (n,), of it, what the ground bears, N
    depth: Floats  # (n,), of tool or payload below the surface, m; negative above


def touch(
    arm: Arm, links: Links, q: Floats, tool: Tool, contact: Contact, dents: Dents, away: Floats
) -> Touch:
    """Find force and shape of an arm that may touch something.

    Parameters
    ----------
    q : (n, 4) array
        Joint angles over time, rad.
    contact : Contact
        Soil under a rigid tool, or the support of a payload that hangs.
    dents : Dents
        Soil's memory; goes on from here.
    away : (n, 3) array
        Where friction acts: unit vectors against the tool's motion over the ground, zero where it stands.
    """
    held = contact.weight if isinstance(contact, Support) else 0.0
    drag = contact.drag if isinstance(contact, Soil) else 0.0
    push = -arm.down + drag * away
    base = np.tile(held * arm.down, (len(q), 1))

    def bent(normal: Floats, start: Settled | None = None) -> tuple[Settled, Floats]:
        at = settle(arm, links, q, Load(base + normal[:, None] * push, tool), start)
        return at, arm.place(at.frames, tool) @ arm.down - contact.level

    normal = np.zeros(len(q))
    settled, depth = bent(normal)
    give = (depth - bent(np.full(len(q), PROBE), settled)[1]) / PROBE
    start = dict(dents.deepest)
    for _ in range(ROUNDS):
        free = depth + give * normal
        if isinstance(contact, Soil):
            dents.deepest = dict(start)
            normal = dents.press(contact, free, give)
        else:
            stiff = contact.stiffness
            normal = np.clip(stiff * free / (1.0 + stiff * give), 0.0, contact.weight)
        settled, depth = bent(normal, settled)
    return Touch(settled, base + normal[:, None] * push, normal, depth)

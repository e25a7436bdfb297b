"""X06: do the two sensors of a joint agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.engine.nodes import param
from transect.geometry.robust import run_lengths
from transect.integrity.baselines import Usual
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window
from transect.robots.description import find_parameter
from transect.types import JointState

KINDS = ("encoder", "potentiometer")
PAST_S = 30.0
"""In which anomalies in a row are counted."""
NEWEST, LEARNED, MANY = 10, 5, 5.0
"""Samples of which the difference is taken; windows that tell the usual one; its deviations that are many."""
AT_MOST_SUSPECT = 0.2
"""Score of sensors that drift apart, below the limits of the arm."""
ROUNDING = 1e-9
"""A difference equal to its printed limit has not passed it because of binary fractions."""
NEAR_NS = 50_000_000
"""Between two samples of the same moment."""


class Redundancy(Check, id="X06", group="cross", version=2, k_on=1, k_off=1):
    """``|encoder - potentiometer| > enc_pot_delta``, more than `enc_pot_samples` times in a row.

    Before that, SUSPECT: ``drifted``, by how much the median difference of a joint is off from that of the
    first windows, where it is more than 5 of their deviations. A robot whose flight software has limits of
    its own names them in its constants (`redundant_joints`), as InSight's arm does; `delta` and `samples` are
    those of other arms. Of two sensors it cannot be told which one is wrong: both are BAD.

    Motive: InSight SIS 5.1.3.11, `enc_pot_delta` and `enc_pot_samples`: "max allowable consecutive anomalies
    after which a ... fault is declared".
    """

    run = Limit(0.0, 1.0, "DISAGREE", "", "anomalies in a row over those that declare a fault")
    drifted = Limit(0.01, 0.1, "DISAGREE", "rad", "change of a joint's difference since the first windows")
    delta: float = param(0.1, gt=0.0, unit="rad", doc="by which they may differ")
    samples: int = param(5, ge=0, doc="anomalies in a row that are allowed")

    def reset(self) -> None:
        """No difference is known yet."""
        self._usual: list[Usual] = []

    def look(self, joints: Window[JointState], others: Sequence[Window[JointState]]) -> Finding | Unknown:
        """Count the newest anomalies in a row of each joint."""
        kind = _kind(joints)
        other = next((each for each in others if _is_other(joints, kind, each)), None)
        if other is None:
            return Unknown("NO_PEER", "no second sensor of these joints", len(joints))
        past, far = joints.history(PAST_S), other.history(PAST_S)
        own, theirs = past.array("position"), far.array("position")
        if not len(theirs) or own.shape[1] != theirs.shape[1]:
            return Unknown("NO_PEER", "the other sensor of the joints gave nothing", len(joints))
        nearest = _nearest(past, far)
        theirs = np.where(np.abs(far.t_ns[nearest] - past.t_ns)[:, None] <= NEAR_NS, theirs[nearest], np.nan)
        if not np.isfinite(own - theirs)[-len(joints) :].any():
            return Unknown("NO_PEER", "the other sensor of the joints gave nothing", len(joints))
        off = np.abs(own - theirs)
        limits = self._find_limits(own.shape[1])
        if limits is not None:
            anomalies = off - limits[0] > ROUNDING * np.maximum(1.0, np.abs(limits[0]))
            declared_on = np.maximum(limits[1] + 1, 1)
        else:
            anomalies, declared_on = off > self.delta, np.array(self.samples + 1.0)
        drifted = self._find_drift(own - theirs)
        row = run_lengths(anomalies)[-len(joints) :]
        run = (row / declared_on).max(axis=0)
        worst = int(np.argmax(run))
        newest = off[-len(joints) :, worst]
        largest = float(np.nanmax(newest)) if np.isfinite(newest).any() else 0.0
        evidence = {"joint": worst + 1.0, "off_rad": largest}
        floor = AT_MOST_SUSPECT if run[worst] <= self.run.warn else 0.0
        statistics = {"run": float(run[worst]), "drifted": drifted}
        return Finding(statistics, len(joints), evidence, peers=(other.stream.name,), floor=floor)

    def _find_drift(self, off: Floats) -> float:
        """Return by how much differences (n, k) of the newest samples are other than they were, rad."""
        newest = off[-NEWEST:]
        newest = newest[:, np.isfinite(newest).any(axis=0)]
        if len(self._usual) != newest.shape[1]:
            self._usual = [Usual(least=LEARNED) for _ in range(newest.shape[1])]
        drifted = 0.0
        for known, middle in zip(self._usual, np.nanmedian(newest, axis=0).tolist(), strict=True):
            moved = abs(middle - known.value)
            if moved > max(self.drifted.warn, MANY * known.spread):
                drifted = max(drifted, moved)
            else:
                known.learn(middle)
        return drifted

    def _find_limits(self, joints: int) -> tuple[Floats, Floats] | None:
        """Return the robot's own largest difference (rad) and allowed anomalies, each () or (k,)."""
        robot = self.about.robot
        named = robot.constants.get("redundant_joints") if robot is not None else None
        if robot is None or named is None or len(robot.constants.get("joints", ())) != joints:
            return None
        delta, samples = (find_parameter(robot, self.about.recording, named[k]) for k in ("delta", "samples"))
        if delta is None or samples is None:
            return None
        return np.asarray(delta, np.float64), np.asarray(samples, np.float64)


def _kind(window: Window[Any]) -> str:
    words = f"{window.stream.tag} {window.stream.name}".lower()
    return next((kind for kind in KINDS if kind in words), "")


def _is_other(joints: Window[Any], kind: str, other: Window[Any]) -> bool:
    """Tell whether a stream has the other sensors of the same arm's joints."""
    device = joints.stream.name.rpartition("/")[0] == other.stream.name.rpartition("/")[0]
    return bool(kind) and device and _kind(other) in set(KINDS) - {kind}


def _nearest(own: Window[Any], other: Window[Any]) -> Ints:
    """Return the index of the other stream's sample nearest in time to each of a stream."""
    after = np.clip(np.searchsorted(other.t_ns, own.t_ns), 0, len(other) - 1)
    before = np.maximum(after - 1, 0)
    sooner = np.abs(other.t_ns[before] - own.t_ns) <= np.abs(other.t_ns[after] - own.t_ns)
    return np.where(sooner, before, after)

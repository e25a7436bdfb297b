"""X06: do the two sensors of a joint agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.engine.params import param
from transect.integrity.baselines import Usual
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window
from transect.robots.ida.faults.motion import encoder_pot
from transect.robots.ida.faults.rules import DETECT, run_lengths
from transect.robots.ida.faults.telemetry import Telemetry
from transect.robots.ida.parameters import Parameters
from transect.types import JointState

KINDS = ("encoder", "potentiometer")
PAST_S = 30.0
"""In which anomalies in a row are counted."""
NEWEST, LEARNED, MANY = 10, 5, 5.0
"""Samples of which the difference is taken; windows that tell the usual one; its deviations that are many."""
AT_MOST_SUSPECT = 0.2
"""Score of sensors that drift apart, below the limits of the arm."""
NEAR_NS = 50_000_000
"""Between two samples of the same moment."""


class Redundancy(Check, id="X06", group="cross", version=2, k_on=1, k_off=1):
    """``|encoder - potentiometer| > enc_pot_delta``, more than `enc_pot_samples` times in a row.

    Before that, SUSPECT: ``drifted``, by how much the median difference of a joint is off from that of the
    first windows, where it is more than 5 of their deviations. On InSight's arm the rule and both limits are
    those of its flight software (`transect table faults`); on other arms `delta` and `samples`. Of two
    sensors it cannot be told which one is wrong: both are BAD.

    Motive: Document 002, `enc_pot_delta` and `enc_pot_samples`: "max allowable consecutive anomalies after
    which a ... fault is declared".
    """

    run = Limit(0.0, 1.0, "DISAGREE", "", "anomalies in a row over those that declare a fault")
    drifted = Limit(0.01, 0.1, "DISAGREE", "rad", "change of a joint's difference since the first windows")
    delta: float = param(0.1, gt=0.0, unit="rad", doc="by which they may differ, on other arms")
    samples: int = param(5, ge=0, doc="anomalies in a row that are allowed, on other arms")

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
        pair = (own, theirs) if kind == KINDS[0] else (theirs, own)
        anomalies, allowed, off = self._compare(past, *pair)
        drifted = self._find_drift(own - theirs)
        row = run_lengths(anomalies)[-len(joints) :]
        run = (row / allowed).max(axis=0)
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

    def _compare(self, past: Window[Any], encoders: Floats, pots: Floats) -> tuple[Mask, Floats, Floats]:
        """Return anomalies (n, k), the count (k,) that declares a fault, and differences (n, k) in rad."""
        recording, robot = self.about.recording, self.about.robot
        if robot is not None and robot.name == "ida" and encoders.shape[1] == len(encoder_pot.parts):
            parameters = Parameters.of(recording) if recording else Parameters.printed(robot)
            if parameters.has(DETECT, "enc_pot_delta") and parameters.has(DETECT, "enc_pot_samples"):
                measure = encoder_pot.measure(Telemetry.of(past.t_ns, enc=encoders, pot=pots), parameters)
                return measure.anomalies(), encoder_pot.declared_on(parameters), measure.value
        off = np.abs(encoders - pots)
        return off > self.delta, np.full(off.shape[1], self.samples + 1.0), off


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

"""X06: do the two sensors of a joint agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.engine.nodes import param
from transect.geometry.robust import run_lengths
from transect.integrity.baselines import Baseline
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window
from transect.robots.description import find_parameter
from transect.types import JointState

SENSOR_KINDS = ("encoder", "potentiometer")


@dataclass(frozen=True)
class RedundancySettings:
    """Numbers of the comparison of two sensors of a joint."""

    span_s: float = 30.0  # History over which consecutive anomalies are counted.
    recent_samples: int = 10  # Number of samples of the current difference.
    min_windows: int = 5  # Minimum number of windows that determine the usual difference.
    drift_sigmas: float = 5.0  # Minimum drift, in sigmas of the usual difference.
    drift_score: float = 0.2  # Minimum score of a drift below the limits of the arm.
    # Relative tolerance (absolute below 1 rad): a difference equal to its limit is not above it.
    rounding_rad: float = 1e-9
    max_offset_ns: int = 50_000_000  # Maximum time between two samples of the same moment.


class Redundancy(Check, id="X06", group="cross", version=2, k_on=1, k_off=1):
    """``|encoder - potentiometer| > enc_pot_delta``, more than `enc_pot_samples` consecutive times.

    Before that, SUSPECT: ``drifted``, the change of a joint's median difference since the first windows,
    if it is more than 5 sigmas. A robot whose flight software has limits of its own names them in its
    constants (`redundant_joints`), as InSight's arm does; `delta` and `samples` are those of other arms.
    Either sensor may be wrong: both are BAD.

    Motive: InSight SIS 5.1.3.11, `enc_pot_delta` and `enc_pot_samples`: "max allowable consecutive
    anomalies after which a ... fault is declared".
    """

    settings = RedundancySettings()

    run = Limit(0.0, 1.0, "DISAGREE", "", "consecutive anomalies divided by the number that is a fault")
    drifted = Limit(0.01, 0.1, "DISAGREE", "rad", "change of a joint's difference")
    delta: float = param(0.1, gt=0.0, unit="rad", doc="largest difference of the two sensors")
    samples: int = param(5, ge=0, doc="allowed consecutive anomalies")

    def reset(self) -> None:
        """Forget the usual differences."""
        self._usual: list[Baseline] = []

    def evaluate(self, joints: Window[JointState], others: Sequence[Window[JointState]]) -> Finding | Unknown:
        """Count the current consecutive anomalies of each joint."""
        kind = _kind(joints)
        other = next((each for each in others if _is_other(joints, kind, each)), None)
        if other is None:
            return Unknown("NO_PEER", "no second sensor of these joints", len(joints))
        past = joints.history(self.settings.span_s)
        other_history = other.history(self.settings.span_s)
        own, other_positions = past.array("position"), other_history.array("position")
        if not len(other_positions) or own.shape[1] != other_positions.shape[1]:
            return Unknown("NO_PEER", "the other sensor of the joints has no samples", len(joints))
        nearest = _nearest(past, other_history)
        other_positions = np.where(
            np.abs(other_history.t_ns[nearest] - past.t_ns)[:, None] <= self.settings.max_offset_ns,
            other_positions[nearest],
            np.nan,
        )
        if not np.isfinite(own - other_positions)[-len(joints) :].any():
            return Unknown("NO_PEER", "the other sensor of the joints has no samples", len(joints))
        difference = np.abs(own - other_positions)
        limits = self._find_limits(own.shape[1])
        if limits is not None:
            anomalies = difference - limits[0] > self.settings.rounding_rad * np.maximum(
                1.0, np.abs(limits[0])
            )
            fault_count = np.maximum(limits[1] + 1, 1)
        else:
            anomalies, fault_count = difference > self.delta, np.array(self.samples + 1.0)
        drifted = self._find_drift(own - other_positions)
        runs = run_lengths(anomalies)[-len(joints) :]
        run = (runs / fault_count).max(axis=0)
        worst = int(np.argmax(run))
        newest = difference[-len(joints) :, worst]
        largest = float(np.nanmax(newest)) if np.isfinite(newest).any() else 0.0
        evidence = {"joint": worst + 1.0, "off_rad": largest}
        min_score = self.settings.drift_score if run[worst] <= self.run.warn else 0.0
        statistics = {"run": float(run[worst]), "drifted": drifted}
        return Finding(statistics, len(joints), evidence, peers=(other.stream.name,), min_score=min_score)

    def _find_drift(self, differences: Floats) -> float:
        """Return the change of the newest differences (n, k) from their usual values, rad."""
        newest = differences[-self.settings.recent_samples :]
        newest = newest[:, np.isfinite(newest).any(axis=0)]
        if len(self._usual) != newest.shape[1]:
            self._usual = [Baseline(min_windows=self.settings.min_windows) for _ in range(newest.shape[1])]
        drifted = 0.0
        for known, middle in zip(self._usual, np.nanmedian(newest, axis=0).tolist(), strict=True):
            moved = abs(middle - known.value)
            if moved > max(self.drifted.warn, self.settings.drift_sigmas * known.spread):
                drifted = max(drifted, moved)
            else:
                known.learn(middle)
        return drifted

    def _find_limits(self, joints: int) -> tuple[Floats, Floats] | None:
        """Return the robot's own largest difference (rad) and allowed anomalies, each () or (k,)."""
        robot = self.context.robot
        named = robot.constants.get("redundant_joints") if robot is not None else None
        if robot is None or named is None or len(robot.constants.get("joints", ())) != joints:
            return None
        delta, samples = (
            find_parameter(robot, self.context.recording, named[k]) for k in ("delta", "samples")
        )
        if delta is None or samples is None:
            return None
        return np.asarray(delta, np.float64), np.asarray(samples, np.float64)


def _kind(window: Window[Any]) -> str:
    words = f"{window.stream.tag} {window.stream.name}".lower()
    return next((kind for kind in SENSOR_KINDS if kind in words), "")


def _is_other(joints: Window[Any], kind: str, other: Window[Any]) -> bool:
    """Return whether a stream has the other sensors of the same arm's joints."""
    device = joints.stream.name.rpartition("/")[0] == other.stream.name.rpartition("/")[0]
    return bool(kind) and device and _kind(other) in set(SENSOR_KINDS) - {kind}


def _nearest(own: Window[Any], other: Window[Any]) -> Ints:
    """Return for each sample the index of the other stream's sample nearest in time."""
    after = np.clip(np.searchsorted(other.t_ns, own.t_ns), 0, len(other) - 1)
    before = np.maximum(after - 1, 0)
    is_before = np.abs(other.t_ns[before] - own.t_ns) <= np.abs(other.t_ns[after] - own.t_ns)
    return np.where(is_before, before, after)

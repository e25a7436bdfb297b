"""GNSS fixes and local positions as measurements of a point of the body, with their noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.geometry import geodesy, rotations
from transect.types import NavFix, Pose

from .context import FusionContext
from .events import MeasuredPosition
from .gnss_sigma import VERTICAL_RATIO, FixSigma, sigma_of_fix
from .height_noise import HEIGHTS, HeightConsistency, HeightSettings
from .mounts import ANTENNA_FRAMES, FLU_FROM_FRD, SensorMounts
from .position_noise import PositionNoise

WHITE_FIX_TYPES = ("rtk fixed",)
"""Types of fixes whose errors are nearly independent."""


@dataclass(frozen=True)
class PositionInputSettings:
    """Noise and rate of measured positions."""

    # m, horizontal sigma of `position`, default that of RTK; 0: the default, replaced by the estimated noise
    position_std: float = 0.02
    fix_std: float = 0.0  # m, horizontal sigma of fixes that state none; 0: typical of their type and HDOP
    # s, shortest time between two positions that are used, as successive errors of receivers are correlated
    fix_period: float = 0.2
    period_tolerance: float = 0.95  # ratio to the period of the shortest interval, because times jitter
    estimate_noise: bool = False  # whether unstated or wrongly stated noise is estimated
    # Positions without heights: sigma of the assumed height of 0, which is measured once per period.
    unknown_height_std_m: float = 10.0
    unknown_height_period_s: float = 60.0
    heights: HeightSettings = HEIGHTS


POSITION_INPUTS = PositionInputSettings()


class PositionInputs:
    """Converts fixes and positions; the first fix is the origin of the map."""

    def __init__(self, mounts: SensorMounts, settings: PositionInputSettings = POSITION_INPUTS) -> None:
        self.mounts, self.settings = mounts, settings
        self.origin: Floats | None = None  # geodetic: rad, rad, m
        self.frame = "map"
        self.noise, self.heights = PositionNoise(), HeightConsistency(settings.heights)
        self._has_origin_height = False
        self._last_ns: dict[str, int] = {}
        self._height_note = ""

    def with_estimated_noise(self, position: MeasuredPosition) -> MeasuredPosition:
        """Return a position with its noise as estimated until now, if it is estimated."""
        estimate = self.noise.level_of(position)
        if estimate is None:
            return position
        std, correlated = estimate
        std[2] = max(std[2], self.heights.std) if position.has_height else position.std[2]
        return replace(position, std=std / position.trust, correlated_std=correlated, white=True)

    def from_fix(self, ctx: FusionContext, fix: NavFix) -> MeasuredPosition | None:
        """Return the position of the antenna by a fix."""
        if self._is_within_period("fix", fix.t_ns):
            return None
        geodetic = np.array([fix.latitude, fix.longitude, fix.altitude])
        if fix.fix == "none" or not np.isfinite(geodetic[:2]).all():
            return ctx.skip("fix: none")
        sigma = sigma_of_fix(fix, self.settings.fix_std)
        assumptions = self.mounts.assumptions
        if sigma.note:
            until = " until estimated" if sigma.noise_class and self.settings.estimate_noise else ""
            assumptions.note_noise(ctx, "fix", sigma.note.replace("are assumed", f"are assumed{until}"))
        else:
            assumptions.declared_fix_stds.append(float(sigma.std[:2].max()))
        std, has_height, discrepancy = self._test_height(ctx, "fix", fix.t_ns, geodetic, sigma.std)
        geodetic = self._set_origin(geodetic)
        assert self.origin is not None
        lever_arm = self.mounts.lever_arm(ctx, (self.mounts.antenna, fix.frame, *ANTENNA_FRAMES))
        white = fix.fix in WHITE_FIX_TYPES
        noise_class = self._noise_class("fix", sigma, white=white)
        attitude = self._attitude(ctx, fix.attitude)
        local = geodesy.local_from_geodetic(geodetic, self.origin)
        local[2] = local[2] if has_height else 0.0
        return MeasuredPosition(
            "fix", fix.t_ns, local, std, lever_arm, white, attitude, has_height, discrepancy,
            noise_class=noise_class, noise_factor=sigma.factor,
        )  # fmt: skip

    def from_pose(self, ctx: FusionContext, pose: Pose) -> MeasuredPosition | None:
        """Return the position of the antenna, or of the pose's child, by a local position."""
        if not np.isfinite(pose.position[:2]).all():
            return ctx.skip("position: not measured")
        if self._is_within_period("position", pose.t_ns):
            return None
        self.frame = pose.frame or self.frame
        lever_arm = self.mounts.lever_arm(ctx, (pose.child or self.mounts.antenna, *ANTENNA_FRAMES[:1]))
        given = self.settings.position_std
        std = (given or POSITION_INPUTS.position_std) * np.array([1.0, 1.0, VERTICAL_RATIO])
        noise_class = "" if given else self._noise_class("position", FixSigma(std), white=True)
        source = "by position_std" if given else "assumed; position_std sets another value"
        self.mounts.assumptions.note_noise(
            ctx, "position", f"position: standard deviation {std[0]:g} m ({source})"
        )
        position_std, has_height, discrepancy = self._test_height(
            ctx, "position", pose.t_ns, pose.position, std
        )
        return MeasuredPosition(
            "position", pose.t_ns, np.nan_to_num(pose.position), position_std, lever_arm, True, None,
            has_height, discrepancy, noise_class=noise_class,
        )  # fmt: skip

    def _noise_class(self, sensor: str, sigma: FixSigma, *, white: bool) -> str:
        """Return the noise class of a position; "" if its noise is used as stated."""
        if not self.settings.estimate_noise:
            return ""
        h, v = float(sigma.std[:2].max()) / sigma.factor, float(sigma.std[2]) / sigma.factor
        if sigma.noise_class:
            return self.noise.assign_class(sensor, sigma.noise_class, (h, v), white=white, stated=False)
        return "" if sigma.note else self.noise.assign_class(sensor, "", (h, v), white=white, stated=True)

    def _set_origin(self, geodetic: Floats) -> Floats:
        """Return a geodetic position (3,) with a height; the first position and height are the origin."""
        if self.origin is None:
            self.origin = np.nan_to_num(geodetic)
        if np.isfinite(geodetic[2]) and not self._has_origin_height:
            self.origin[2], self._has_origin_height = geodetic[2], True
        return np.where(np.isfinite(geodetic), geodetic, self.origin)

    def _test_height(
        self, ctx: FusionContext, sensor: str, t_ns: int, position: Floats, std: Floats
    ) -> tuple[Floats, bool, float]:
        """Return sigmas (3,), whether the height is measured, and its new discrepancy (m); store the time."""
        settings, assumptions = self.settings, self.mounts.assumptions
        last_ns = self._last_ns.get(sensor, t_ns - round(settings.fix_period * NS))
        self._last_ns[sensor] = t_ns
        if np.isfinite(position[2]):
            test = self.heights.test(sensor, float(position[2]), float(std[2]))
            if test.note:
                assumptions.notes.pop(self._height_note, None)
                assumptions.note(ctx, test.note)
                self._height_note = test.note
            return np.array([*std[:2], test.std]), True, test.discrepancy
        height_std, height_period_s = settings.unknown_height_std_m, settings.unknown_height_period_s
        assumptions.note(
            ctx, f"{sensor} has no heights: 0 is assumed, with a standard deviation of {height_std:g} m"
        )
        period = min(max((t_ns - last_ns) / NS, 0.01), height_period_s)
        return np.array([*std[:2], height_std * np.sqrt(height_period_s / period)]), False, 0.0

    def _is_within_period(self, sensor: str, t_ns: int) -> bool:
        """Return whether a position follows the last used one in less than the period."""
        last_ns, settings = self._last_ns.get(sensor), self.settings
        min_ns = settings.period_tolerance * round(settings.fix_period * NS)
        return last_ns is not None and t_ns - last_ns < min_ns

    def _attitude(self, ctx: FusionContext, angles: Floats | None) -> Floats | None:
        """Return the body's attitude (4,) in the map by that of the receiver (x forward, z down; NED)."""
        if angles is None or not np.isfinite(angles).all():
            return None
        enu_ned = np.array([np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0])
        receiver = rotations.multiply(enu_ned, rotations.quaternion_from_euler("rpy", angles))
        mounts = [mount for name in ANTENNA_FRAMES if (mount := self.mounts.find(ctx, name)) is not None]
        R = next((mount for mount in mounts if mount[2, 2] < 0), FLU_FROM_FRD)[:3, :3]
        return rotations.multiply(receiver, rotations.conjugate(rotations.quaternion_from_matrix(R)))

"""Checks of dust, smoke and rain in lasers and lidars (C01 to C04, X01)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.engine.nodes import param
from transect.errors import TransectError
from transect.geometry.neighbours import beam_spacing
from transect.geometry.robust import SIGMA_PER_MAD
from transect.integrity.baselines import Baseline
from transect.integrity.lasers.background import EarlyReturnMask
from transect.integrity.lasers.obscurants import BackgroundCheck, ObscurantDetectors
from transect.integrity.lasers.point_clouds import CloudPoints, find_airborne, find_isolated, points_of
from transect.integrity.lasers.returns import grow_mask
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import Moving
from transect.integrity.windows import Window
from transect.types import LaserScan, PointCloud, RadarRange


class EarlyReturns(BackgroundCheck, id="C01", group="content", min_samples=3, version=4):
    """Fraction of the beams with an early return: ``mean(r < B - max(0.5 m, 5 sigma))``.

    B is the usual range of the direction and its neighbours: a low percentile of the previous clear
    windows. An early return alone does not distinguish a cloud from an object, so that this check is
    SUSPECT at most; if most early returns are from surfaces (C02), or do not scatter, they are an object,
    and the laser is right. While the robot moves, a return is early if it is from a half-metre cell
    through which beams passed in the seconds before, and in or beside which no beam ended. That requires
    the robot's poses.

    Motive: SDI, 5.1: a cloud is "almost seen as an actual obstacle", its points are "located between the
    vehicle and the actual position of the obstacle".
    """

    share = Limit(0.004, 0.03, "OBSCURANT", "", "fraction of the beams that return early")

    def judge(self, early: EarlyReturnMask, n: int) -> Finding:
        """Count early returns, and those of them that are from surfaces."""
        solid = early.sweeps.ratio(early.solid)
        found = {"solid": solid, "nearest_m": float(np.nanmin(early.sweeps.ranges, initial=np.inf))}
        if solid >= early.ratio / 2 or not early.is_cloud:
            return Finding({"share": early.ratio}, n, found, "OBJECT", min_score=0.7)
        return Finding({"share": early.ratio}, n, found, min_score=0.2)


class Obscurant(BackgroundCheck, id="C02", group="content", min_samples=3, version=8):
    """Fraction of the beams with an early return from no surface, beyond what edges of objects cause.

    An early return (C01) is from a surface if two neighbours in its sweep are within 0.15 m, or its
    neighbours are in line with it, and two in the sweeps before and after are within 0.1 m plus the
    motion at 2 m/s between sweeps; while the robot moves, either condition is enough. The other early
    returns scatter: Q is their median difference from early returns beside, J that from one sweep to the
    next. In a cloud Q is at least 0.2 m, or J more than objects can cause. Few early returns, most of
    them isolated, are rain (C03).

    While the robot moves, a dense cloud hides the free space that defines early returns, as does
    unexplored space. If a cloud is expected (there was one in the last four windows, or another laser of
    the robot, its peer, has 3 % of its beams in one now), returns from unknown cells count as early as
    well, if they are from no surface and at least 3 % of the beams.

    A cloud is porous. Its returns are masked if at least half of the beams that reach their place go on,
    up to 0.27 s before and after and 0.1 m beside, unless the return is from a surface that the sweeps
    before and after have, too. Without another beam a return is masked if its place was not known to be
    occupied. While the laser stands only returns that are nearer than usual by 0.2 m are masked, together
    with all early returns that scatter.

    Motive: SDI, 5.1: dust and smoke are "random points in the laser scans".
    """

    share = Limit(0.004, 0.03, "OBSCURANT", "", "fraction of the beams that return from dust or smoke")

    def judge(self, early: EarlyReturnMask, n: int) -> Finding:
        """Count early returns that scatter."""
        neighbour_difference, sweep_difference = early.roughness
        found = {"early": early.ratio, "Q_m": neighbour_difference, "J_m": sweep_difference}
        if early.is_rain or not early.is_rough:
            return Finding({"share": 0.0}, n, found)
        if not (early.is_cloud or early.cloud_expected):
            return Finding({"share": 0.0}, n, found)
        share, region = early.sweeps.ratio(early.scattered), early.sweeps.region(_mask_cloud(early))
        return Finding({"share": share}, n, found, peers=early.peers, region=region)


def _mask_cloud(early: EarlyReturnMask) -> Mask:
    """Return the cloud (s, d), grown by early returns among masked ones while the laser stands."""
    cloud = early.cloud
    return cloud if early.moving else cloud | (grow_mask(cloud, early.sweeps.ranges) & early.mask)


@dataclass(frozen=True)
class RainSettings:
    """Numbers of the drops that a slow laser sees."""

    slow_laser_windows: int = 4  # Windows of a slow laser that count together: one has too few drops.
    # A person far away is one beam of each sweep, always in the same direction.
    direction_width_rad: float = float(np.radians(10.0))


class Rain(BackgroundCheck, id="C03", group="content", min_samples=3, version=4):
    """Fraction of the beams with an isolated early return: no other early return is around it.

    Around means two directions to each side, one sweep before and after, and 0.3 m. It is rain if at
    least half of the early returns from no surface are isolated, they are fewer than 3 % of all beams,
    and come from all directions, unlike those at the edge of a cloud or just after a cloud. One or two
    are insects. For a slow laser that moves, a drop is half a metre in front of its neighbours, the
    sweeps around saw through its place, four windows count together, and drops within ten degrees count
    as one. Rain leaves a laser usable: the score is at least 0.7, and the drops are masked.

    Motive: SDI, 5.2: drops are "isolated, spatially and temporally"; the lasers are "not significantly
    affected".
    """

    settings = RainSettings()

    rate = Limit(0.0005, 0.01, "RAIN", "", "fraction of the beams that hit single drops")
    insects: int = param(2, ge=0, doc="largest number of isolated returns per window that is no rain")

    def reset(self) -> None:
        """Start without drops."""
        self._seen: deque[tuple[Floats, int]] = deque(maxlen=self.settings.slow_laser_windows)

    def judge(self, early: EarlyReturnMask, n: int) -> Finding:
        """Count isolated early returns."""
        isolated = early.sweeps.ratio(early.isolated)
        found = {"early": early.ratio, "isolated": isolated / early.ratio if early.ratio else np.nan}
        if not early.is_rain:
            self._seen.clear()
            return Finding({"rate": 0.0}, n, found)
        rate, directions = self._count(early)
        if directions <= self.insects:
            return Finding({"rate": 0.0}, n, found)
        region = early.sweeps.region(early.isolated)
        return Finding({"rate": rate}, n, found, region=region, min_score=0.7)

    def _count(self, early: EarlyReturnMask) -> tuple[float, int]:
        """Return the ratio of beams that hit drops, and the number of their directions."""
        measured = early.sweeps.measured
        if early.isolated_in_free_space is None:
            drops = int(np.count_nonzero(early.isolated & measured))
            return drops / max(int(measured.sum()), 1), drops
        self._seen.append(
            (early.sweeps.angles[np.nonzero(early.isolated & measured)[1]], int(measured.sum()))
        )
        angles = np.concatenate([each for each, _ in self._seen])
        directions = len(np.unique(np.floor(angles / self.settings.direction_width_rad)))
        return len(angles) / max(sum(beams for _, beams in self._seen), 1), directions


@dataclass(frozen=True)
class AirborneSettings:
    """Numbers of the baseline of airborne points."""

    min_points: int = 2000  # Points of a cloud whose neighbourhood is dense enough.
    # Largest ratio of airborne points in clear air; real submaps have as much.
    max_usual_ratio: float = 0.03
    min_windows: int = 5  # Windows that determine the baseline.
    baseline_sigmas: float = 3.0  # Deviation above the baseline that is still usual.


class Airborne(Check, id="C04", group="content"):
    """Fraction of a cloud's points that are isolated (DROR) and in front of everything around them.

    A point has no neighbours if fewer than 3 are within ``max(0.04 m, 3 alpha range)``; alpha is the
    usual angle between a point and its nearest neighbour in the stream's first clouds, so that it suits
    any number of rings. Far surfaces, and those at grazing incidence, have such points, too (4 to 37 % in
    clear air), but with points of similar range beside them. An airborne point is nearer than 0.9 of the
    range of seven of its eight neighbours in direction. The usual ratio of the stream, at most 3 %, is
    subtracted. Points without neighbours that are nearer than half of these neighbours are masked.

    Motive: Lidars of AMEDS and CDFF; SDI, 5.1: dust is "random points in the laser scans".
    """

    settings = AirborneSettings()

    share = Limit(0.01, 0.1, "OBSCURANT", "", "fraction of the points that are in the air, more than usual")
    most: int = param(2, ge=1, le=100, doc="largest number of clouds per window that are processed")

    learns_baseline = True

    def reset(self) -> None:
        """Start without baselines."""
        self._spacing, self._share = Baseline(), Baseline(min_windows=self.settings.min_windows)

    def evaluate(self, lidar: Window[PointCloud]) -> Finding | Unknown:
        """Count airborne points in a few clouds."""
        views = [view for view in points_of(lidar, self.most) if len(view.points) >= self.settings.min_points]
        if not views:
            return Unknown(
                "TOO_FEW", f"its clouds have less than {self.settings.min_points} points", len(lidar)
            )
        found = [self._find(view) for view in views]
        isolated, share = (float(np.mean([np.mean(each[k]) for each in found])) for k in (0, 1))
        known = self._share.value + self.settings.baseline_sigmas * self._share.spread
        usual = (
            min(self.settings.max_usual_ratio, known) if np.isfinite(known) else self.settings.max_usual_ratio
        )
        self._share.learn(share)
        beyond = max(0.0, share - usual)
        region = _region(lidar, views, [each for *_, each in found]) if beyond > self.share.warn else None
        evidence = {"alone": isolated, "hanging": share, "usual": usual}
        return Finding({"share": beyond}, len(views), evidence, region=region)

    def _find(self, view: CloudPoints) -> tuple[Mask, Mask, Mask]:
        """Return which points (n,) are isolated, which of these are airborne, and which may be."""
        now = beam_spacing(view.points)
        usual = self._spacing.value
        self._spacing.learn(now)
        isolated = find_isolated(view, min(now, usual) if np.isfinite(usual) else now)
        return isolated, *find_airborne(view, isolated)


def _region(lidar: Window[PointCloud], views: list[CloudPoints], found: list[Mask]) -> Mask:
    """Return the masked points (clouds, points) of a window; other clouds have none."""
    region: Mask = np.zeros((len(lidar), max(view.count for view in views)), np.bool_)
    for view, airborne in zip(views, found, strict=True):
        region[view.row - lidar.start, np.flatnonzero(view.used)[airborne]] = True
    return region


@dataclass(frozen=True)
class LaserRadarSettings:
    """Numbers of the comparison of laser and radar ranges."""

    bearing_width_rad: float = float(np.radians(2.0))
    # Elevation from the radar's plane up to which both see the same.
    max_elevation_rad: float = float(np.radians(4.0))
    margin_m: float = 0.5  # A laser return is short of the radar's range by more than this ...
    margin_sigmas: float = 3.0  # ... plus this number of sigmas, ...
    min_sigma_m: float = 0.15  # ... each at least this.
    max_target_sigma_m: float = 1.0  # Sigma of the radar's ranges at a bearing with one target.
    min_returns: int = 20  # Early returns that the radar can judge.


class LaserRadar(Check, id="X01", group="cross", min_samples=5, version=5):
    """Fraction of a laser's early returns from no surface (C02) behind which the radar sees farther.

    ``short = r_laser < r_radar - (0.5 m + 3 sigma_radar)`` at the radar's bearing, in the radar's frame,
    for returns within 4 degrees of its plane, where the radar has one target (sigma below 1 m). The radar
    has one range per direction: where it is nearer than the laser's return, as for ground in front of the
    vehicle, nothing is known behind it. A cloud is transparent to the radar: most of its returns are
    short, and are masked. Returns from surfaces are not tested: the radar's strongest target may be the
    wall behind a person.

    Motive: SDI, 5.1: lasers see false obstacles in dust, while the radar is "not visibly affected".
    """

    settings = LaserRadarSettings()

    disagreement = Limit(
        0.3, 0.5, "OBSCURANT", "", "fraction of the scattered returns that the radar sees through"
    )

    def evaluate(
        self,
        laser: Window[LaserScan],
        radars: Sequence[Window[RadarRange]],
        moving: Sequence[Window[Moving]] = (),
        lasers: Sequence[Window[LaserScan]] = (),
    ) -> Finding | Unknown:
        """Compare early returns with the ranges of the first radar that has any."""
        radar = next((each for each in radars if len(each)), None)
        if radar is None:
            return Unknown("NO_PEER", n=len(laser))
        early = ObscurantDetectors.of(self.context).find_early(laser, lasers, moving, self.context)
        if isinstance(early, Unknown):
            return early
        peers, found = (radar.stream.name,), {"early": early.ratio}
        if not early.is_cloud or early.is_rain:
            return Finding({"disagreement": 0.0}, len(laser), found, peers=peers)
        try:
            T = self.context.frames.lookup(radar.stream.frame, laser.stream.frame, laser.t1_ns)
        except TransectError as error:
            return Unknown("NO_FRAMES", error.what, len(laser), found)
        known, short = _compare_ranges(radar, early, T, self.settings)
        count = int(known.sum())
        if count < self.settings.min_returns:
            return Unknown("TOO_FEW", "the radar does not see what the laser sees", len(laser), found)
        share = float(short.sum()) / count
        found["confirmed"] = 1.0 - share
        note = "" if share > self.disagreement.warn else "the radar sees an object there, too"
        region = early.sweeps.region(short) if share > self.disagreement.warn else None
        return Finding({"disagreement": share}, len(laser), found, note=note, peers=peers, region=region)


def _compare_ranges(
    radar: Window[RadarRange], early: EarlyReturnMask, T: Floats, settings: LaserRadarSettings
) -> tuple[Mask, Mask]:
    """Return which scattered returns (s, d) the radar can judge, and which it sees through."""
    r, angles = np.where(early.scattered, early.sweeps.ranges, np.nan), early.sweeps.angles
    beams = np.stack([np.cos(angles), np.sin(angles), np.zeros(len(angles))], axis=-1)
    points = r[..., None] * (beams @ T[:3, :3].T) + T[:3, 3]
    flat = np.hypot(points[..., 0], points[..., 1])
    level = np.abs(np.arctan2(points[..., 2], flat)) < settings.max_elevation_rad
    bearing = np.arctan2(points[..., 1], points[..., 0])
    middle, sigma = _profile(radar.column("angle"), radar.column("range"), settings)
    bin_index = np.mod(
        np.rint(np.nan_to_num(bearing) / settings.bearing_width_rad).astype(np.int64), len(middle)
    )
    far, deviation = middle[bin_index], sigma[bin_index]
    margin = settings.margin_m + settings.margin_sigmas * np.maximum(deviation, settings.min_sigma_m)
    known = early.scattered & level & (deviation < settings.max_target_sigma_m) & (flat < far + margin)
    return known, known & (flat < far - margin)


def _profile(angle: Floats, ranges: Floats, settings: LaserRadarSettings) -> tuple[Floats, Floats]:
    """Return the median range and its sigma (k,) by bearing from 0 on, NaN without ranges."""
    count = round(2 * np.pi / settings.bearing_width_rad)
    bin_index = np.mod(np.rint(angle / settings.bearing_width_rad).astype(np.int64), count)
    middle, sigma = np.full(count, np.nan), np.full(count, np.nan)
    for each in np.unique(bin_index):
        in_bin = ranges[bin_index == each]
        middle[each] = np.median(in_bin)
        sigma[each] = SIGMA_PER_MAD * np.median(np.abs(in_bin - middle[each]))
    return middle, sigma

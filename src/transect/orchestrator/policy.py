"""Which compound or sensor makes a product while some sensors are BAD: a table that a user can edit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path

from transect.base import yaml_fields
from transect.base.yaml_parts import YamlPart, parse, refuse
from transect.errors import ParseError

DEFAULT_TABLE = Path(__file__).with_name("policy.yaml")


@dataclass(frozen=True)
class Alternative:
    """One compound, or one sensor of a compound, that can make a product."""

    use: str  # `Compound/Implementation`, or the sensor's name in the parameter of the joining compound
    unless: list[str] = field(default_factory=list[str])  # sensor groups; not used while one of them is BAD
    # The covariances that it emits describe its drift from step to step. Those of an odometry that matches
    # scans with its own map describe the error of its poses in that map instead.
    drift_covariance: bool = False
    # Radius (m) of the map with which an odometry matches its scans: within it, its poses do not drift.
    # 0 for an odometry without a map.
    map_radius: float = 0.0

    def check(self, part: YamlPart) -> None:
        """Report values that the types allow but that are invalid."""
        if not 0 <= self.map_radius < math.inf:
            part.child("map_radius").wrong(f"the radius of a map cannot be {self.map_radius:g} m")


@dataclass(frozen=True)
class FallbackRule:
    """The alternatives for one kind of product, the preferred one first, and how their outputs are joined."""

    joined_by: str  # compound that makes one product from what each alternative gives in its time
    parameter: str  # its `NODE.PARAMETER` that states which alternative is used when
    choices: list[Alternative]
    margin: float = 0.0  # seconds before a suspect window in which a sensor is not used either
    smoothed_by: str = ""  # compound that makes the final trajectory from all sensors; "" for none
    set: dict[str, float] = field(default_factory=dict[str, float])  # its parameters, by `NODE.PARAMETER`

    def check(self, part: YamlPart) -> None:
        """Report values that the types allow but that are invalid."""
        if not 0 <= self.margin < math.inf:
            part.child("margin").wrong(f"a margin cannot be {self.margin:g} s")


@dataclass(frozen=True)
class SensorPolicy:
    """The fallback rules of all kinds of products."""

    dwell: float = 3.0  # seconds for which an alternative is kept at least
    groups: dict[str, list[str]] = field(default_factory=dict[str, list[str]])  # stream types by sensor group
    kinds: dict[str, FallbackRule] = field(default_factory=dict[str, FallbackRule])  # by kind of product

    def check(self, part: YamlPart) -> None:
        """Report values that the types allow but that are invalid."""
        if self.dwell < 0:
            part.child("dwell").wrong(f"a dwell time cannot be {self.dwell:g} s")

    def rule_for(self, kind: str) -> FallbackRule | None:
        """Return the rule for a kind of product; None if the table has none."""
        return next((each for name, each in self.kinds.items() if name.casefold() == kind.casefold()), None)


def load_policy(path: Path | None = None) -> SensorPolicy:
    """Return the default policy, in which a user's table replaces kinds and groups.

    Raises
    ------
    ParseError
        Names the file and everything that is wrong with it.
    """
    default = _read(DEFAULT_TABLE)
    if path is None:
        return default
    own = _read(path)
    both = replace(own, groups={**default.groups, **own.groups}, kinds={**default.kinds, **own.kinds})
    named = {group for each in both.kinds.values() for choice in each.choices for group in choice.unless}
    if unknown := sorted(named - both.groups.keys()):
        hint = f"groups are {', '.join(both.groups)}; `groups:` may add one"
        raise ParseError(f"there is no group of sensors {unknown[0]!r}", where=str(path), hint=hint)
    return both


def _read(path: Path) -> SensorPolicy:
    try:
        data, lines = parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ParseError("the policy cannot be read", where=str(path), why=str(error)) from error
    part = YamlPart(data if data is not None else {}, (), lines)
    policy = yaml_fields.read(part, SensorPolicy, "the policy")
    refuse(part.problems, str(path))
    return policy or SensorPolicy()

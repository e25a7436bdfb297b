"""Which compound, or sensor, makes a product while which sensors can be trusted: a table that people edit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path

from transect.base import yaml_fields
from transect.base.yaml_parts import Part, parse, refuse
from transect.errors import ParseError

OURS = Path(__file__).with_name("policy.yaml")


@dataclass(frozen=True)
class Choice:
    """One way to a product.

    Attributes
    ----------
    use : str
        `Compound/Implementation`, or what the parameter of the joining compound calls a sensor.
    unless : list of str
        Groups of sensors; it is not used while one of them is BAD.
    tells_drift : bool
        Whether the covariances that it gives are those of its drift from step to step. Those of an odometry
        that lays scans on its own map are not: they tell how its poses stray.
    reach : float
        How far, m, the map reaches that an odometry lays its scans on: so far it wanders and does not drift;
        0 for one without a map.
    """

    use: str
    unless: list[str] = field(default_factory=list[str])
    tells_drift: bool = False
    reach: float = 0.0

    def check(self, part: Part) -> None:
        """Note what types alone cannot say."""
        if not 0 <= self.reach < math.inf:
            part.child("reach").wrong(f"a map cannot reach {self.reach:g} m")


@dataclass(frozen=True)
class Contest:
    """The ways to one kind of product, the best first, and what makes one product of them.

    Attributes
    ----------
    joined_by : str
        Compound that gives the product by what each choice gives in its time.
    parameter : str
        `NODE.PARAMETER` of it that is told what is used when.
    choices : list of Choice
    margin : float
        Seconds before doubts for which a sensor is not used either, once that is known.
    smoothed_by : str
        Compound that makes a trajectory in the end, of everything but what was doubted; "" for none.
    set : mapping of str to float
        `NODE.PARAMETER` of that compound, and what it is.
    """

    joined_by: str
    parameter: str
    choices: list[Choice]
    margin: float = 0.0
    smoothed_by: str = ""
    set: dict[str, float] = field(default_factory=dict[str, float])

    def check(self, part: Part) -> None:
        """Note what types alone cannot say."""
        if not 0 <= self.margin < math.inf:
            part.child("margin").wrong(f"a margin cannot be {self.margin:g} s")


@dataclass(frozen=True)
class Policy:
    """What is used when.

    Attributes
    ----------
    dwell : float
        Seconds that a choice holds at least.
    groups : mapping of str to list of str
        By group of sensors: types of its streams.
    kinds : mapping of str to Contest
        By kind of product.
    """

    dwell: float = 3.0
    groups: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    kinds: dict[str, Contest] = field(default_factory=dict[str, Contest])

    def check(self, part: Part) -> None:
        """Note what types alone cannot say."""
        if self.dwell < 0:
            part.child("dwell").wrong(f"a choice cannot hold for {self.dwell:g} s")

    def contest(self, kind: str) -> Contest | None:
        """Return the ways to a kind of product; None if the table does not name it."""
        return next((each for name, each in self.kinds.items() if name.casefold() == kind.casefold()), None)


def load_policy(path: Path | None = None) -> Policy:
    """Return our policy; kinds and groups that a table of a person's own names come instead.

    Raises
    ------
    ParseError
        That names the file and all that is wrong with it.
    """
    ours = _read(OURS)
    if path is None:
        return ours
    own = _read(path)
    both = replace(own, groups={**ours.groups, **own.groups}, kinds={**ours.kinds, **own.kinds})
    named = {group for each in both.kinds.values() for choice in each.choices for group in choice.unless}
    if unknown := sorted(named - both.groups.keys()):
        hint = f"groups are {', '.join(both.groups)}; `groups:` may add one"
        raise ParseError(f"there is no group of sensors {unknown[0]!r}", where=str(path), hint=hint)
    return both


def _read(path: Path) -> Policy:
    try:
        data, lines = parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ParseError("the policy cannot be read", where=str(path), why=str(error)) from error
    part = Part(data if data is not None else {}, (), lines)
    policy = yaml_fields.read(part, Policy, "the policy")
    refuse(part.problems, str(path))
    return policy or Policy()

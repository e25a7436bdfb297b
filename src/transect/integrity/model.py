"""What a check is: typed inputs, limits, and a step that looks at one window after the other."""

from __future__ import annotations

import collections.abc
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from transect.base.arrays import Mask
from transect.engine.nodes import Parameter, check_values, is_declared, parameters_of
from transect.errors import UsageError, did_you_mean
from transect.recording import FrameTree, Recording, Robot

from .rules import GROUPS, K_OFF, K_ON, score_of
from .windows import Window

Group = Literal["timing", "signal", "content", "cross", "state"]


class CheckError(UsageError):
    """A check that is not declared as checks are, or limits that it does not have."""


@dataclass(frozen=True)
class Limit:
    """What a statistic is held against.

    Attributes
    ----------
    warn, fail : float
        Beyond `warn` the score is 0.5 and falls to 0 at `fail`; `warn` > `fail` means that little is bad.
    reason : str
        Code of what it means if the statistic is beyond: `GAP`, `DUST`, ...
    unit, doc : str
        Of the statistic.
    """

    warn: float
    fail: float
    reason: str
    unit: str = ""
    doc: str = ""

    def score(self, value: float) -> float | None:
        """Return how far a statistic lets a sensor be trusted, None for NaN."""
        return score_of(value, self.warn, self.fail)


def _no_numbers() -> dict[str, float]:
    return {}


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found in a window.

    Attributes
    ----------
    statistics : mapping of str to float
        By the names of the check's limits; NaN where one cannot be told. The worst one counts.
    n : int
        Samples that were used.
    evidence : mapping of str to float
        What else was measured.
    reason : str
        Instead of that of the limit, where the check knows better.
    note : str
        What a person should know: `its stamps are probably in ms`.
    peers : tuple of str
        Streams that it was compared with.
    region : bool array or None
        What to drop: (k,) beams, (h, w) pixels, or (n, k) for each of the window's samples.
    floor : float
        Smallest score that it can give: rain leaves a laser usable.
    """

    statistics: Mapping[str, float]
    n: int
    evidence: Mapping[str, float] = field(default_factory=_no_numbers)
    reason: str = ""
    note: str = ""
    peers: tuple[str, ...] = ()
    region: Mask | None = None
    floor: float = 0.0


@dataclass(frozen=True, slots=True)
class Unknown:
    """A check cannot tell, and why: `NO_DATA`, `TOO_FEW`, `NO_PEER`, `LEARNING`, `MOVING`, `AT_REST`, ..."""

    reason: str
    note: str = ""
    n: int = 0
    evidence: Mapping[str, float] = field(default_factory=_no_numbers)


NO_DATA = Unknown("NO_DATA")
NO_BASELINE = "NO_BASELINE"
"""Reason for UNKNOWN: a sensor may see through dust or smoke, and nothing shows how clear air looks to it."""


@dataclass(frozen=True)
class Input:
    """One input of a check, read from the signature of `look`."""

    name: str
    types: tuple[type, ...]
    needed: bool = True

    def takes(self, kind: type) -> bool:
        """Tell whether streams of a type may be given."""
        return any(issubclass(kind, each) for each in self.types)


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What is known of the robot while a check looks: its frames, itself, and how the recording is called.

    All checks of a session share one object.
    """

    frames: FrameTree = field(default_factory=FrameTree)
    robot: Robot | None = None
    recording: Recording | None = None


class Check:
    """One check; there is one object for each stream that it judges.

    ``class Gap(Check, id="T02", group="timing")``. Its docstring has the formula, and after `Motive:` the
    sentence for which it exists.

    A subclass says what it is, and writes `look`. The signature of `look` is the list of its inputs: first
    the stream that is judged (``laser: Window[LaserScan]``), then streams that it is compared with, all of a
    type there are (``radars: Sequence[Window[RadarRange]]``; with the default ``()`` there may be none).
    What `look` returns is held against limits, which are class variables of type `Limit`; parameters are
    declared as those of nodes are (`transect.engine.param`). State is set in `reset`.

    Attributes
    ----------
    id : str
        `T02`; letter of the group and a number.
    group : str
        `timing`, `signal`, `content`, `cross` or `state`.
    version : int
        Goes up whenever the same samples may give another verdict.
    limits : mapping of str to Limit
        By name: of the class its defaults, of an object those that hold for the stream.
    k_on, k_off : int
        Windows in a row after which BAD is declared and cleared; 1 for what one window proves.
    least : int
        Samples that a window must have for `look` to be called; with fewer the verdict is UNKNOWN.
    learns_baseline : bool
        Its first windows are what later ones are compared with, so that a reference in clear air helps.
    about : Surroundings
    """

    id: ClassVar[str] = ""
    group: ClassVar[Group] = "content"
    version: ClassVar[int] = 1
    least: ClassVar[int] = 1
    limits: Mapping[str, Limit] = MappingProxyType({})
    k_on: int = K_ON
    k_off: int = K_OFF
    parameters: ClassVar[dict[str, Parameter]] = {}
    inputs: ClassVar[tuple[Input, ...]] = ()
    learns_baseline: ClassVar[bool] = False
    about: Surroundings
    look: Callable[..., Finding | Unknown]
    """What is in a window. Windows come in order; those with fewer than `least` samples are left out."""

    def __init_subclass__(
        cls,
        id: str = "",
        group: Group | None = None,
        version: int = 1,
        least: int = 1,
        k_on: int = K_ON,
        k_off: int = K_OFF,
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        cls.id, cls.group, cls.version = id or cls.id, group or cls.group, version
        cls.least, cls.k_on, cls.k_off = least, k_on, k_off
        cls.limits = {**cls.limits, **{k: v for k, v in vars(cls).items() if isinstance(v, Limit)}}
        hints = get_type_hints(cls)
        own = parameters_of(vars(cls), hints, cls.__name__)
        cls.parameters = {**cls.parameters, **own}
        for name, parameter in own.items():
            if is_declared(getattr(cls, name)):
                setattr(cls, name, parameter.default)
        if "look" in vars(cls):
            cls.inputs = _inputs_of(cls)
        if cls.group not in GROUPS:
            raise CheckError(f"{cls.__name__} has the unknown group {cls.group!r}")

    def __init__(
        self,
        limits: Mapping[str, tuple[float, float]] | None = None,
        about: Surroundings | None = None,
        k_on: int | None = None,
        k_off: int | None = None,
        **parameters: Any,
    ) -> None:
        known = type(self).limits
        for name in limits or {}:
            if name not in known:
                raise CheckError(f"{self.id} has no limit {name!r}", hint=did_you_mean(name, known))
        given = {name: replace(known[name], warn=w, fail=f) for name, (w, f) in (limits or {}).items()}
        self.limits = {**known, **given}
        vars(self).update(given)
        self.about = about or Surroundings()
        self.k_on, self.k_off = k_on or self.k_on, k_off or self.k_off
        for name, value in check_values(self.parameters, parameters, self.id).items():
            setattr(self, name, value)
        self.reset()

    def reset(self) -> None:
        """Set all state; called once, before the first window."""

    def learn_reference(self, *windows: Any) -> None:
        """Learn what is usual from a window of a recording in clear air; the windows are those of `look`."""
        if self.learns_baseline:
            self.look(*windows)

    @property
    def thresholds(self) -> dict[str, float]:
        """The limits as a verdict carries them."""
        return {
            f"{name}.{what}": getattr(limit, what)
            for name, limit in self.limits.items()
            for what in ("warn", "fail")
        }


def _inputs_of(cls: type[Check]) -> tuple[Input, ...]:
    """Return what the signature of `look` says, the stream that is judged first."""
    look = vars(cls)["look"]
    try:
        hints = get_type_hints(look)
    except NameError as error:
        raise CheckError(f"{cls.__name__}.look: a type is not known", why=str(error)) from error
    inputs: list[Input] = []
    for parameter in list(inspect.signature(look).parameters.values())[1:]:
        hint, many = hints.get(parameter.name), False
        if get_origin(hint) is collections.abc.Sequence:
            [hint], many = get_args(hint), True
        if get_origin(hint) is not Window or many != bool(inputs):
            hint = "laser: Window[LaserScan], then radars: Sequence[Window[RadarRange]]"
            raise CheckError(f"{cls.__name__}.look: {parameter.name} is no input of a check", hint=hint)
        inputs.append(
            Input(parameter.name, _types_of(get_args(hint)[0]), parameter.default is parameter.empty)
        )
    if not inputs:
        raise CheckError(f"{cls.__name__}.look takes no window")
    return tuple(inputs)


def _types_of(hint: Any) -> tuple[type, ...]:
    if hint is Any or isinstance(hint, TypeVar):
        return (object,)
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)

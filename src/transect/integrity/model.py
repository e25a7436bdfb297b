"""The base class of checks: typed inputs, limits, settings, and the method that evaluates one window."""

from __future__ import annotations

import collections.abc
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from transect.base.arrays import Mask
from transect.engine.nodes import Parameter, check_values, is_declared, parameters_of
from transect.errors import UsageError, did_you_mean
from transect.recording import FrameTree, Recording, Robot

from .rules import GROUPS, RULES, score_of
from .windows import Window

Group = Literal["timing", "signal", "content", "cross", "state"]


class CheckError(UsageError):
    """An invalid declaration of a check, or limits that the check does not have."""


@dataclass(frozen=True)
class Limit:
    """Warning and failure thresholds of one statistic.

    Beyond `warn` the score falls linearly from 0.5 to 0 at `fail`. If `warn` > `fail`, small values are bad.
    """

    warn: float
    fail: float
    reason: str  # code reported when the statistic exceeds `warn`: `GAP`, `DUST`, ...
    unit: str = ""
    doc: str = ""  # completes "3.2 UNIT ..." in reports; "fraction of the ..." is printed in per cent

    def score(self, value: float) -> float | None:
        """Return the score of a value in [0, 1], None for NaN."""
        return score_of(value, self.warn, self.fail)


def _no_numbers() -> dict[str, float]:
    return {}


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a check for one window."""

    statistics: Mapping[str, float]  # by the names of the check's limits, NaN if undefined; the worst counts
    n: int  # samples used
    evidence: Mapping[str, float] = field(default_factory=_no_numbers)  # other measured values
    reason: str = ""  # overrides the reason of the limit
    note: str = ""  # a sentence for the report: `its stamps are probably in ms`
    peers: tuple[str, ...] = ()  # streams it was compared with
    region: Mask | None = None  # what to drop: (k,) beams, (h, w) pixels, or (n, k) for the window's samples
    min_score: float = 0.0  # lower bound of the score: rain leaves a laser usable


@dataclass(frozen=True, slots=True)
class Unknown:
    """Result of a check that cannot decide, and why: `NO_DATA`, `TOO_FEW`, `NO_PEER`, `LEARNING`, ..."""

    reason: str
    note: str = ""
    n: int = 0
    evidence: Mapping[str, float] = field(default_factory=_no_numbers)


NO_DATA = Unknown("NO_DATA")
NO_BASELINE = "NO_BASELINE"
"""Reason for UNKNOWN: the sensor may be in dust or smoke, and its view in clear air is not known."""


@dataclass(frozen=True)
class CheckInput:
    """One input of a check, read from the signature of `evaluate`."""

    name: str
    types: tuple[type, ...]
    needed: bool = True

    def accepts(self, kind: type) -> bool:
        """Return whether streams of a type are valid inputs."""
        return any(issubclass(kind, each) for each in self.types)


@dataclass(frozen=True, eq=False)
class CheckContext:
    """Frames, robot and recording of a session; all its checks share one object."""

    frames: FrameTree = field(default_factory=FrameTree)
    robot: Robot | None = None
    recording: Recording | None = None


class Check:
    """Base class of checks; one object judges one stream.

    ``class SampleGap(Check, id="T02", group="timing")``. The docstring contains the formula and, after
    `Motive:`, the sentence of a document that motivates the check.

    A subclass implements `evaluate`, whose signature lists the inputs: first the stream that is judged
    (``laser: Window[LaserScan]``), then all streams of a type to compare with (``radars:
    Sequence[Window[RadarRange]]``; a default of ``()`` makes them optional). The statistics that
    `evaluate` returns are compared with the class variables of type `Limit`. Parameters are declared with
    `transect.engine.param`; a class variable `settings`, a frozen dataclass, groups the numbers of the
    method, and its scalar fields are parameters, too. State is initialised in `reset`.
    """

    id: ClassVar[str] = ""  # letter of the group and a number: `T02`
    group: ClassVar[Group] = "content"
    version: ClassVar[int] = 1  # increased whenever the same samples may give another verdict
    min_samples: ClassVar[int] = 1  # a window with fewer samples is UNKNOWN, and `evaluate` is not called
    limits: Mapping[str, Limit] = MappingProxyType({})  # by name; of an object: those of its stream
    k_on: int = RULES.k_on  # consecutive BAD windows after which BAD is declared
    k_off: int = RULES.k_off  # consecutive better windows after which it is cleared
    parameters: ClassVar[dict[str, Parameter]] = {}
    inputs: ClassVar[tuple[CheckInput, ...]] = ()
    learns_baseline: ClassVar[bool] = False  # compares with its first windows, or a reference in clear air
    context: CheckContext
    evaluate: Callable[..., Finding | Unknown]
    """Judge one window. Windows come in order."""

    def __init_subclass__(
        cls,
        id: str = "",
        group: Group | None = None,
        version: int = 1,
        min_samples: int = 1,
        k_on: int = RULES.k_on,
        k_off: int = RULES.k_off,
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        cls.id, cls.group, cls.version = id or cls.id, group or cls.group, version
        cls.min_samples, cls.k_on, cls.k_off = min_samples, k_on, k_off
        cls.limits = {**cls.limits, **{k: v for k, v in vars(cls).items() if isinstance(v, Limit)}}
        hints = get_type_hints(cls)
        own = parameters_of(vars(cls), hints, cls.__name__)
        own |= _parameters_in(vars(cls).get("settings"))
        cls.parameters = {**cls.parameters, **own}
        for name, parameter in own.items():
            if is_declared(getattr(cls, name, None)):
                setattr(cls, name, parameter.default)
        if "evaluate" in vars(cls):
            cls.inputs = _inputs_of(cls)
        if cls.group not in GROUPS:
            raise CheckError(f"{cls.__name__} has the unknown group {cls.group!r}")

    def __init__(
        self,
        limits: Mapping[str, tuple[float, float]] | None = None,
        context: CheckContext | None = None,
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
        self.context = context or CheckContext()
        self.k_on, self.k_off = k_on or self.k_on, k_off or self.k_off
        values = check_values(self.parameters, parameters, self.id)
        if settings := getattr(type(self), "settings", None):
            names = [name for name in _parameters_in(settings) if name in values]
            setattr(self, "settings", replace(settings, **{name: values.pop(name) for name in names}))  # noqa: B010
        for name, value in values.items():
            setattr(self, name, value)
        self.reset()

    def reset(self) -> None:
        """Initialise the state; called once, before the first window."""

    def learn_reference(self, *windows: Any) -> None:
        """Learn the baseline from a window of a recording in clear air, with the arguments of `evaluate`."""
        if self.learns_baseline:
            self.evaluate(*windows)

    @property
    def thresholds(self) -> dict[str, float]:
        """The limits as stored in a verdict."""
        return {
            f"{name}.{what}": getattr(limit, what)
            for name, limit in self.limits.items()
            for what in ("warn", "fail")
        }


def _parameters_in(settings: Any) -> dict[str, Parameter]:
    """Return the scalar fields of a settings dataclass as parameters."""
    values = {each.name: getattr(settings, each.name) for each in fields(settings)} if settings else {}
    scalars = {name: value for name, value in values.items() if isinstance(value, int | float | str)}
    return {name: Parameter(name, type(value), value) for name, value in scalars.items()}


def _inputs_of(cls: type[Check]) -> tuple[CheckInput, ...]:
    """Return the inputs that the signature of `evaluate` lists, the stream that is judged first."""
    evaluate = vars(cls)["evaluate"]
    try:
        hints = get_type_hints(evaluate)
    except NameError as error:
        raise CheckError(f"{cls.__name__}.evaluate: a type is not known", why=str(error)) from error
    inputs: list[CheckInput] = []
    for parameter in list(inspect.signature(evaluate).parameters.values())[1:]:
        hint, many = hints.get(parameter.name), False
        if get_origin(hint) is collections.abc.Sequence:
            [hint], many = get_args(hint), True
        if get_origin(hint) is not Window or many != bool(inputs):
            hint = "laser: Window[LaserScan], then radars: Sequence[Window[RadarRange]]"
            raise CheckError(f"{cls.__name__}.evaluate: {parameter.name} is no input of a check", hint=hint)
        inputs.append(
            CheckInput(parameter.name, _types_of(get_args(hint)[0]), parameter.default is parameter.empty)
        )
    if not inputs:
        raise CheckError(f"{cls.__name__}.evaluate takes no window")
    return tuple(inputs)


def _types_of(hint: Any) -> tuple[type, ...]:
    if hint is Any or isinstance(hint, TypeVar):
        return (object,)
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)

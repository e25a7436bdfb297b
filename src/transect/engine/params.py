"""Parameters of nodes: declared once, with bounds, unit and meaning; checked whenever they are set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from transect.errors import UsageError, did_you_mean

T = TypeVar("T")


class ParameterError(UsageError):
    """A parameter that is not known, or a value that it cannot have."""


@dataclass(frozen=True)
class Parameter:
    """What a node says about one of its parameters.

    Attributes
    ----------
    name : str
    type : type
        Whole numbers are taken for float.
    default : object
    ge, gt, le, lt : float or None
        Bounds, those with an e included.
    odd : bool
    choices : tuple
        All values that it may have; empty for any.
    unit, doc : str
    """

    name: str
    type: type
    default: Any
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    odd: bool = False
    choices: tuple[Any, ...] = ()
    unit: str = ""
    doc: str = ""

    def check(self, value: Any, owner: str) -> Any:
        """Return a value as the parameter's type, or say what is wrong with it."""
        if self.type is float and type(value) is int:
            value = float(value)
        if not isinstance(value, self.type) or (self.type is not bool and isinstance(value, bool)):
            raise self._error(value, owner, f"a {self.type.__name__}")
        if wrong := self._outside(value):
            raise self._error(value, owner, wrong)
        return value

    @property
    def allowed(self) -> str:
        """The values that it may have, such as `>= 3, odd` or `SIFT | ORB`; "" for any."""
        if self.choices:
            return " | ".join(map(str, self.choices))
        bounds = ((">=", self.ge), (">", self.gt), ("<=", self.le), ("<", self.lt))
        said = [f"{sign} {bound:g}" for sign, bound in bounds if bound is not None]
        return ", ".join([*said, "odd"] if self.odd else said)

    def _outside(self, value: Any) -> str:
        if self.choices and value not in self.choices:
            return "one of " + ", ".join(map(repr, self.choices))
        bounds = (
            (self.ge, lambda v, b: v >= b, "at least"),
            (self.gt, lambda v, b: v > b, "more than"),
            (self.le, lambda v, b: v <= b, "at most"),
            (self.lt, lambda v, b: v < b, "less than"),
        )
        for bound, holds, word in bounds:
            if bound is not None and not holds(value, bound):
                return f"{word} {bound:g} {self.unit}".rstrip()
        return "an odd number" if self.odd and value % 2 != 1 else ""

    def _error(self, value: Any, owner: str, expected: str) -> ParameterError:
        return ParameterError(
            f"{owner}.{self.name} cannot be {value!r}", why=f"expected {expected}", hint=self.doc
        )


@dataclass(frozen=True)
class _Declared:
    """What `param` leaves in a class body until its name and type are known."""

    default: Any
    limits: dict[str, Any]


def param(
    default: T,
    *,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
    odd: bool = False,
    choices: tuple[T, ...] = (),
    unit: str = "",
    doc: str = "",
) -> T:
    """Declare a parameter of a node: ``window: int = param(5, ge=3, odd=True, unit="px", doc="...")``."""
    limits = {"ge": ge, "gt": gt, "le": le, "lt": lt, "odd": odd, "choices": choices}
    return _Declared(default, {**limits, "unit": unit, "doc": doc})  # pyright: ignore[reportReturnType]


def is_declared(value: Any) -> bool:
    """Tell whether a value is what `param` returned."""
    return isinstance(value, _Declared)


def parameters_of(members: Mapping[str, Any], types: Mapping[str, Any], owner: str) -> dict[str, Parameter]:
    """Return the parameters that a class body declares, their defaults checked."""
    found: dict[str, Parameter] = {}
    for name, declared in members.items():
        if isinstance(declared, _Declared):
            if name not in types:
                raise ParameterError(f"{owner}.{name} needs a type", hint=f"{name}: float = param(...)")
            parameter = Parameter(name, types[name], declared.default, **declared.limits)
            parameter.check(declared.default, owner)
            found[name] = parameter
    return found


def check_values(known: Mapping[str, Parameter], given: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """Return the values of all parameters: those given, checked, and the defaults of the others."""
    for name in given:
        if name not in known:
            raise ParameterError(f"{owner} has no parameter {name!r}", hint=did_you_mean(name, known))
    return {
        name: parameter.check(given[name], owner) if name in given else parameter.default
        for name, parameter in known.items()
    }

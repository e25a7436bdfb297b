"""Ports: what goes into a node and what comes out, read from the signature of `process`.

An annotation says how an input takes its samples; a type checker reads it as the type itself:

- ``T`` triggers: the node runs when every such port has a sample that it has not yet used.
- ``Annotated[T, Synced(0.005)]`` takes the nearest sample within that many seconds of the trigger, each once.
- ``Latest[T]`` is the newest sample up to and including its own wave.
- ``Batch[T]`` is everything since the last firing up to the trigger's time.
- ``At[T]`` is interpolated to the trigger's time.
"""

from __future__ import annotations

import inspect
import types as builtin_types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import (
    Annotated,
    Any,
    NamedTuple,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from transect.errors import TransectError, UsageError

T = TypeVar("T")


@dataclass(frozen=True)
class Policy:
    """How a port gets its samples; this policy triggers."""

    @property
    def triggers(self) -> bool:
        """Whether a sample on the port makes the node run."""
        return type(self) is Policy

    def __str__(self) -> str:
        return type(self).__name__.removesuffix("Policy").lower() or "trigger"


@dataclass(frozen=True)
class Synced(Policy):
    """The nearest sample within `seconds` of the trigger, each sample once."""

    seconds: float

    def __post_init__(self) -> None:
        if not self.seconds >= 0:
            raise UsageError(f"Synced({self.seconds!r}): expected seconds of 0 or more")

    def __str__(self) -> str:
        return f"synced within {self.seconds:g} s"


@dataclass(frozen=True)
class LatestPolicy(Policy):
    """The newest sample; before the first one the port's default, without one the node waits."""


@dataclass(frozen=True)
class BatchPolicy(Policy):
    """All samples since the last firing, oldest first."""


@dataclass(frozen=True)
class AtPolicy(Policy):
    """Interpolated to the trigger's time."""


TRIGGER, LATEST, BATCH, AT = Policy(), LatestPolicy(), BatchPolicy(), AtPolicy()
Latest = Annotated[T, LATEST]
Batch = Annotated[Sequence[T], BATCH]
At = Annotated[T, AT]


C = TypeVar("C", bound=type)
NO_DEFAULT: Any = inspect.Parameter.empty
OUT = "out"
"""Name of a single output unless the interface names it."""


class PortError(TransectError):
    """A port that does not fit its interface, its signature, or what was sent to it."""


class Shape:
    """Of the arrays that a port carries: ``Annotated[np.ndarray, Shape("n", 3)]``; a name is any size."""

    def __init__(self, *sizes: int | str) -> None:
        self.sizes = sizes

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.sizes))}{',' * (len(self.sizes) == 1)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shape) and self.sizes == other.sizes

    def __hash__(self) -> int:
        return hash(self.sizes)

    def fits(self, value: Any) -> bool:
        """Return whether an array has this shape."""
        found = tuple(getattr(value, "shape", ()))
        return len(found) == len(self.sizes) and all(
            isinstance(size, str) or size == there for size, there in zip(self.sizes, found, strict=True)
        )


@dataclass(frozen=True)
class Unit:
    """Of the numbers that a port carries: ``Annotated[float, Unit("m/s")]``."""

    name: str


@dataclass(frozen=True)
class Frame:
    """In which a port's samples are given: ``Annotated[PointCloud, Frame("map")]``."""

    name: str


@dataclass(frozen=True)
class Port:
    """One input or output."""

    name: str
    type: type  # of one sample
    policy: Policy = TRIGGER  # how an input takes its samples
    default: Any = NO_DEFAULT  # of an input; `NO_DEFAULT` if it has none
    shape: Shape | None = None  # of its arrays, where that is said
    # Of its samples; "" for any. Wires between ports that both say one are checked
    unit: str = ""
    frame: str = ""

    def __str__(self) -> str:
        taken = "" if self.policy.triggers else f" ({self.policy})"
        return f"{self.name}: {self.expected}{taken}"

    @property
    def expected(self) -> str:
        """What it carries, in words: its type, and its shape where that is said."""
        return type_name(self.type) + (f" of shape {self.shape}" if self.shape else "")

    def carries(self, value: Any) -> bool:
        """Return whether a value has the type and the shape of its samples."""
        return accepts(self.type, value) and (self.shape is None or self.shape.fits(value))

    @property
    def needed(self) -> bool:
        """Whether an input must be given."""
        return self.default is NO_DEFAULT

    def takes(self, value: Any) -> bool:
        """Return whether a value may be given to the port."""
        if value is self.default:
            return True
        if self.policy == BATCH:
            return isinstance(value, list | tuple) and all(map(self.carries, value))
        return self.carries(value)


def accepts(kind: type, value: Any) -> bool:
    """Return whether a value is of a port's type; whole numbers are taken for float."""
    if kind is object or isinstance(value, kind):
        return True
    return kind is float and type(value) is int


def type_name(kind: Any) -> str:
    """Return a type as a person writes it."""
    return getattr(kind, "__name__", str(kind))


@dataclass_transform(frozen_default=True)
def outputs(cls: C) -> C:
    """Mark a class whose fields are the output ports of a node; a field left `None` emits nothing.

    It becomes a frozen dataclass; every field is optional.
    """
    for name in cls.__annotations__:
        if not hasattr(cls, name):
            setattr(cls, name, None)
    marked = dataclass(frozen=True)(cls)
    marked.__transect_outputs__ = True
    return marked


def is_outputs(kind: Any) -> bool:
    """Return whether a class is marked with `outputs`."""
    return bool(getattr(kind, "__transect_outputs__", False))


def outputs_class(process: Callable[..., Any] | None) -> type | None:
    """Return the class marked with `outputs` that a signature returns, None if it returns no such class."""
    hints = get_type_hints(process, include_extras=True) if process else {}
    returned = _split_annotation(hints.get("return"))[0]
    return returned if is_outputs(returned) else None


class Ports(NamedTuple):
    """All ports of a node."""

    inputs: dict[str, Port]
    outputs: dict[str, Port]
    bundled: bool = False  # whether `process` returns a class marked with `outputs`


def ports_of(
    process: Callable[..., Any], owner: str, out_name: str = OUT, interface: Ports | None = None
) -> Ports:
    """Return the ports that a signature declares.

    Parameters
    ----------
    process : callable
        Its positional parameters (without `self`) are inputs, its return type the outputs; keyword-only
        parameters are none.
    owner : str
        Named in errors.
    out_name : str
        Name of a single output.
    interface : Ports, optional
        The ports that an implementation takes over. What its signature leaves out (a type, a policy, a
        default, the return type, ...) is the interface's; what it says is kept, to be compared.
    """
    known = interface or Ports({}, {})
    hints = _hints(process, owner)
    inputs: dict[str, Port] = {}
    for name, parameter in inspect.signature(process).parameters.items():
        if name == "self" or parameter.kind is parameter.KEYWORD_ONLY:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise PortError(f"{owner}: *{name} cannot be a port", hint="name each port")
        inputs[name] = _input(parameter, hints, owner, known.inputs.get(name))
    if "return" not in hints and interface is None:
        raise PortError(f"{owner} does not say what it returns", hint="-> PointCloud, or -> None for a sink")
    if "return" not in hints:
        return Ports(inputs, known.outputs, known.bundled)
    outputs = _outputs_of(hints["return"], out_name)
    inherited = {name: _inherit(port, known.outputs.get(name)) for name, port in outputs.items()}
    return Ports(inputs, inherited, is_outputs(_split_annotation(hints["return"])[0]))


def _input(
    parameter: inspect.Parameter, hints: Mapping[str, Any], owner: str, inherited: Port | None
) -> Port:
    """Return the input that a parameter of `process` is."""
    name = parameter.name
    if name in hints:
        port = _port(name, hints[name], inherited.policy if inherited else TRIGGER)
    elif inherited is not None:
        port = inherited
    else:
        raise PortError(f"{owner}.{name} has no type", hint=f"{name}: Image")
    return _inherit(replace(port, default=parameter.default), inherited)


def _inherit(port: Port, inherited: Port | None) -> Port:
    """Return an implementation's port with what its interface says and it does not."""
    if inherited is None:
        return port
    default = inherited.default if port.default is NO_DEFAULT else port.default
    shape = port.shape or inherited.shape
    unit, frame = port.unit or inherited.unit, port.frame or inherited.frame
    return replace(port, default=default, shape=shape, unit=unit, frame=frame)


def _hints(process: Callable[..., Any], owner: str) -> Mapping[str, Any]:
    try:
        return get_type_hints(process, include_extras=True)
    except NameError as error:
        raise PortError(f"{owner}: a type in its signature is not known", why=str(error)) from error


def _outputs_of(returned: Any, out_name: str) -> dict[str, Port]:
    if returned is type(None):
        return {}
    only = _port(out_name, returned)
    if not is_outputs(only.type):
        return {out_name: only}
    fields = get_type_hints(only.type, include_extras=True)
    return {name: _port(name, hint) for name, hint in fields.items()}


def _port(name: str, hint: Any, policy: Policy = TRIGGER) -> Port:
    """Return the port that an annotation means: its type, and what is annotated to it.

    `policy` is the one of an annotation that names none; a batch is then a `Sequence[T]`.
    """
    hint, extras = _split_annotation(hint)
    policy = next((extra for extra in extras if isinstance(extra, Policy)), policy)
    if policy == BATCH:
        hint, of_samples = _split_annotation(next(iter(get_args(hint)), hint))
        extras += of_samples
    kind = get_origin(hint) or hint
    annotations = {type(extra): extra for extra in extras}
    unit, frame = (annotations[what].name if what in annotations else "" for what in (Unit, Frame))
    return Port(
        name, object if kind is Any else kind, policy, shape=annotations.get(Shape), unit=unit, frame=frame
    )


def _split_annotation(hint: Any) -> tuple[Any, list[Any]]:
    """Return a type without what is annotated to it, and that."""
    hint = _without_none(hint)
    if get_origin(hint) is not Annotated:
        return hint, []
    inner, *extras = get_args(hint)
    return _without_none(inner), extras


def _without_none(hint: Any) -> Any:
    """Return the other type of ``T | None``."""
    if get_origin(hint) not in (Union, builtin_types.UnionType):
        return hint
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    return kinds[0] if len(kinds) == 1 else object

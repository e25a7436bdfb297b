"""Nodes: one atomic processing step with typed ports and parameters (CDFF's DFN).

The signature of `process` is the port list. A class marked ``interface=True`` owns the ports of its
implementations: types, policies, shapes, units, frames and defaults. Implementations are its subclasses. The
interface writes `process`, and they write only the step that it leaves to them; or their own `process` names
the same ports with their plain types, and both are compared when the class is defined. State is set in
`reset()`, so that a node can be frozen, thawed and forked.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar, get_type_hints

from transect.errors import TransectError, UsageError, did_you_mean

from .context import Context
from .inboxes import check_interpolable
from .ports import AT, OUT, Port, PortError, Ports, is_outputs, ports_of

T = TypeVar("T")


class NotExecutedError(TransectError):
    """A node whose ports are unknown unless its file is executed."""


class ParameterError(UsageError):
    """A parameter that is not known, or a value that it cannot have."""


@dataclass(frozen=True)
class Parameter:
    """What a node says about one of its parameters."""

    name: str
    type: type  # whole numbers are taken for float
    default: Any
    # Bounds, those with an e included
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    odd: bool = False
    choices: tuple[Any, ...] = ()  # all values that it may have; empty for any
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
        limits = [f"{sign} {bound:g}" for sign, bound in bounds if bound is not None]
        return ", ".join([*limits, "odd"] if self.odd else limits)

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
    """Return whether a value is what `param` returned."""
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


P = ParamSpec("P")
R = TypeVar("R")


class Node:
    """A processing step; subclasses write `process`, and `reset` if they keep state."""

    # Of the class
    inputs: ClassVar[dict[str, Port]] = {}
    outputs: ClassVar[dict[str, Port]] = {}
    # Of the class, its base classes' among them; one that is no node may declare some for several nodes
    parameters: ClassVar[dict[str, Parameter]] = {}
    implementations: ClassVar[dict[str, type[Node]]] = {}
    # The class that says what this one takes and gives; itself where it is one, or has none
    interface: ClassVar[type[Node]]
    out_name: ClassVar[str] = OUT  # name of a single output; an interface may set it
    bundled: ClassVar[bool] = False  # whether `process` returns a class marked with `outputs`
    # Seconds between its firings (``class X(Node, every=0.1)``); None for a node that runs on its
    # inputs
    every: ClassVar[float | None] = None
    # Inputs whose images must be of a camera that is calibrated; else a run is refused before it plays
    calibrated: ClassVar[tuple[str, ...]] = ()
    # How often it must see the recording (``passes=2``); `ctx.pass_index` is the number of the replay
    passes: ClassVar[int] = 1
    ctx: Context  # of the run that it is in

    def __init_subclass__(
        cls, interface: bool = False, every: float | None = None, passes: int | None = None, **kwargs: Any
    ) -> None:
        super().__init_subclass__(**kwargs)
        cls.every = cls.every if every is None else every
        cls.passes = cls.passes if passes is None else passes
        cls.parameters = _parameters(cls)
        for name, parameter in cls.parameters.items():
            if is_declared(getattr(cls, name)):
                setattr(cls, name, parameter.default)
        implements = not interface and hasattr(cls, "interface")
        if "process" in vars(cls):
            wanted = _ports(cls.interface) if implements else None
            cls.inputs, cls.outputs, cls.bundled = ports_of(
                vars(cls)["process"], cls.__name__, cls.out_name, wanted
            )
            _check_between(cls.inputs, cls.__name__)
        if not implements:
            cls.interface = cls
            cls.implementations = {} if interface else {cls.__name__: cls}
        else:
            _check_against(cls, cls.interface)
            cls.interface.implementations[cls.__name__] = cls

    def __init__(self, **parameters: Any) -> None:
        if not inspect.isfunction(getattr(type(self), "process", None)):
            raise PortError(f"{type(self).__name__} has no process")
        for name, value in check_values(self.parameters, parameters, type(self).__name__).items():
            setattr(self, name, value)
        self.ctx = Context()
        self.reset()

    def reset(self) -> None:
        """Set all state; called before the first sample."""

    def ready(self) -> None:
        """Raise if nothing can come of the inputs that are wired (`ctx.is_fed`); called before a replay."""

    def is_satisfied(self) -> bool:
        """Tell, in a pass before the last one, whether the rest of the recording would add nothing."""
        return False

    def finish(self) -> Any:
        """Return what is left to emit when the inputs end; nothing by default."""
        return None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Process one set of inputs, their types and that of the result checked; as a unit test does."""
        name = type(self).__name__
        bound = _bind(name, self.inputs, args, kwargs)
        result = type(self).process(self, **bound)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
        check_result(name, self.outputs, result)
        return result

    def bind(self) -> Callable[..., Any]:
        """Return `process` as a flow calls it: inputs by position, nothing checked."""
        return self.process  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]

    @property
    def values(self) -> dict[str, Any]:
        """The values of its parameters."""
        return {name: getattr(self, name) for name in self.parameters}

    def set_parameters(self, given: Mapping[str, Any]) -> None:
        """Change parameters, each checked; state stays as it is."""
        for name, value in check_values(
            self.parameters, {**self.values, **given}, type(self).__name__
        ).items():
            setattr(self, name, value)

    def freeze(self) -> dict[str, Any]:
        """Return a copy of its state: all attributes except parameters."""
        return copy.deepcopy({k: v for k, v in vars(self).items() if k not in self.parameters and k != "ctx"})

    def thaw(self, state: Mapping[str, Any]) -> None:
        """Take a state that `freeze` returned."""
        for name in [k for k in vars(self) if k not in self.parameters and k != "ctx"]:
            delattr(self, name)
        vars(self).update(copy.deepcopy(dict(state)))


def implementation(interface: type[Node], name: str | None = None) -> type[Node]:
    """Return an implementation of an interface by name; the only one if none is named."""
    known = interface.implementations
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    if name is None or name not in known:
        problem = f"no implementation {name!r}" if name else f"{len(known)} implementations: name one"
        raise PortError(f"{interface.__name__} has {problem}", hint=did_you_mean(name or "", known))
    return known[name]


def _parameters(cls: type[Node]) -> dict[str, Parameter]:
    """Return the parameters of a class: those of its bases, the farthest first, then those it declares.

    A base that is no node may declare some too, for several nodes that share them.
    """
    types = get_type_hints(cls)
    found: dict[str, Parameter] = {}
    for base in reversed(cls.__mro__):
        if base is not cls and issubclass(base, Node):
            found |= base.parameters
            continue
        declared = parameters_of(vars(base), types, cls.__name__)
        if taken := [name for name in declared if hasattr(Node, name)]:
            raise ParameterError(
                f"{cls.__name__}.{taken[0]} cannot be a parameter", why=f"every node has its own {taken[0]}"
            )
        found |= declared
    return found


def _ports(cls: type[Node]) -> Ports:
    return Ports(cls.inputs, cls.outputs, cls.bundled)


def _check_against(cls: type[Node], interface: type[Node]) -> None:
    """Refuse an implementation whose ports are not its interface's."""
    for kind, wanted, given in (
        ("input", interface.inputs, cls.inputs),
        ("output", interface.outputs, cls.outputs),
    ):
        if missing := [name for name in wanted if name not in given]:
            raise PortError(f"{cls.__name__} lacks the {kind} {missing[0]!r} of {interface.__name__}")
        if needed := [name for name, port in given.items() if name not in wanted and port.needed]:
            known = ", ".join(map(str, wanted.values())) or "none"
            raise PortError(
                f"{cls.__name__} has an {kind} {needed[0]!r} that {interface.__name__} does not have",
                why=f"its {kind}s are: {known}",
            )
        for name, port in wanted.items():
            _check_port(cls, kind, port, given[name], interface)


def _check_port(cls: type[Node], kind: str, wanted: Port, given: Port, interface: type[Node]) -> None:
    """An implementation may take more than its interface, and give something more special."""
    wide, narrow = (given.type, wanted.type) if kind == "input" else (wanted.type, given.type)
    same = wanted.policy == given.policy and all(
        getattr(wanted, what) in (None, "", getattr(given, what)) for what in ("shape", "unit", "frame")
    )
    if not (same and (wide is object or issubclass(narrow, wide))):
        raise PortError(
            f"the {kind} {given.name!r} of {cls.__name__} is not that of {interface.__name__}",
            why=f"expected {wanted}, got {given}",
        )


def _check_between(inputs: Mapping[str, Port], owner: str) -> None:
    """Refuse `At` for what has nothing between its samples."""
    for port in inputs.values():
        if port.policy == AT:
            check_interpolable(port.type, f"{owner}.{port.name}")


def _bind(
    name: str, inputs: Mapping[str, Port], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the inputs by name, as a call gives them; each fits its port."""
    if len(args) > len(inputs):
        raise PortError(f"{name} has {len(inputs)} inputs, got {len(args)}")
    given = {**dict(zip(inputs, args, strict=False)), **kwargs}
    for port_name, value in given.items():
        if port_name not in inputs:
            raise PortError(f"{name} has no input {port_name!r}", hint=did_you_mean(port_name, inputs))
        port = inputs[port_name]
        if not port.takes(value):
            raise PortError(
                f"{name}.{port_name} cannot take {describe(value)}", why=f"expected {port.expected}"
            )
    if missing := [name for name, port in inputs.items() if name not in given and port.needed]:
        raise PortError(f"{name} needs its input {missing[0]!r}", why=f"expected {inputs[missing[0]]}")
    defaults = {name: port.default for name, port in inputs.items() if not port.needed}
    return {**defaults, **given}


def check_result(name: str, outputs: Mapping[str, Port], result: Any) -> None:
    """Refuse a result that its output ports cannot carry; None is no output."""
    if result is None:
        return
    values = {port: getattr(result, port) for port in outputs} if is_outputs(type(result)) else {None: result}
    for port_name, value in values.items():
        port = outputs.get(port_name) if port_name else next(iter(outputs.values()), None)
        if port is None:
            raise PortError(f"{name} returned {describe(value)}", why="it says that it returns nothing")
        if value is not None and not port.carries(value):
            raise PortError(
                f"{name}.{port.name} cannot give {describe(value)}", why=f"expected {port.expected}"
            )


def describe(value: Any) -> str:
    """Return what a value is, in a few words: its type, and its shape or itself where that is short."""
    shape = getattr(value, "shape", None)
    if shape is not None:
        return f"{type(value).__name__} of shape {tuple(shape)}"
    text = repr(value)
    return f"{type(value).__name__} {text}" if len(text) <= 40 else type(value).__name__


class NodeFunction(Generic[P, R]):
    """A function that is also a node: called as it is, and `Class` makes nodes with other parameters."""

    def __init__(self, function: Callable[P, R]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.Class = _class_of(function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function: inputs first, parameters by name."""
        parameters = {k: kwargs.pop(k) for k in list(kwargs) if k in self.Class.parameters}
        return self.Class(**parameters)(*args, **kwargs)


def node(function: Callable[P, R]) -> NodeFunction[P, R]:
    """Make a node of a function: positional arguments are ports, keyword-only ones are parameters."""
    return NodeFunction(function)


def _class_of(function: Callable[..., Any]) -> type[Node]:
    name: str = function.__name__
    inputs, results, bundled = ports_of(function, name)
    _check_between(inputs, name)
    types = get_type_hints(function)
    keywords = [
        p for p in inspect.signature(function).parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    if bare := [p.name for p in keywords if p.default is inspect.Parameter.empty]:
        raise PortError(f"the parameter {bare[0]!r} of {name} needs a default")
    known = {p.name: Parameter(p.name, types[p.name], p.default) for p in keywords}

    def process(self: Node, *args: Any, **given: Any) -> Any:
        return function(*args, **given, **self.values)

    def bind(self: Node) -> Callable[..., Any]:
        return functools.partial(function, **self.values) if self.parameters else function

    made = type(name, (_FunctionNode,), {"__doc__": function.__doc__, "__module__": function.__module__})
    made.inputs, made.outputs, made.parameters = inputs, results, known
    made.interface, made.implementations = made, {name: made}
    made.bundled = bundled
    made.process, made.bind = process, bind  # pyright: ignore[reportAttributeAccessIssue]
    return made


class _FunctionNode(Node):
    """What nodes made of functions have in common."""

"""Ports: what goes into a node and what comes out, read from the signature of `process`."""

from __future__ import annotations

import inspect
import types as builtin_types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, Union, dataclass_transform, get_args, get_origin, get_type_hints

from transect.errors import TransectError

from .policies import BATCH, TRIGGER, Policy

C = TypeVar("C", bound=type)
NO_DEFAULT: Any = inspect.Parameter.empty
OUT = "out"
"""Name of a single output unless the interface names it."""


class PortError(TransectError):
    """A port that does not fit its interface, its signature, or what was sent to it."""


@dataclass(frozen=True)
class Port:
    """One input or output.

    Attributes
    ----------
    name : str
    type : type
        Of one sample.
    policy : Policy
        How an input takes its samples.
    default : object
        Of an input; `NO_DEFAULT` if it has none.
    """

    name: str
    type: type
    policy: Policy = TRIGGER
    default: Any = NO_DEFAULT

    def __str__(self) -> str:
        taken = "" if self.policy.triggers else f" ({self.policy})"
        return f"{self.name}: {type_name(self.type)}{taken}"

    @property
    def needed(self) -> bool:
        """Whether an input must be given."""
        return self.default is NO_DEFAULT

    def takes(self, value: Any) -> bool:
        """Tell whether a value may be given to the port."""
        if value is self.default:
            return True
        if self.policy == BATCH:
            return isinstance(value, list | tuple) and all(accepts(self.type, item) for item in value)
        return accepts(self.type, value)


def accepts(kind: type, value: Any) -> bool:
    """Tell whether a value is of a port's type; whole numbers are taken for float."""
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
    """Tell whether a class is marked with `outputs`."""
    return bool(getattr(kind, "__transect_outputs__", False))


def ports_of(
    process: Callable[..., Any], owner: str, out_name: str = OUT
) -> tuple[dict[str, Port], dict[str, Port]]:
    """Return the input and output ports that a signature declares.

    Parameters
    ----------
    process : callable
        Its positional parameters (without `self`) are inputs, its return type the outputs; keyword-only
        parameters are none.
    owner : str
        Named in errors.
    out_name : str
        Name of a single output.
    """
    hints = _hints(process, owner)
    inputs: dict[str, Port] = {}
    for name, parameter in inspect.signature(process).parameters.items():
        if name == "self" or parameter.kind is parameter.KEYWORD_ONLY:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise PortError(f"{owner}: *{name} cannot be a port", hint="name each port")
        if name not in hints:
            raise PortError(f"{owner}.{name} has no type", hint=f"{name}: Image")
        kind, policy = _kind_and_policy(hints[name])
        inputs[name] = Port(name, kind, policy, parameter.default)
    if "return" not in hints:
        raise PortError(f"{owner} does not say what it returns", hint="-> PointCloud, or -> None for a sink")
    return inputs, _outputs_of(hints["return"], owner, out_name)


def returns_outputs(process: Callable[..., Any]) -> bool:
    """Tell whether a signature returns a class marked with `outputs`."""
    returned = get_type_hints(process).get("return")
    return is_outputs(_without_none(returned))


def _hints(process: Callable[..., Any], owner: str) -> Mapping[str, Any]:
    try:
        return get_type_hints(process, include_extras=True)
    except NameError as error:
        raise PortError(f"{owner}: a type in its signature is not known", why=str(error)) from error


def _outputs_of(returned: Any, owner: str, out_name: str) -> dict[str, Port]:
    if returned is type(None):
        return {}
    kind, _ = _kind_and_policy(returned)
    if not is_outputs(kind):
        return {out_name: Port(out_name, kind)}
    fields = get_type_hints(kind, include_extras=True)
    return {name: Port(name, _kind_and_policy(hint)[0]) for name, hint in fields.items()}


def _kind_and_policy(hint: Any) -> tuple[Any, Policy]:
    """Return the type of one sample and the policy that an annotation means."""
    policy = TRIGGER
    hint = _without_none(hint)
    if get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        policy = next((extra for extra in extras if isinstance(extra, Policy)), TRIGGER)
        hint = _without_none(hint)
    if policy == BATCH:
        hint = get_args(hint)[0]
    kind = get_origin(hint) or hint
    return (object if kind is Any else kind), policy


def _without_none(hint: Any) -> Any:
    """Return the other type of ``T | None``."""
    if get_origin(hint) not in (Union, builtin_types.UnionType):
        return hint
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    return kinds[0] if len(kinds) == 1 else object

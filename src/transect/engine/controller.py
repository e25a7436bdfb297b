"""Controllers: a compound whose nodes are called by a few lines of Python, with a store of its own.

Without one a compound is pure dataflow; with one, its nodes are called in the order that `step` says.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

from transect.errors import UsageError, did_you_mean

from .description import CompoundText, ImplementationText
from .nodes import Node
from .ports import TRIGGER, Policy, Port, PortError, is_outputs, outputs


class Controller(ABC):
    """What a compound does with its nodes; subclasses write `step`."""

    # Of inputs that do not trigger: ``{"rightImage": Synced(0.01)}``
    policies: ClassVar[Mapping[str, Policy]] = {}

    def reset(self) -> None:  # noqa: B027 - a hook that may stay empty
        """Set all state; called before the first sample."""

    @abstractmethod
    def step(self, c: Control) -> None:
        """Process one set of inputs: call nodes, `c.emit`, or `c.skip`."""


class Control:
    """What a controller sees: inputs and nodes of the compound as attributes, and its store.

    Attributes
    ----------
    store : SimpleNamespace
        Of the compound; state that is kept from one step to the next.
    """

    def __init__(self, owner: ControllerNode, inputs: Mapping[str, Any]) -> None:
        self._owner, self._inputs = owner, inputs
        self.store = owner.store
        self.emitted: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name in self._inputs:
            return self._inputs[name]
        if name in self._owner.members:
            return self._owner.members[name]
        known = [*self._inputs, *self._owner.members]
        raise PortError(f"the compound has no input or node {name!r}", hint=did_you_mean(name, known))

    def emit(self, **values: Any) -> None:
        """Give values to output ports; those not named emit nothing."""
        for name in values:
            if name not in self._owner.outputs:
                hint = did_you_mean(name, self._owner.outputs)
                raise PortError(f"the compound has no output {name!r}", hint=hint)
        self.emitted.update(values)

    def skip(self, reason: str) -> None:
        """Count why nothing is emitted for these inputs."""
        self._owner.ctx.skip(reason)


class ControllerNode(Node):
    """A compound with a controller, as one node of a flow."""

    controller_class: ClassVar[type[Controller]]
    outputs_class: ClassVar[type]

    def __init__(self, members: Mapping[str, Node]) -> None:
        self.members = dict(members)
        super().__init__()

    def reset(self) -> None:
        self.store = SimpleNamespace()
        self.controller = self.controller_class()
        self.controller.reset()
        for member in self.members.values():
            member.reset()

    def control(self, *args: Any) -> Any:
        """Take one step; this is the `process` of the classes that `controller_node` makes."""
        control = Control(self, dict(zip(self.inputs, args, strict=True)))
        for member in self.members.values():
            member.ctx = self.ctx
        self.controller.step(control)
        return self.outputs_class(**control.emitted) if control.emitted else None

    def freeze(self) -> dict[str, Any]:
        members = {name: member.freeze() for name, member in self.members.items()}
        state = {"store": self.store, "controller": vars(self.controller)}
        return {"members": members, **copy.deepcopy(state)}

    def thaw(self, state: Mapping[str, Any]) -> None:
        for name, member in self.members.items():
            member.thaw(state["members"][name])
        own_state = copy.deepcopy({"store": state["store"], "controller": state["controller"]})
        self.store = own_state["store"]
        vars(self.controller).clear()
        vars(self.controller).update(own_state["controller"])


def controller_node(
    kind: Any,
    text: CompoundText,
    chosen: ImplementationText,
    members: Mapping[str, Node],
    types: Mapping[str, type],
) -> ControllerNode:
    """Return the node that a compound with a controller, `kind`, is in a flow."""
    if not (isinstance(kind, type) and issubclass(kind, Controller)):
        raise UsageError(f"{chosen.controller} is not a Controller", where=text.file)
    if missing := sorted(kind.__abstractmethods__):
        raise UsageError(
            f"{chosen.controller} has no {missing[0]}", where=text.file, hint="def step(self, c): ..."
        )
    if unknown := next((name for name in kind.policies if name not in text.inputs), None):
        raise PortError(f"{chosen.controller} has a policy for {unknown!r}, which is no input of {text.name}")
    made: Any = type(f"{text.name}Controller", (ControllerNode,), {"__doc__": text.doc})
    made.inputs = {name: Port(name, types[name], kind.policies.get(name, TRIGGER)) for name in text.inputs}
    made.outputs = {name: Port(name, types[name]) for name in text.outputs}
    made.process, made.controller_class = ControllerNode.control, kind
    made.outputs_class = outputs(
        type("Outputs", (), {"__annotations__": {n: types[n] for n in text.outputs}})
    )
    made.bundled = is_outputs(made.outputs_class)
    return made(members)

"""Compounds: nodes wired together, from a YAML file or made in Python (CDFF's DFPC).

`graph_of` builds a graph from a description: checked, with nested compounds expanded and parameters set.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from transect.base.yaml_parts import DescriptionProblem, problem_at
from transect.errors import TransectError, UsageError, did_you_mean

from .catalogue import Catalogue, catalogue_for, compound_named, node_named
from .compound_checks import find_problems, flow_of, unwritten
from .controller import controller_node
from .description import CompoundText, ImplementationText, NodeUse, PortText, Wire, to_yaml
from .determinism import seed_libraries
from .graph import Feed, Graph, PlacedNode, hold_delayed, in_order
from .inboxes import NS
from .interfaces import Faces, Given
from .nodes import Node, NodeFunction
from .port_types import kind_of
from .ports import Port, type_name
from .reading import WIRE


@dataclass(frozen=True)
class Compound:
    """A description, where its nodes are found, and which implementation is meant."""

    text: CompoundText
    catalogue: Catalogue
    implementation: str = ""  # "" for the only one, or the first

    @staticmethod
    def of(meant: Compound | str | Path, execute: bool = True) -> Compound:
        """Return the compound that is meant: itself, `Name`, `Name/Implementation`, or a YAML file.

        A node, by its name or its Python file, is a compound of that node alone. Unless Python files may be
        executed it can be looked at, and not be run.
        """
        if isinstance(meant, Compound):
            return meant
        catalogue = catalogue_for(execute=execute)
        if (node := node_named(str(meant), catalogue)) is not None:
            return compound_of_node(node)
        text, implementation = compound_named(str(meant), catalogue)
        return Compound(text, catalogue_for(text.file or None, execute=execute), implementation)

    @property
    def _described(self) -> list[str]:
        return [name for name, each in self.text.implementations.items() if each.complete]

    def candidates(self) -> list[Compound]:
        """Return the implementation that is meant alone, or all that are described where none is named."""
        named = self.implementation or not self._described
        return [self] if named else [replace(self, implementation=name) for name in self._described]

    @property
    def name(self) -> str:
        """Its name, and the implementation's where there are several."""
        described = self._described
        chosen = self.implementation or next(iter(described), "")
        return f"{self.text.name}/{chosen}" if chosen and chosen != self.text.name else self.text.name

    @property
    def chosen(self) -> ImplementationText:
        """The description of the implementation that is meant."""
        return _choose(self.text, self.implementation)

    def graph(self, settings: Settings | None = None) -> Graph:
        """Return its nodes in their places, checked, with parameters set.

        Raises
        ------
        CompoundError
            With all problems at once.
        """
        return graph_of(self.text, self.implementation, self.catalogue, settings)

    def to_yaml(self) -> str:
        """Return its description; reading that gives the same compound."""
        return to_yaml(self.text)


def compound(
    name: str,
    nodes: Mapping[str, Node | type[Node] | NodeFunction[..., Any]],
    wires: Iterable[str],
    *,
    every: Mapping[str, float] | None = None,
    doc: str = "",
) -> Compound:
    """Describe a compound in Python: what a YAML file would say, and where its nodes are found.

    Parameters
    ----------
    nodes : mapping
        By id: a node, whose parameters are kept, a class of nodes, or a function made a node.
    wires : iterable of str
        ``"imu -> norm.imu"``, ``"icp.pose ~> icp.guess"``. A name without a point is an input of the compound
        on the left, an output on the right; both have the type of the port at the other end.
    every : mapping of str to float
        By id: the period in seconds of a node that runs by the clock.
    """
    catalogue = Catalogue()
    made = {key: _as_node(key, value) for key, value in nodes.items()}
    uses: dict[str, NodeUse] = {}
    for key, node in made.items():
        kind = type(node)
        catalogue.register(kind)
        uses[key] = NodeUse(key, kind.__name__, kind.__name__, node.values, (every or {}).get(key))
    lines = tuple(_wire(text) for text in wires)
    inputs = {w.source: _end(made, w.target, "inputs", w.source) for w in lines if "." not in w.source}
    outputs = {w.target: _end(made, w.source, "outputs", w.target) for w in lines if "." not in w.target}
    text = CompoundText(name, doc, inputs, outputs, {name: ImplementationText(name, uses, lines)})
    return Compound(text, catalogue)


def compound_of_node(kind: type[Node]) -> Compound:
    """Return a compound with the ports of a node, and that node (`node`) alone; all implementations of one.

    Parameters
    ----------
    kind : type
        An interface, or one implementation.
    """
    interface = kind.interface
    classes = interface.implementations if kind is interface else {kind.__name__: kind}
    catalogue = Catalogue()
    for each in (interface, *classes.values()):
        catalogue.register(each)
    wires = [Wire(name, f"node.{name}") for name in kind.inputs]
    wires += [Wire(f"node.{name}", name) for name in kind.outputs]
    flows = {
        name: ImplementationText(name, {"node": NodeUse("node", interface.__name__, name)}, tuple(wires))
        for name in classes
    }
    doc = next(iter((inspect.getdoc(kind) or "").splitlines()), "")
    inputs, outputs = (
        {name: PortText(name, type_name(p.type), unit=p.unit, frame=p.frame) for name, p in side.items()}
        for side in (kind.inputs, kind.outputs)
    )
    return Compound(CompoundText(kind.__name__, doc, inputs, outputs, flows), catalogue)


def _wire(text: str) -> Wire:
    found = WIRE.fullmatch(text)
    if found is None:
        raise UsageError(
            f"{text!r} is not a wire", hint="write 'node.port -> other.port', or '~>' to deliver later"
        )
    source, arrow, target = found.groups()
    return Wire(source, target, arrow == "~>")


def _as_node(name: str, value: Node | type[Node] | NodeFunction[..., Any]) -> Node:
    if isinstance(value, NodeFunction):
        value = value.Class
    if isinstance(value, Node):
        return value
    with naming(name, value, {}):
        return value()


def _end(nodes: Mapping[str, Node], place: str, side: str, name: str) -> PortText:
    """Return a port of the compound, of the type of the node's port that it is wired to."""
    owner, _, port = place.partition(".")
    node = nodes.get(owner)
    found: Port | None = getattr(node, side).get(port) if node is not None else None
    if found is None:
        return PortText(name, "object")
    return PortText(name, found.type.__name__, unit=found.unit, frame=found.frame)


Settings = Mapping[str, Mapping[str, Any]]
"""Parameters by node id (`compound.node` inside a compound), then by name."""


class CompoundError(TransectError):
    """A compound that cannot run; `problems` has everything that is wrong with it."""

    def __init__(self, text: CompoundText, problems: list[DescriptionProblem]) -> None:
        number = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        hint = f"transect graph check {text.file}" if text.file else ""
        listed = "\n".join(f"         {problem}" for problem in problems).strip()
        super().__init__(f"{text.name} cannot run: {number}", where=text.file, why=listed, hint=hint)
        self.problems = problems


@contextmanager
def naming(name: str, kind: type[Node], values: Mapping[str, Any]) -> Generator[None]:
    """Add to errors which node cannot be created: an invalid parameter, or a `reset` that fails."""
    try:
        yield
    except TransectError as error:
        error.where = error.where or f"node {name!r} ({kind.__name__})"
        raise
    except Exception as error:
        used = {key: values.get(key, parameter.default) for key, parameter in kind.parameters.items()}
        given = ", ".join(f"{key}={value!r}" for key, value in used.items())
        raise TransectError(
            f"the node {name!r} ({kind.__name__}) cannot be made ready: {type(error).__name__}: {error}",
            where=f"{name}.reset",
            why=f"its parameters are {given}" if given else "",
        ) from error


def graph_of(
    text: CompoundText,
    implementation: str = "",
    catalogue: Catalogue | None = None,
    settings: Settings | None = None,
) -> Graph:
    """Return a compound ready to run.

    Parameters
    ----------
    text : CompoundText
    implementation : str
        Its name; "" for the only one, or the first.
    catalogue : Catalogue
        Where nodes are found.
    settings : mapping
        Parameters that differ from the description: ``{"icp": {"max_distance": 0.3}}``.

    Raises
    ------
    CompoundError
        With all problems at once.
    """
    work = _Work(catalogue or Catalogue(), settings or {})
    work.expand(text, _choose(text, implementation), "")
    work.refuse_unknown_settings()
    inputs = {name: Port(name, _type_of(port, work)) for name, port in text.inputs.items()}
    outputs = {name: work.resolve(name).source for name in work.outputs}
    tags = {name: port.tag for name, port in text.inputs.items() if port.tag}
    many = frozenset(name for name, port in text.inputs.items() if port.many)
    choices = {name: port.one_of for name, port in text.inputs.items() if port.one_of}
    return Graph(text.name, inputs, in_order(hold_delayed(work.parts())), outputs, tags, many, choices)


def _choose(text: CompoundText, name: str) -> ImplementationText:
    known = {key: each for key, each in text.implementations.items() if each.complete}
    if name in text.implementations and name not in known:
        raise UsageError(f"{text.name}/{name} is only named, not described", where=text.file)
    if not known:
        raise UsageError(f"{text.name} has no implementation that could run", where=text.file)
    if name and name not in known:
        raise UsageError(f"{text.name} has no implementation {name!r}", hint=did_you_mean(name, known))
    return known[name] if name else next(iter(known.values()))


def _type_of(port: PortText, work: _Work) -> type:
    also = [
        p.type for node, _ in work.nodes.values() for p in (*node.inputs.values(), *node.outputs.values())
    ]
    kind = kind_of(port.type, also)
    return kind if isinstance(kind, type) else object


@dataclass
class _Work:
    """State of the expansion of nested compounds."""

    catalogue: Catalogue
    settings: Settings
    # By full id: the node and how it is used
    nodes: dict[str, tuple[Node, NodeUse]] = field(default_factory=dict[str, tuple[Node, NodeUse]])
    # By end of a wire: the end that it gets its samples from, and whether one wave later. Ends are
    # `id.port` for outputs and `id.<port` for inputs, `port` and `<port` for those of the whole
    links: dict[str, tuple[str, bool]] = field(default_factory=dict[str, tuple[str, bool]])
    outputs: list[str] = field(default_factory=list[str])
    settable: set[str] = field(default_factory=set[str])  # ids whose parameters can be set

    def expand(self, text: CompoundText, chosen: ImplementationText, prefix: str) -> None:
        """Add the nodes and wires of an implementation under a prefix (`id.`, or "" for the outermost)."""
        _refuse(text, chosen, self.catalogue)
        if chosen.controller:
            chosen = self._control(text, chosen, prefix)
        else:
            for use in chosen.nodes.values():
                self._add(use, prefix)
        for wire in chosen.wires:
            self.links[_target(wire, prefix)] = (_source(wire, prefix), wire.delayed)
            if not prefix and "." not in wire.target:
                self.outputs.append(wire.target)

    def _add(self, use: NodeUse, prefix: str) -> None:
        """Add a node, or the nodes of a compound in its place."""
        name = prefix + use.id
        node = self._make(name, use)
        if node is not None:
            self.nodes[name] = (node, use)
            return
        text = self.catalogue.compound(use.node)
        assert text is not None, "checked before"
        self.expand(text, _choose(text, use.implementation), f"{name}.")

    def _make(self, name: str, use: NodeUse) -> Node | None:
        """Return a node with its parameters, None for a compound."""
        kind = self.catalogue.implementation(use.node, use.implementation)
        if kind is None:
            return None
        self.settable.add(name)
        values = {**use.params, **self.settings.get(name, {})}
        with naming(name, kind, values):
            seed_libraries()
            return kind(**values)

    def _control(self, text: CompoundText, chosen: ImplementationText, prefix: str) -> ImplementationText:
        """Replace the nodes that a controller calls by one node, the controller."""
        name = "controller"
        members: dict[str, Node] = {}
        for use in chosen.nodes.values():
            node = self._make(prefix + use.id, use)
            if node is None:
                raise UsageError(
                    f"{text.name}: a controller calls nodes, {use.node} is a compound", where=text.file
                )
            members[use.id] = node
        types = {port.name: _type_of(port, self) for port in (*text.inputs.values(), *text.outputs.values())}
        kind = self.catalogue.load_object(chosen.controller, Path(text.file).parent)
        node = controller_node(kind, text, chosen, members, types)
        self.nodes[prefix + name] = (node, NodeUse(name, name))
        wires = [Wire(port, f"{name}.{port}") for port in text.inputs]
        wires += [Wire(f"{name}.{port}", port) for port in text.outputs]
        return dataclasses.replace(chosen, nodes={}, wires=tuple(wires))

    def resolve(self, place: str) -> Feed:
        """Return the final source of the samples of an end."""
        delayed = False
        while place in self.links:
            place, later = self.links[place]
            delayed |= later
        return Feed(place.removeprefix("<"), delayed)

    def parts(self) -> dict[str, PlacedNode]:
        """Return the nodes in their places."""
        made: dict[str, PlacedNode] = {}
        for name, (node, use) in self.nodes.items():
            fed = [port for port in node.inputs if f"{name}.<{port}" in self.links]
            feeds = {port: self.resolve(f"{name}.<{port}") for port in fed}
            every = use.every if use.every is not None else type(node).every
            every_ns = None if every is None else round(every * NS)
            made[name] = PlacedNode(name, node, feeds, every_ns, use.trigger)
        return made

    def refuse_unknown_settings(self) -> None:
        """Raise if a parameter is set of a node that is not there."""
        for name in self.settings:
            if name not in self.settable:
                raise UsageError(f"there is no node {name!r} to set", hint=did_you_mean(name, self.settable))


def _source(wire: Wire, prefix: str) -> str:
    return prefix + (wire.source if "." in wire.source else f"<{wire.source}")


def _target(wire: Wire, prefix: str) -> str:
    owner, _, port = wire.target.rpartition(".")
    return f"{prefix}{owner}.<{port}" if owner else prefix + port


def _refuse(text: CompoundText, chosen: ImplementationText, catalogue: Catalogue) -> None:
    """Raise with everything that is wrong with an implementation."""
    faces = Faces(Given(), catalogue)
    alone = replace(text, implementations={chosen.name: chosen})
    found = [*find_problems(alone, faces), *unwritten(flow_of(alone, chosen, faces)[0])]
    if grave := [finding for finding in found if finding.grave]:
        raise CompoundError(
            text, [problem_at(text.file, f.line, f.what, f.hint) for f in dict.fromkeys(grave)]
        )

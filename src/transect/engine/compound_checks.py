"""Checks of compounds before they run: errors and contradictions in their descriptions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from transect.errors import TransectError, did_you_mean

from .controller import Controller
from .description import CompoundText, ImplementationText, NodeUse, PortText, Wire
from .interfaces import Description, DescriptionFinding, Face, Faces, Socket, faces_of, socket_of
from .nodes import ParameterError
from .port_types import fits, kind_of, known_names, shapes_fit, spell
from .ports import AtPolicy, Policy, Synced


@dataclass(frozen=True)
class ResolvedImplementation:
    """An implementation with its names resolved."""

    compound: CompoundText
    text: ImplementationText
    # By id of the node, those that Code Sample 2 does not declare among them; None if unknown
    found: Mapping[str, Face | None]
    faces: Faces  # suggests corrections of unknown names
    # Of the compound
    inputs: Mapping[str, Socket]
    outputs: Mapping[str, Socket]

    @property
    def called(self) -> str:
        """Prefix of findings if a compound has several implementations."""
        many = self.text.name and len(self.compound.implementations) > 1
        return f"{self.text.name}: " if many else ""

    @property
    def types(self) -> set[type]:
        """Types of the ports of its nodes, including those of other packages."""
        return _types(self.found)

    def socket(self, end: str, gives: bool) -> Socket | None:
        """Return the port at an end of a wire, None if it does not exist."""
        name, _, port = end.partition(".")
        if not port:
            return (self.inputs if gives else self.outputs).get(name)
        face = self.found.get(name)
        return face and (face.outputs if gives else face.inputs).get(port)


def flow_of(
    compound: CompoundText, text: ImplementationText, faces: Faces
) -> tuple[ResolvedImplementation, list[DescriptionFinding]]:
    """Return an implementation with its names resolved, and findings for those that could not be resolved."""
    undeclared = [] if text.complete else _find_undeclared(text)
    found, findings = faces_of([*text.nodes.values(), *undeclared], faces)
    types = _types(found)
    inputs = {name: socket_of(port, types) for name, port in compound.inputs.items()}
    outputs = {name: socket_of(port, types) for name, port in compound.outputs.items()}
    return ResolvedImplementation(compound, text, found, faces, inputs, outputs), findings


def _types(found: Mapping[str, Face | None]) -> set[type]:
    sockets = [s for face in found.values() if face for s in (*face.inputs.values(), *face.outputs.values())]
    return {socket.kind for socket in sockets if isinstance(socket.kind, type)}


def _find_undeclared(text: ImplementationText) -> list[NodeUse]:
    """Return what Code Sample 2 wires without declaring it; there a node has the name of its interface."""
    ends = [(end, wire.line) for wire in text.wires for end in (wire.source, wire.target) if "." in end]
    lines = {end.partition(".")[0]: line for end, line in reversed(ends)}
    return [NodeUse(name, name, line=line) for name, line in lines.items() if name not in text.nodes]


def check_flow(flow: ResolvedImplementation) -> Iterator[DescriptionFinding]:
    """Yield all findings of one implementation."""
    for check in CHECKS:
        for finding in check(flow):
            yield finding._replace(what=flow.called + finding.what)


def interfaces(flow: ResolvedImplementation) -> Iterator[DescriptionFinding]:
    """Nodes without an interface: reported where they are declared, in Code Sample 2 where they are wired."""
    for use in flow.text.nodes.values():
        if flow.found.get(use.id) is None:
            lines = [use.line] if flow.text.complete else _uses(flow, use.id) or [use.line]
            yield from (
                DescriptionFinding(
                    line, f"there is no node or compound {use.node!r}", flow.faces.hint(use.node)
                )
                for line in lines
            )


def _uses(flow: ResolvedImplementation, name: str) -> list[int]:
    return [w.line for w in flow.text.wires for end in (w.source, w.target) if end.partition(".")[0] == name]


def implementations(flow: ResolvedImplementation) -> Iterator[DescriptionFinding]:
    """Implementations that do not exist, or that must be named because there are several."""
    for use, face in _known(flow):
        names = face.implementations
        if use.implementation and use.implementation not in names:
            what = f"{face.name} has no implementation {use.implementation!r}"
            yield DescriptionFinding(use.line, what, did_you_mean(use.implementation, names))
        elif not use.implementation and len(names) != 1 and flow.text.complete:
            count = f"{len(names)} implementations: name one" if names else "no implementation"
            yield DescriptionFinding(use.line, f"{face.name} has {count}", ", ".join(names))


def processes(flow: ResolvedImplementation) -> Iterator[DescriptionFinding]:
    """Classes without `process`, or with a misspelt one."""
    for use, face in _known(flow):
        if face.node is not None and not callable(getattr(face.node, "process", None)):
            own = [name for name, value in vars(face.node).items() if callable(value)]
            near = get_close_matches("process", own, n=1)
            hint = f"is it {near[0]!r}?" if near else "def process(self, image: Image) -> PointCloud: ..."
            yield DescriptionFinding(use.line, f"the class {face.node.__name__} has no process", hint)


def _known(flow: ResolvedImplementation) -> Iterator[tuple[NodeUse, Face]]:
    for use in flow.text.nodes.values():
        face = flow.found.get(use.id)
        if face is not None and face.readable:
            yield use, face


def ends(flow: ResolvedImplementation) -> Iterator[DescriptionFinding]:
    """Ends of wires that do not exist."""
    for wire in flow.text.wires:
        yield from _end(flow, wire, wire.source, gives=True)
        yield from _end(flow, wire, wire.target, gives=False)


def _end(flow: ResolvedImplementation, wire: Wire, end: str, gives: bool) -> Iterator[DescriptionFinding]:
    name, _, port = end.partition(".")
    side = "output" if gives else "input"
    if not port:
        yield from _own_end(flow, wire, name, gives)
        return
    face = flow.found.get(name)
    if name not in flow.text.nodes:
        what = f"the node {name!r} is not declared" if flow.text.complete else f"{name} is not among the dfns"
        hint = did_you_mean(name, flow.text.nodes) if face is None else f"add {name} to the dfns"
        yield DescriptionFinding(wire.line, what, hint)
    if face is not None and face.readable and flow.socket(end, gives) is None:
        named = name if name == face.name else f"{name} ({face.name})"
        hint = did_you_mean(port, face.outputs if gives else face.inputs)
        yield DescriptionFinding(wire.line, f"{named} has no {side} {port!r}", hint)


def _own_end(
    flow: ResolvedImplementation, wire: Wire, name: str, gives: bool
) -> Iterator[DescriptionFinding]:
    known = flow.inputs if gives else flow.outputs
    if name not in known:
        side = "input" if gives else "output"
        hint = f"name its port: {name}.port" if name in flow.text.nodes else did_you_mean(name, known)
        yield DescriptionFinding(wire.line, f"{flow.compound.name} has no {side} {name!r}", hint)


def kinds(flow: ResolvedImplementation) -> Iterator[DescriptionFinding]:
    """Types, units and frames that do not fit along a wire."""
    for wire in flow.text.wires:
        source, target = flow.socket(wire.source, True), flow.socket(wire.target, False)
        if source is None or target is None:
            continue
        if not fits(source.kind, target.kind):
            given, wanted = spell(source.kind), spell(target.kind)
            yield DescriptionFinding(
                wire.line, f"{wire}: {given} does not fit {wanted}", f"{wire.target} takes {wanted}"
            )
        elif not shapes_fit(source.shape, target.shape):
            given, wanted = (str(each.shape) for each in (source, target))
            yield DescriptionFinding(wire.line, f"{wire}: arrays of shape {given} do not fit {wanted}")
        for what in ("unit", "frame"):
            given, wanted = getattr(source, what), getattr(target, what)
            if given and wanted and given != wanted:
                yield DescriptionFinding(
                    wire.line, f"{wire}: the {what} is {given!r}, and {wanted!r} is expected"
                )


def fan_in(flow: ResolvedImplementation) -> Iterator[DescriptionFinding]:
    """Ports that are fed more than once; a hint in Code Sample 2, which can name each node only once."""
    feeding: dict[str, list[Wire]] = defaultdict(list)
    for wire in flow.text.wires:
        feeding[wire.target].append(wire)
    for target, wires in feeding.items():
        first, *others = wires
        grave = flow.text.complete and flow.socket(target, False) is not None
        for wire in others:
            hint = f"by {first.source} already, in line {first.line}"
            yield DescriptionFinding(wire.line, f"{target} is fed twice", hint, grave)


def hunger(flow: ResolvedImplementation) -> Iterator[DescriptionFinding]:
    """Inputs that are never fed; a controller feeds nodes by calling them."""
    if not flow.text.complete or flow.text.controller:
        return
    fed = {wire.target for wire in flow.text.wires}
    for use, face in _known(flow):
        for name, socket in face.inputs.items():
            if f"{use.id}.{name}" not in fed and socket.needed is not False:
                what = f"the input {use.id}.{name} is never fed"
                yield DescriptionFinding(
                    use.line, what, f"... -> {use.id}.{name}", grave=socket.needed is True
                )


def waste(flow: ResolvedImplementation) -> Iterator[DescriptionFinding]:
    """Unused ports: of the compound, and of nodes without any used output."""
    if flow.text.controller or not (flow.text.complete or flow.text.wires):
        return
    sources = {wire.source for wire in flow.text.wires}
    targets = {wire.target for wire in flow.text.wires}
    for name, port in flow.compound.inputs.items():
        if name not in sources:
            yield DescriptionFinding(port.line, f"the input {name!r} is not used", grave=False)
    for name, port in flow.compound.outputs.items():
        if name not in targets:
            yield DescriptionFinding(
                port.line, f"the output {name!r} is never fed", f"... -> {name}", grave=False
            )
    for use, face in _known(flow) if flow.text.complete else ():
        if face.outputs and not any(end.partition(".")[0] == use.id for end in sources):
            yield DescriptionFinding(use.line, f"nothing uses what {use.id!r} gives", grave=False)


def cycles(flow: ResolvedImplementation) -> Iterator[DescriptionFinding]:
    """Loops that no delay closes."""
    after: dict[str, dict[str, Wire]] = defaultdict(dict)
    for wire in flow.text.wires:
        if not wire.delayed and "." in wire.source and "." in wire.target:
            after[wire.source.partition(".")[0]].setdefault(wire.target.partition(".")[0], wire)
    for loop in _loops(after):
        wire = after[loop[-2]][loop[-1]]
        closing = f"{wire.source} ~> {wire.target}"
        yield DescriptionFinding(
            wire.line, f"a cycle without a delay: {' -> '.join(loop)}", f"write {closing}"
        )


def _loops(after: Mapping[str, Mapping[str, Wire]]) -> Iterator[list[str]]:
    """Yield one loop for each edge that leads back, first to last; depth first, without recursion."""
    done: set[str] = set()
    for start in list(after):
        path: list[str] = []
        open_ways: list[Iterator[str]] = [iter([start])]
        while open_ways:
            name = next(open_ways[-1], None)
            if name is None:
                open_ways.pop()
                done.update(path[-1:])
                del path[-1:]
            elif name in path:
                yield [*path[path.index(name) :], name]
            elif name not in done:
                path.append(name)
                open_ways.append(iter(after.get(name, {})))


def meetings(flow: ResolvedImplementation) -> Iterator[DescriptionFinding]:
    """Delayed wires into ports that need the sample of the trigger's own time."""
    direct = {(wire.source, wire.target.partition(".")[0]) for wire in flow.text.wires if not wire.delayed}
    for wire in flow.text.wires:
        name, _, port = wire.target.partition(".")
        face = flow.found.get(name)
        known = face.node.inputs.get(port) if face and face.node else None
        if wire.delayed and (wire.source, name) in direct and known and _is_timed(known.policy):
            what = f"{wire}: {wire.target} ({known.policy}) would take the sample that {name} has already"
            yield DescriptionFinding(wire.line, what, f"{port}: T, Latest[T] or Batch[T]")


def _is_timed(policy: Policy) -> bool:
    return isinstance(policy, Synced | AtPolicy)


def parameters(flow: ResolvedImplementation) -> Iterator[DescriptionFinding]:
    """Parameters that a node does not have, or values that they cannot have."""
    for use, face in _known(flow):
        known = face.node.parameters if face.node else {}
        for name, value in use.params.items() if face.node else ():
            if name not in known:
                what = f"{use.id} ({face.name}) has no parameter {name!r}"
                yield DescriptionFinding(use.line, what, did_you_mean(name, known))
                continue
            try:
                known[name].check(value, use.id)
            except ParameterError as error:
                yield DescriptionFinding(use.line, f"{error.what}: {error.why}", error.hint)


def triggers(flow: ResolvedImplementation) -> Iterator[DescriptionFinding]:
    """Activations that name a port that is not there."""
    for use, face in _known(flow):
        if use.trigger and use.trigger not in face.inputs:
            what = f"{use.id} ({face.name}) has no input {use.trigger!r} to be triggered by"
            yield DescriptionFinding(use.line, what, did_you_mean(use.trigger, face.inputs))


def controllers(flow: ResolvedImplementation) -> Iterator[DescriptionFinding]:
    """Controllers that do not exist, or are not controllers."""
    spec = flow.text.controller
    if not spec:
        return
    try:
        kind = flow.faces.catalogue.load_object(spec, Path(flow.compound.file).parent)
    except TransectError as error:
        hint = error.hint or (f"see {error.where}" if error.where else "")
        yield DescriptionFinding(flow.text.line, f"the controller {spec!r}: {error.what}", hint)
    else:
        if not (isinstance(kind, type) and issubclass(kind, Controller)):
            yield DescriptionFinding(flow.text.line, f"{spec} is not a Controller", "class ...(Controller)")


def unwritten(flow: ResolvedImplementation) -> Iterator[DescriptionFinding]:
    """Nodes that are described but not implemented: valid in a description, which cannot run."""
    for use, face in _known(flow):
        if face.node is None and flow.faces.compound(use.node) is None:
            yield DescriptionFinding(use.line, f"{use.node} is described, but there is no such class to run")


CHECKS: tuple[Callable[[ResolvedImplementation], Iterator[DescriptionFinding]], ...] = (
    interfaces,
    processes,
    implementations,
    ends,
    kinds,
    fan_in,
    hunger,
    cycles,
    meetings,
    parameters,
    triggers,
    controllers,
    waste,
)


def find_problems(text: CompoundText, faces: Faces) -> Iterator[DescriptionFinding]:
    """Yield everything that prevents a compound from running, and some hints.

    `transect graph check` and runs use the same checks.
    """
    yield from find_wrong_names(text) if text.file else ()
    also: set[type] = set()
    for implementation in text.implementations.values():
        flow, findings = flow_of(text, implementation, faces)
        also |= flow.types
        yield from findings
        yield from check_flow(flow)
    yield from find_wrong_types(text, also)
    yield from _nesting(text, faces)


def find_wrong_types(text: Description, also: Iterable[type] = ()) -> Iterator[DescriptionFinding]:
    """Types of ports and operations that are not known."""
    operations = text.operations if isinstance(text, CompoundText) else ()
    typed = [(port.line, port.name, port.type) for port in list_ports(text)]
    typed += [(each.line, each.name, each.output_type) for each in operations if each.output_type != "void"]
    typed += [(port.line, port.name, port.type) for each in operations for port in each.inputs]
    for line, name, kind in typed:
        if kind and kind_of(kind, also) is None:
            yield DescriptionFinding(
                line, f"{name}: unknown type {kind!r}", did_you_mean(kind, known_names(kind))
            )


def _nesting(text: CompoundText, faces: Faces) -> Iterator[DescriptionFinding]:
    """Compounds that contain themselves, directly or through others."""
    for implementation in text.implementations.values():
        for use in implementation.nodes.values():
            if path := _way_to(text.name, use.node, faces, ()):
                chain = " > ".join((text.name, *path))
                yield DescriptionFinding(use.line, f"{text.name} contains itself: {chain}")


def _way_to(goal: str, name: str, faces: Faces, passed: tuple[str, ...]) -> tuple[str, ...]:
    """Return the compounds that lead from one to another, () if none do."""
    if name in passed:
        return ()
    if name == goal:
        return (*passed, name) if _implementations(name, faces) else ()
    inside = {use.node for each in _implementations(name, faces) for use in each.nodes.values()}
    ways = (_way_to(goal, each, faces, (*passed, name)) for each in sorted(inside))
    return next(filter(None, ways), ())


def _implementations(name: str, faces: Faces) -> Iterable[ImplementationText]:
    """Return the implementations of a compound; none of a node, or of a file that is itself reported."""
    try:
        compound = faces.compound(name)
    except TransectError:
        return ()
    return compound.implementations.values() if compound else ()


NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def find_wrong_names(text: Description) -> Iterator[DescriptionFinding]:
    """Names of ports and nodes that are not valid in Python."""
    for line, called, name in _names(text):
        if not NAME.fullmatch(name):
            better = re.sub(r"\W+", "", name)
            hint = f"write {better}" if NAME.fullmatch(better) else "letters, digits and _"
            yield DescriptionFinding(line, f"{name!r} cannot be the name of {called}", hint)


def _names(text: Description) -> Iterator[tuple[int, str, str]]:
    """Yield line, what it names, and name; others were reported when the file was read."""
    if text.name:
        yield text.line, "a compound" if isinstance(text, CompoundText) else "a node", text.name
    yield from ((port.line, "a port", port.name) for port in list_ports(text))
    if isinstance(text, CompoundText):
        for each in text.implementations.values():
            if each.name not in ("", text.name):
                yield each.line, "an implementation", each.name
            yield from ((use.line, "a node", use.id) for use in each.nodes.values())
    else:
        others = (name for name in text.implementations if name != text.name)
        yield from ((text.line, "an implementation", name) for name in others)


def list_ports(text: Description) -> list[PortText]:
    """Return all ports of a description."""
    return [*text.inputs.values(), *text.outputs.values()]

"""Descriptions of nodes and compounds read from YAML, in any of the three forms, with all problems at once.

Ours (`nodes`, `wires`), the paper's Code Sample 2 (`dfns` that are only named, `connections` under the ports)
and CDFF's long form (`dfns` with a `dfn_id`, `input_connections`, `internal_connections`,
`output_connections`) may be mixed in one file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from transect.base.yaml_parts import DescriptionProblem, Lines, YamlPart, parse, problem_at
from transect.errors import ParseError, UsageError, did_you_mean

from .description import CompoundText, ImplementationText, NodeText, NodeUse, Operation, PortText, Wire

__all__ = ["DescriptionError", "DescriptionProblem", "examine", "parse_description", "read_description"]

Named = TypeVar("Named", PortText, NodeUse, ImplementationText)

NOT_CONNECTED = frozenset({"NoDfn", "noPort"})
"""What CDFF writes for the other end of a port that is not connected."""
WIRE = re.compile(r"\s*([^\s.]+(?:\.[^\s.]+)?)\s*([-~]>)\s*([^\s.]+(?:\.[^\s.]+)?)\s*")
PORT_KEYS = ("name", "type", "doc", "tag", "unit", "frame", "many", "one_of", "connections")
NODE_KEYS = ("node", "dfn", "name", "dfn_id", "implementation", "params", "every", "trigger", "activation")
CONNECTION_KEYS = ("input_connections", "internal_connections", "output_connections")
FLOW_KEYS = ("nodes", "dfns", "wires", *CONNECTION_KEYS, "controller")
LIKE_KEYS = ("like", "without")
"""What makes an implementation more than a name."""
FILE_KEYS = ("name", "doc", "input_ports", "output_ports", "implementations", "operations", *FLOW_KEYS)


class DescriptionError(ParseError):
    """A file that is no description; `problems` has all that is wrong with it."""

    def __init__(self, file: str, problems: list[DescriptionProblem]) -> None:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(
            f"{file} is not a description of a node or a compound",
            where=first.where,
            why="; ".join(p.what for p in problems[:3]) + more,
            hint=first.hint or f"transect graph check {file}",
        )
        self.problems = problems


def read_description(path: Path | str) -> CompoundText | NodeText:
    """Return what a description file says; see `parse_description`."""
    return parse_description(text_of(path), str(path))


def parse_description(text: str, file: str) -> CompoundText | NodeText:
    """Return what a description says.

    Parameters
    ----------
    text : str
        YAML.
    file : str
        Named in problems, and kept.

    Returns
    -------
    CompoundText or NodeText
        A compound if it has nodes, wires or connections. What Code Sample 2 says once for all its
        implementations is an implementation named "": its nodes have the names of their interfaces, its wires
        are the connections, and it is not complete, as those that are only named beside it are not.

    Raises
    ------
    DescriptionError
        With all problems of the file.
    """
    description, problems = examine(text, file)
    if description is None or problems:
        raise DescriptionError(file, problems)
    return description


def examine(text: str, file: str) -> tuple[CompoundText | NodeText | None, list[DescriptionProblem]]:
    """Return as much of a description as can be read, None if nothing, and what is wrong with it."""
    try:
        data, lines = parse(text, file)
    except ParseError as error:
        return None, [_problem_of(error, file)]
    document = YamlPart(data, (), lines)
    if not document.is_mapping("a description", *FILE_KEYS):
        return None, document.problems
    description = _compound(document, lines) if _is_compound(document) else _node(document, lines)
    return description, document.problems


def text_of(path: Path | str) -> str:
    """Return the text of a description file."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise UsageError(f"there is no file {path}", hint="the .yaml of a compound or a node") from error
    except UnicodeDecodeError as error:
        raise DescriptionError(
            str(path), [problem_at(str(path), 0, f"the file is not text: {error}")]
        ) from error


def _problem_of(error: ParseError, file: str) -> DescriptionProblem:
    number = error.where.removeprefix(file).removeprefix(":")
    what = error.what.replace(file, "the file")
    return problem_at(file, int(number or 0), f"{what}: {error.why}" if error.why else what)


def _is_compound(document: YamlPart) -> bool:
    """Tell a compound from a node: it says what it is made of, or its implementations are more than names."""
    ports = [port for key in ("input_ports", "output_ports") for port in _quietly(document, key)]
    return (
        document.has("operations", *FLOW_KEYS)
        or any(port.has("connections") for port in ports)
        or any(isinstance(part.data, Mapping) for part in _quietly(document, "implementations"))
    )


def _quietly(document: YamlPart, key: str) -> list[YamlPart]:
    """Return the parts of a list without noting problems; they are noted when the list is read."""
    return YamlPart(document.data, document.path, document.lines).items(key)


def _node(document: YamlPart, lines: Lines) -> NodeText:
    name = document.needed("name", "the node")
    names = tuple(part.data for part in document.items("implementations") if _is_name(part))
    return NodeText(
        name,
        document.text("doc"),
        _ports(document, "input_ports"),
        _ports(document, "output_ports"),
        names or (name,),
        lines.file,
        document.line,
    )


def _is_name(part: YamlPart) -> bool:
    if not isinstance(part.data, str):
        part.wrong(f"an implementation should be a name, not {part.data!r}")
    return isinstance(part.data, str)


def _compound(document: YamlPart, lines: Lines) -> CompoundText:
    name = document.needed("name", "the compound")
    inputs, outputs = (_ports(document, key) for key in ("input_ports", "output_ports"))
    parts = document.items("implementations")
    written = _by_name(
        document, "implementation", (*_read_shared(document, name), *map(_implementation, parts))
    )
    return CompoundText(
        name,
        document.text("doc"),
        inputs,
        outputs,
        _complete(written, parts),
        tuple(_operation(part) for part in document.items("operations")),
        lines.file,
        document.line,
    )


def _ports(document: YamlPart, key: str) -> dict[str, PortText]:
    called = f"an {key.removesuffix('_ports')} port"
    return _by_name(document, called, (_port(part, called) for part in document.items(key)))


def _port(part: YamlPart, called: str) -> PortText | None:
    if not part.is_mapping(called, *PORT_KEYS):
        return None
    name, kind = part.needed("name", called), part.needed("type", called)
    extras = {key: part.text(key) for key in ("doc", "tag", "unit", "frame", "one_of")}
    return PortText(name, kind, **extras, many=part.flag("many"), line=part.line) if name else None


def _by_name(document: YamlPart, called: str, found: Iterable[Named | None]) -> dict[str, Named]:
    """Return what was found by name; a second one of the same name is noted."""
    named: dict[str, Named] = {}
    for one in found:
        if one is None:
            continue
        name = one.id if isinstance(one, NodeUse) else one.name
        if name in named:
            what = f"{called} {name!r} is there twice"
            first = f"the first is in line {named[name].line}"
            document.problems.append(problem_at(document.lines.file, one.line, what, first))
        else:
            named[name] = one
    return named


def _operation(part: YamlPart) -> Operation:
    if not part.is_mapping("an operation", "name", "doc", "inputs", "output_type"):
        return Operation("", line=part.line)
    inputs = [_port(port, "an input of an operation") for port in part.items("inputs")]
    return Operation(
        part.needed("name", "an operation"),
        tuple(port for port in inputs if port is not None),
        part.text("output_type", "void"),
        part.text("doc"),
        part.line,
    )


def _read_shared(document: YamlPart, name: str) -> list[ImplementationText]:
    """Return what the top level says of nodes and wires: Code Sample 2's part for all, or the only one."""
    wires = tuple(_port_wires(document))
    if _only_named(document) and (wires or document.has("dfns")):
        nodes = _by_name(document, "node", map(_read_declared, document.items("dfns")))
        return [ImplementationText("", nodes, wires, complete=False, line=document.child("dfns").line)]
    return [_flow(document, name, wires)] if document.has(*FLOW_KEYS) else []


def _only_named(document: YamlPart) -> bool:
    """Return whether the nodes at the top of a file are a list of names, as in Code Sample 2."""
    dfns = document.child("dfns").data
    listed = dfns is None or (
        isinstance(dfns, list) and not any(p.has("dfn_id") for p in document.items("dfns"))
    )
    return listed and not document.has(*(key for key in FLOW_KEYS if key != "dfns"))


def _read_declared(part: YamlPart) -> NodeUse | None:
    """Return one of Code Sample 2's `dfns`, which are only named."""
    if not part.is_mapping("a DFN", "name"):
        return None
    name = part.needed("name", "a DFN")
    return NodeUse(name, name, line=part.line) if name else None


def _is_connected(port: YamlPart) -> bool:
    return port.has("connections") and isinstance(port.child("name").data, str)


def _port_wires(document: YamlPart) -> Iterator[Wire]:
    """Yield the `connections` under the ports as wires."""
    for key, inward in (("input_ports", True), ("output_ports", False)):
        for port in filter(_is_connected, _quietly(document, key)):
            name = port.text("name")
            noting = YamlPart(port.data, port.path, document.lines, document.problems)
            for part in noting.items("connections"):
                if end := _end(part, "a connection", "dfn"):
                    yield Wire(name, end, line=part.line) if inward else Wire(end, name, line=part.line)


def _implementation(part: YamlPart) -> ImplementationText | None:
    if isinstance(part.data, str):
        return ImplementationText(part.data, complete=False, line=part.line)
    if not part.is_mapping("an implementation", "name", *LIKE_KEYS, *FLOW_KEYS):
        return None
    name = part.needed("name", "an implementation")
    if not part.has("like", *FLOW_KEYS):
        return ImplementationText(name, complete=False, line=part.line) if name else None
    return _flow(part, name, ())


def _complete(
    written: Mapping[str, ImplementationText], parts: Iterable[YamlPart]
) -> dict[str, ImplementationText]:
    """Return implementations with what they take from those that they are `like`."""
    likes = {part.text("name"): part for part in parts if part.has(*LIKE_KEYS)}
    done: dict[str, ImplementationText] = {}
    for name in written:
        chain: list[str] = []
        base: str | None = name
        while base is not None and base not in done:
            chain.append(base)
            base = _base(likes[base], written, chain) if base in likes else None
        for each in reversed(chain):
            done[each] = written[each] if base is None else _vary(likes[each], done[base], written[each])
            base = each
    return {name: done[name] for name in written}


def _base(part: YamlPart, written: Mapping[str, ImplementationText], chain: list[str]) -> str | None:
    """Return the name of the implementation that the last one of a chain is like, None if that is wrong."""
    name, like = chain[-1], part.child("like")
    known = [each for each, text in written.items() if text.complete and each not in ("", name)]
    if like.data is None:
        part.wrong(f"the implementation {name!r} has `without` but no `like`", "like: the name of another")
    elif like.data in chain:
        like.wrong(f"the implementation {name!r} is like itself: {' > '.join([*chain, like.data])}")
    elif like.data not in known:
        like.wrong(f"there is no implementation {like.data!r}", did_you_mean(str(like.data), known))
    else:
        return like.data
    return None


def _vary(part: YamlPart, base: ImplementationText, change: ImplementationText) -> ImplementationText:
    without = [each for each in part.items("without") if _is_in(each, base)]
    return base.vary(change, [each.data for each in without])


def _is_in(part: YamlPart, base: ImplementationText) -> bool:
    found = isinstance(part.data, str) and base.mentions(part.data)
    if not found:
        known = [*base.nodes, *(wire.target for wire in base.wires)]
        part.wrong(
            f"{base.name} has no node or wired port {part.data!r} to leave out",
            did_you_mean(str(part.data), known),
        )
    return found


def _flow(part: YamlPart, name: str, wires: tuple[Wire, ...]) -> ImplementationText:
    """Return the nodes and wires that stand in an implementation, or at the top of a file."""
    return ImplementationText(
        name,
        _by_name(part, "node", _uses(part)),
        (*wires, *_wires(part)),
        part.text("controller"),
        line=part.line,
    )


def _uses(part: YamlPart) -> Iterator[NodeUse | None]:
    for key in ("nodes", "dfns"):
        if isinstance(part.child(key).data, list):
            yield from (_use(one, "") for one in part.items(key))
        else:
            yield from (_use(one, name) for name, one in part.members(key))


def _use(part: YamlPart, name: str) -> NodeUse | None:
    """Return a node in use; CDFF's long form gives its id as `dfn_id`, ours as the key."""
    if not part.is_mapping("a node", *NODE_KEYS):
        return None
    interface = part.text("node") or part.text("dfn") or part.text("name")
    name = name or part.text("dfn_id") or interface
    if not interface:
        part.wrong(
            f"the node {name!r} does not say which it is" if name else "a node has no name", "node: Name"
        )
        return None
    every, trigger = _activation(part)
    return NodeUse(
        name, interface, part.text("implementation"), _params(part), every, trigger, line=part.line
    )


def _params(part: YamlPart) -> dict[str, object]:
    return {name: value.data for name, value in part.members("params")}


def _activation(part: YamlPart) -> tuple[float | None, str]:
    """Return the seconds between firings, or the port that triggers; a node has at most one of them."""
    given = [key for key in ("every", "trigger", "activation") if part.child(key).data is not None]
    if len(given) > 1:
        part.wrong(f"a node has both {given[0]} and {given[1]}", "it runs by time or by a port, not both")
    if "activation" in given:
        return _cdff_activation(part.child("activation"))
    return _positive(part.child("every"), "every, in seconds,"), part.text("trigger")


def _cdff_activation(part: YamlPart) -> tuple[float | None, str]:
    """Return the same of CDFF's `activation`, whose `frequency` is in Hz."""
    if not part.is_mapping("an activation", "type", "value"):
        return None, ""
    kind = part.needed("type", "an activation")
    if kind == "input_triggered":
        return None, part.needed("value", "an activation")
    if kind == "frequency":
        hertz = _positive(part.child("value"), "a frequency, in Hz,")
        return (1 / hertz if hertz else None), ""
    if kind:
        part.wrong(f"unknown activation {kind!r}", did_you_mean(kind, ("input_triggered", "frequency")))
    return None, ""


def _positive(part: YamlPart, called: str) -> float | None:
    if part.data is None:
        return None
    if isinstance(part.data, bool) or not isinstance(part.data, int | float) or not 0 < part.data < 1e12:
        part.wrong(f"{called} should be a number above 0, not {part.data!r}")
        return None
    return float(part.data)


def _wires(part: YamlPart) -> Iterator[Wire]:
    yield from filter(None, map(_wire, part.items("wires")))
    for one in part.items("input_connections"):
        target = _end(one, "an input connection", "dfn_id", "dfpc_input")
        yield from _join(_own_end(one, "dfpc_input"), target, one)
    for one in part.items("internal_connections"):
        if one.is_mapping("an internal connection", "from", "to"):
            source, target = (_end(one.child(key), f"{key!r}", "dfn_id") for key in ("from", "to"))
            yield from _join(source, target, one)
    for one in part.items("output_connections"):
        source = _end(one, "an output connection", "dfn_id", "dfpc_output")
        yield from _join(source, _own_end(one, "dfpc_output"), one)


def _wire(part: YamlPart) -> Wire | None:
    found = WIRE.fullmatch(part.data) if isinstance(part.data, str) else None
    if found is None:
        part.wrong(
            f"{part.data!r} is not a wire", "write 'node.port -> other.port', or '~>' to deliver later"
        )
        return None
    source, arrow, target = found.groups()
    return Wire(source, target, arrow == "~>", part.line)


def _end(part: YamlPart, called: str, node_key: str, *other_keys: str) -> str:
    """Return one end of a connection as `node.port`, "" if it says that there is none."""
    if not part.is_mapping(called, node_key, "port", *other_keys):
        return ""
    name, port = part.needed(node_key, called), part.needed("port", called)
    return "" if {name, port} & {*NOT_CONNECTED, ""} else f"{name}.{port}"


def _own_end(part: YamlPart, key: str) -> str:
    return part.needed(key, "a connection") if isinstance(part.data, Mapping) else ""


def _join(source: str, target: str, part: YamlPart) -> Iterator[Wire]:
    if source and target:
        yield Wire(source, target, line=part.line)

"""What is written is read back the same."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.engine.description import (
    CompoundText,
    ImplementationText,
    NodeUse,
    Operation,
    PortText,
    Wire,
    to_yaml,
)
from transect.engine.reading import parse_description

from .test_reading import LONG, OURS, SAMPLE_2

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)  # `on`, `no` and `null` among them
docs = st.text(max_size=30).filter(lambda text: "\r" not in text and "\x85" not in text)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | docs,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)
ports = st.builds(PortText, names, names, doc=docs, tag=docs, unit=docs, frame=docs)
ends = st.builds("{}.{}".format, names, names)
wires = st.lists(st.builds(Wire, names | ends, names | ends, delayed=st.booleans()), max_size=4).map(tuple)
uses = st.builds(
    NodeUse,
    names,
    names,
    docs,
    st.dictionaries(names, values, max_size=3),
    st.just(None),
    st.just("") | names,
) | st.builds(NodeUse, names, names, every=st.floats(1e-6, 1e6))
operations = st.builds(Operation, names, st.lists(ports, max_size=2).map(tuple), output_type=names, doc=docs)


def by_name(one: st.SearchStrategy[Any], key: str = "name") -> st.SearchStrategy[dict[str, Any]]:
    many = st.lists(one, max_size=3, unique_by=lambda part: getattr(part, key))
    return many.map(lambda parts: {getattr(part, key): part for part in parts})


complete = st.builds(ImplementationText, names, by_name(uses, "id"), wires, docs)
named = st.builds(ImplementationText, names, complete=st.just(False))


@st.composite
def compounds(draw: st.DrawFn) -> CompoundText:
    inputs, outputs = draw(by_name(ports)), draw(by_name(ports))
    implementations = draw(by_name(complete | named))
    if draw(st.booleans()):  # what Code Sample 2 says once, in its order
        nodes = {name: NodeUse(name, name) for name in draw(st.lists(names, max_size=3, unique=True))}
        shared = [Wire(name, end) for name in inputs for end in draw(st.lists(ends, max_size=2))]
        shared += [Wire(end, name) for name in outputs for end in draw(st.lists(ends, max_size=2))]
        implementations = {
            "": ImplementationText("", nodes, tuple(shared), complete=False),
            **implementations,
        }
    return CompoundText(
        draw(names),
        draw(docs),
        inputs,
        outputs,
        implementations,
        tuple(draw(st.lists(operations, max_size=2))),
    )


def without_lines(compound: CompoundText) -> CompoundText:
    def bare(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: bare(value) for key, value in part.items()}
        if isinstance(part, tuple):
            return tuple(bare(value) for value in part)
        if not hasattr(part, "line"):
            return part
        inside = {key: bare(value) for key, value in vars(part).items() if key != "params"}
        return replace(part, **{**inside, "line": 0})

    return replace(bare(compound), file="")


@given(compounds())
def test_reading_what_was_written_gives_the_same(compound: CompoundText) -> None:
    again = parse_description(to_yaml(compound), "x.yaml")
    assert isinstance(again, CompoundText)
    assert without_lines(again) == without_lines(compound)


@pytest.mark.parametrize("text", [OURS, LONG, SAMPLE_2], ids=["ours", "long", "sample 2"])
def test_each_form_is_written_in_ours(text: str) -> None:
    first = parse_description(text, "x.yaml")
    assert isinstance(first, CompoundText)
    written = to_yaml(first)
    again = parse_description(written, "x.yaml")
    assert isinstance(again, CompoundText)
    assert without_lines(again) == without_lines(first)
    assert "_connections" not in written


def test_a_wire_is_a_line() -> None:
    first = parse_description(OURS, "x.yaml")
    assert isinstance(first, CompoundText)
    assert "\n  - icp.pose ~> icp.guess\n" in to_yaml(first)


def test_values_that_are_the_same_object_are_written_out() -> None:
    shared = {"window": 5}
    uses = {name: NodeUse(name, "Stereo", params={"given": shared}) for name in ("a", "b")}
    text = to_yaml(CompoundText("C", implementations={"C": ImplementationText("C", uses)}))
    assert "&" not in text
    assert text.count("window: 5") == 2

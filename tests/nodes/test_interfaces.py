"""An interface owns its ports: it writes `process` once, its implementations write the step that differs."""

from __future__ import annotations

from transect.engine import Node
from transect.engine.catalogue import catalogue_for


def test_no_implementation_states_the_ports_of_its_interface_again():
    catalogue = catalogue_for()
    nodes = {kind for name in catalogue.names() if (kind := catalogue.node(name)) is not None}
    interfaces = {kind for kind in nodes if kind.__name__ not in kind.implementations}
    assert len(interfaces) >= 35
    assert sorted(name for kind in interfaces for name in restating(kind)) == []


def restating(interface: type[Node]) -> list[str]:
    """Return the implementations of ours that have another `process` than their interface."""
    return [
        f"{interface.__name__}/{name}"
        for name, kind in interface.implementations.items()
        if kind.__module__.startswith("transect.") and "process" in vars(kind)
    ]

"""The dataflow engine: nodes with typed ports, wired into compounds, run on recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .compounds import Compound, compound
    from .controller import Control, Controller
    from .execution import NodeError
    from .nodes import Node, Parameter, ParameterError, implementation, node, param
    from .ports import At, Batch, Frame, Latest, Policy, Port, PortError, Shape, Synced, Unit, outputs
    from .replay import Options, Replay
    from .runs import Run, run

__all__ = [
    "At",
    "Batch",
    "Compound",
    "Control",
    "Controller",
    "Frame",
    "Latest",
    "Node",
    "NodeError",
    "Options",
    "Parameter",
    "ParameterError",
    "Policy",
    "Port",
    "PortError",
    "Replay",
    "Run",
    "Shape",
    "Synced",
    "Unit",
    "compound",
    "implementation",
    "node",
    "outputs",
    "param",
    "run",
]

__getattr__ = importer(
    __name__,
    {
        "compounds": ("Compound", "compound"),
        "controller": ("Control", "Controller"),
        "execution": ("NodeError",),
        "nodes": ("Node", "Parameter", "ParameterError", "implementation", "node", "param"),
        "ports": (
            "At",
            "Batch",
            "Frame",
            "Latest",
            "Policy",
            "Port",
            "PortError",
            "Shape",
            "Synced",
            "Unit",
            "outputs",
        ),
        "replay": ("Options", "Replay"),
        "runs": ("Run", "run"),
    },
)

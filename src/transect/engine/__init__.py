"""The dataflow engine: nodes with typed ports, wired into compounds, run on recordings."""

from .compound import Compound, compound
from .controller import Control, Controller
from .firing import NodeError
from .node import Node, implementation, node
from .params import Parameter, ParameterError, param
from .policies import At, Batch, Latest, Policy, Synced
from .ports import Frame, Port, PortError, Shape, Unit, outputs
from .replay import Options, Replay
from .run import Run, run

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

"""The dataflow engine: nodes with typed ports, to be wired into compounds."""

from .node import Node, implementation, node
from .params import Parameter, ParameterError, param
from .policies import At, Batch, Latest, Policy, Synced
from .ports import Port, PortError, outputs

__all__ = [
    "At",
    "Batch",
    "Latest",
    "Node",
    "Parameter",
    "ParameterError",
    "Policy",
    "Port",
    "PortError",
    "Synced",
    "implementation",
    "node",
    "outputs",
    "param",
]

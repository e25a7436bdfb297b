"""Life cycle of compounds on a robot that drives: configured, activated, deactivated, failed.

CDFF's fifth function of an Orchestrator: "controlling the runtime life cycle of configuring, activation, and
deactivation of DFPCs according to autonomy framework requests and corresponding operational modes of the
sensors. This last function does not interfere with internal DFPC decision-making processes."
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from transect.engine import Compound
from transect.engine.context import NodeEnvironment
from transect.engine.determinism import one_thread_per_library
from transect.engine.flow import Flow
from transect.errors import TransectError, UsageError, did_you_mean

State = Literal["UNCONFIGURED", "CONFIGURED", "ACTIVE", "INACTIVE", "FAILED"]
STATES: tuple[State, ...] = get_args(State)
Transition = Literal["configure", "activate", "deactivate", "clean up"]
TRANSITIONS: dict[Transition, tuple[State, ...]] = {
    "configure": ("UNCONFIGURED", "CONFIGURED"),
    "activate": ("CONFIGURED", "INACTIVE"),
    "deactivate": ("ACTIVE",),
    "clean up": ("CONFIGURED", "ACTIVE", "INACTIVE", "FAILED"),
}
"""By transition: the states in which it is possible."""
Listener = Callable[[str, int, Any], None]
"""Takes the output port, the time (ns) and the value."""


class LifeCycleError(UsageError):
    """A transition that is not possible in the present state."""


class ManagedCompound:
    """One compound and its state.

    An inactive unit keeps the state of its nodes, and gets no samples. A unit whose node raised an error is
    FAILED; the others continue.

    Parameters
    ----------
    compound : Compound
    around : Surroundings, optional
        Frames, robot and store that nodes use.
    listener : callable, optional
        Gets every output.

    """

    def __init__(
        self, compound: Compound, around: NodeEnvironment | None = None, listener: Listener | None = None
    ) -> None:
        self.compound, self.name = compound, compound.name
        self.state: State = "UNCONFIGURED"
        self.error: TransectError | None = None  # why it failed
        self._around, self._listener = around or NodeEnvironment(), listener
        self._flow: Flow | None = None
        self._wave: list[tuple[int, Any]] = []
        self._wave_ns = 0

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs that it uses, once it is configured."""
        return tuple(sorted(self._flow.graph.used_inputs())) if self._flow else ()

    def configure(self, settings: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        """Make its nodes, with parameters by node and name."""
        self._require("configure")
        graph = self.compound.graph(settings)
        self._flow = Flow(graph, self._around)
        for port, channel in graph.outputs.items():
            self._flow.tap(channel, self._forward(port))
        self.state = "CONFIGURED"

    def _forward(self, port: str) -> Callable[[int, Any], None]:
        def forward(t_ns: int, value: Any) -> None:
            if self._listener is not None:
                self._listener(port, t_ns, value)

        return forward

    def activate(self) -> None:
        """Accept samples from now on."""
        self._require("activate")
        self.state = "ACTIVE"

    def deactivate(self) -> None:
        """Accept no more samples; those that were pushed are processed."""
        self._require("deactivate")
        self.play()
        if self.state == "ACTIVE":
            self.state = "INACTIVE"

    def clean_up(self) -> None:
        """Discard all state; it can be configured again."""
        self._require("clean up")
        self._flow, self._wave, self.error = None, [], None
        self.state = "UNCONFIGURED"

    def push(self, name: str, t_ns: int, value: Any) -> bool:
        """Push a sample, in the order of time; return whether it was accepted, which needs an active unit."""
        if self.state != "ACTIVE" or self._flow is None:
            return False
        if name not in self._flow.graph.inputs:
            hint = did_you_mean(name, self._flow.graph.inputs)
            raise UsageError(f"{self.name} has no input {name!r}", hint=hint)
        if t_ns > self._wave_ns:
            self.play()
        self._wave_ns = max(t_ns, self._wave_ns)
        self._wave.append((self._flow.channels.index[name], value))
        return True

    def play(self) -> None:
        """Process the samples of the newest time; a node that raises makes the unit FAILED."""
        if self._flow is None or not self._wave:
            return
        wave, self._wave = self._wave, []
        with one_thread_per_library():
            self._flow.wave(self._wave_ns, wave)
        if self._flow.errors:
            self.state, self.error = "FAILED", self._flow.errors[0]

    def _require(self, transition: Transition) -> None:
        if self.state not in TRANSITIONS[transition]:
            allowed = " or ".join(TRANSITIONS[transition])
            what = f"{self.name} is {self.state}: to {transition} it, it must be {allowed}"
            raise LifeCycleError(what, why=str(self.error) if self.error else "")

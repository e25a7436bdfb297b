"""Two maps of places brought together, by the places that both have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from transect.errors import TransectError, UnsupportedError, UsageError
from transect.types.places import ODOMETRY, Observation, PlaceMap

from .mapper import Manner, Mapper
from .recognition import Recogniser


@dataclass(frozen=True)
class Kind:
    """What is needed to bring maps of one kind together.

    Attributes
    ----------
    recogniser : callable
        Makes a new one for a map.
    manner : callable
        Returns how such maps are made.
    separate : callable
        Takes two maps; returns what was seen in the second one so that it is not taken for the first one's.
    """

    recogniser: Callable[[PlaceMap], Recogniser]
    manner: Callable[[], Manner]
    separate: Callable[[PlaceMap, PlaceMap], Sequence[Observation]]


def _laser() -> Kind:
    from ..laser.recogniser import LaserRecogniser, separate
    from ..laser_places import manner_of

    return Kind(lambda places: LaserRecogniser(float(places.calibration["beam"])), manner_of, separate)


KINDS: Mapping[str, Callable[[], Kind]] = {"LaserSlam": _laser}


def merge_maps(first: PlaceMap, second: PlaceMap) -> PlaceMap:
    """Return one map of both, in the frame of the first; their sessions stay apart.

    Raises
    ------
    UsageError
        If they are of different kinds.
    TransectError
        If no place of the second one was found in the first one.
    """
    if first.kind != second.kind:
        raise UsageError(f"a map of {first.kind} and one of {second.kind} have no places in common")
    if first.kind not in KINDS:
        raise UnsupportedError(
            f"maps of {first.kind} cannot be merged",
            hint=f"go on with one: transect run {first.kind} ... --extend",
        )
    kind = KINDS[first.kind]()
    mapper = Mapper(first.kind, kind.recogniser(first), kind.manner(), first.calibration)
    mapper.extend(first)
    mapper.child = first.child
    _drive(mapper, replace(second, observations=kind.separate(first, second)))
    found = mapper.finish()
    assert found is not None
    if len(mapper.graph.firsts()) > 1:
        raise TransectError(
            "the two maps have no place in common that was known again",
            why=f"{len(mapper.judge.waiting)} places looked alike, and no two of them agree",
        )
    return found[1]


def _drive(mapper: Mapper, places: PlaceMap) -> None:
    """Let a mapper see the keyframes of a map as they were driven."""
    spread = {
        int(b): covariance
        for b, covariance, what in zip(
            places.edges.b, places.edges.covariance, places.edges.what, strict=True
        )
        if what == ODOMETRY
    }
    for k in range(len(places)):
        joined = k > 0 and places.session[k] == places.session[k - 1]
        seen = places.observations[k]
        mapper.step(
            int(places.t_ns[k]), places.poses[k], spread.get(k), lambda seen=seen: seen, joined=bool(joined)
        )


def count_shared(merged: PlaceMap, first: int) -> int:
    """Return how many loops of a merged map join the first so many sessions with the others."""
    sessions = merged.session[np.stack([merged.edges.a, merged.edges.b])]
    loops = np.array([what == "loop" for what in merged.edges.what], bool)
    return int((loops & ((sessions[0] < first) != (sessions[1] < first))).sum())

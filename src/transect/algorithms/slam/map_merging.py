"""Two maps of places brought together, by the places that both have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np

from transect.errors import TransectError, UnsupportedError, UsageError
from transect.geometry import se3
from transect.types.places import LOOP, ODOMETRY, Edges, Observation, PlaceMap

from .mapper import Mapper, MappingSettings, Reckoning
from .place_recognition import Recogniser


def _take_as_seen(first: PlaceMap, second: PlaceMap) -> Sequence[Observation]:
    """Return what was seen in a second map, where nothing in it is numbered."""
    return second.observations


@dataclass(frozen=True)
class Kind:
    """What is needed to bring maps of one kind together.

    Attributes
    ----------
    recogniser : callable
        Makes a new one for a map.
    manner : callable
        Returns how a map was made.
    separate : callable
        Takes two maps; returns what was seen in the second one so that it is not taken for the first one's.
    """

    recogniser: Callable[[PlaceMap], Recogniser]
    manner: Callable[[PlaceMap], MappingSettings]
    separate: Callable[[PlaceMap, PlaceMap], Sequence[Observation]] = _take_as_seen


def _laser() -> Kind:
    from .laser_recogniser import recogniser_of, separate
    from .mapping_settings import laser_mapping_settings

    return Kind(
        lambda places: recogniser_of(places.calibration), lambda places: laser_mapping_settings(), separate
    )


def _stereo() -> Kind:
    from .mapping_settings import stereo_keyframe_spacing, stereo_mapping_settings
    from .stereo_recogniser import StereoRecogniser

    def manner(places: PlaceMap) -> MappingSettings:
        return stereo_mapping_settings(
            stereo_keyframe_spacing(places.observations[0], float(places.calibration["baseline"]))
        )

    return Kind(lambda places: StereoRecogniser(), manner)


def _lidar() -> Kind:
    from .lidar_recogniser import LidarRecogniser
    from .mapping_settings import lidar_mapping_settings

    def recogniser(places: PlaceMap) -> LidarRecogniser:
        return LidarRecogniser(float(places.calibration["voxel"]))

    return Kind(recogniser, lambda places: lidar_mapping_settings())


KINDS: Mapping[str, Callable[[], Kind]] = {
    "LaserSlam": _laser,
    "LidarSlam": _lidar,
    "VisualSlamStereo": _stereo,
}


def merge_maps(first: PlaceMap, second: PlaceMap) -> PlaceMap:
    """Return one map of both, in the frame of the first; their sessions stay apart.

    Raises
    ------
    UsageError
        If they are of different kinds, or have keyframes of the same drive.
    TransectError
        If no place of the second one was found in the first one.
    """
    if first.kind != second.kind:
        raise UsageError(
            f"a map of {first.kind} and one of {second.kind} cannot be merged",
            why="each kind knows places by what its own sensor saw",
        )
    if first.kind not in KINDS:
        raise UnsupportedError(
            f"maps of {first.kind} cannot be merged", why=f"only those of {', '.join(KINDS)} can"
        )
    if shared := _count_same_keyframes(first, second):
        raise UsageError(
            f"the two maps have {shared} places of the same drive in common, which would count twice",
            why=f"the first has {len(first)} places, the second {len(second)}; the same scans are in both",
            hint="take the larger one as it is, or merge maps of two drives",
        )
    kind = KINDS[first.kind]()
    manner = kind.manner(first)
    mapper = Mapper(first.kind, kind.recogniser(first), manner, first.calibration)
    mapper.extend(first)
    mapper.child = first.child
    mapper.reckoning = Reckoning(replace(manner, distance=0.0, turn=0.0))  # every keyframe stays one
    _drive(mapper, replace(second, observations=kind.separate(first, second)))
    found = mapper.finish()
    assert found is not None
    if not count_shared(found[1], len(first)):
        alike = len(mapper.judge.waiting)
        raise TransectError(
            "the two maps have no place in common that was known again",
            why=f"{alike} looked alike, and no two agree" if alike else "none looked alike",
            hint="transect maps show draws each of them",
        )
    return _keep_anchor(found[1], second)


def _count_same_keyframes(first: PlaceMap, second: PlaceMap) -> int:
    """Return how many keyframes of two maps are of the same time and saw the same."""
    known = {
        (t_ns, _digest(seen)) for t_ns, seen in zip(first.t_ns.tolist(), first.observations, strict=True)
    }
    times = {t_ns for t_ns, _ in known}
    others = zip(second.t_ns.tolist(), second.observations, strict=True)
    return sum(t_ns in times and (t_ns, _digest(seen)) in known for t_ns, seen in others)


def _digest(seen: Observation) -> str:
    whole = sha256()
    for name in sorted(seen):
        whole.update(f"{name} {seen[name].dtype} {seen[name].shape}".encode())
        whole.update(np.ascontiguousarray(seen[name]).tobytes())
    return whole.hexdigest()


def _keep_anchor(merged: PlaceMap, second: PlaceMap) -> PlaceMap:
    """Return a merged map, anchored as the second one, whose keyframes are its last, if the first is not."""
    if merged.anchor is not None or second.anchor is None:
        return merged
    moves = second.poses @ se3.invert(merged.poses[-len(second) :])
    middle = moves[len(moves) // 2]
    T_second_merged = middle @ se3.exp(se3.log(se3.invert(middle) @ moves).mean(axis=0))
    return replace(merged, anchor=replace(second.anchor, T_crs_map=second.anchor.T_crs_map @ T_second_merged))


def _drive(mapper: Mapper, places: PlaceMap) -> None:
    """Let a mapper see the keyframes of a map as they were driven, and take over its loops."""
    edges, before = places.edges, len(mapper.graph)
    ends, pose = np.maximum(edges.a, edges.b), np.eye(4)
    for k, seen in enumerate(places.observations):
        here = np.flatnonzero(ends == k).tolist()
        led = next((n for n in here if edges.what[n] == ODOMETRY), None)
        pose = places.poses[k] if led is None else pose @ edges.T_a_b[led]
        spread = None if led is None else edges.covariance[led]
        mapper.step(int(places.t_ns[k]), pose, spread, lambda seen=seen: seen, joined=led is not None)
        _take_over(mapper, edges, [n for n in here if edges.what[n] == LOOP], before)


def _take_over(mapper: Mapper, edges: Edges, loops: Sequence[int], before: int) -> None:
    """Add loops of a map, whose keyframes come after so many others, unless they were found again."""
    known = {(edge.a, edge.b) for edge in mapper.graph.edges}
    for n in loops:
        a, b = before + int(edges.a[n]), before + int(edges.b[n])
        if (a, b) not in known:
            mapper.graph.join(a, b, edges.T_a_b[n], edges.covariance[n])
    if loops:
        mapper.graph.optimise()


def count_shared(merged: PlaceMap, first: int) -> int:
    """Return how many loops of a merged map join its first so many keyframes with the others."""
    loops = np.array([what == LOOP for what in merged.edges.what], bool)
    return int((loops & ((merged.edges.a < first) != (merged.edges.b < first))).sum())

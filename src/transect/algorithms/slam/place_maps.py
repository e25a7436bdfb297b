"""Merging of keyframe maps, summaries of them, and their points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.errors import TransectError, UnsupportedError, UsageError
from transect.geometry import se3
from transect.types.places import LOOP, ODOMETRY, Edges, Observation, PlaceMap

from .keyframe_odometry import KeyframeOdometry
from .mapper import Mapper
from .place_recognition import MappingSettings, Recogniser
from .pose_graph import REJECTED, PoseGraph

HALF_TURN_ABOUT_X = np.diag([1.0, -1.0, -1.0, 1.0])


@dataclass(frozen=True)
class MapKind:
    """How maps of one kind of SLAM are merged."""

    recogniser: Callable[[PlaceMap], Recogniser]  # an empty one
    settings: Callable[[PlaceMap], MappingSettings]
    # Observations of the second of two maps, with segment numbers that the first does not use.
    renumber: Callable[[PlaceMap, PlaceMap], Sequence[Observation]] = lambda first, second: (
        second.observations
    )


def _laser() -> MapKind:
    from .laser_recogniser import LASER_MAPPING, LaserRecogniser, renumber_segments

    return MapKind(
        lambda place_map: LaserRecogniser.from_calibration(place_map.calibration),
        lambda place_map: LASER_MAPPING,
        renumber_segments,
    )


def _stereo() -> MapKind:
    from .stereo_recogniser import StereoRecogniser, stereo_keyframe_distance, stereo_mapping_settings

    def settings(place_map: PlaceMap) -> MappingSettings:
        return stereo_mapping_settings(
            stereo_keyframe_distance(place_map.observations[0], float(place_map.calibration["baseline"]))
        )

    return MapKind(lambda place_map: StereoRecogniser(), settings)


def _lidar() -> MapKind:
    from .lidar_recogniser import LIDAR_MAPPING, LidarRecogniser

    def recogniser(place_map: PlaceMap) -> LidarRecogniser:
        return LidarRecogniser(float(place_map.calibration["voxel"]))

    return MapKind(recogniser, lambda place_map: LIDAR_MAPPING)


KINDS: Mapping[str, Callable[[], MapKind]] = {
    "LaserSlam": _laser,
    "LidarSlam": _lidar,
    "VisualSlamStereo": _stereo,
}


def merge_maps(first: PlaceMap, second: PlaceMap) -> PlaceMap:
    """Return one map of both in the frame of the first, with separate sessions.

    Raises
    ------
    UsageError
        If they are of different kinds, or have keyframes of the same drive.
    TransectError
        If no loop closure connects the two.
    """
    if first.kind != second.kind:
        raise UsageError(
            f"a map of {first.kind} and one of {second.kind} cannot be merged",
            why="each kind recognises places by data of its own sensor",
        )
    if first.kind not in KINDS:
        raise UnsupportedError(
            f"maps of {first.kind} cannot be merged", why=f"only those of {', '.join(KINDS)} can"
        )
    if shared := _count_same_keyframes(first, second):
        raise UsageError(
            f"the two maps have {shared} keyframes of the same drive in common, which would count twice",
            why=f"the first has {len(first)} keyframes, the second {len(second)}; the same scans are in both",
            hint="use the larger one, or merge maps of two drives",
        )
    kind = KINDS[first.kind]()
    settings = kind.settings(first)
    mapper = Mapper(first.kind, kind.recogniser(first), settings, first.calibration)
    mapper.extend(first)
    mapper.child = first.child
    # No keyframe of the second map is dropped.
    mapper.odometry = KeyframeOdometry(replace(settings, keyframe_distance_m=0.0, keyframe_angle_rad=0.0))
    _replay(mapper, replace(second, observations=kind.renumber(first, second)))
    result = mapper.finish()
    assert result is not None
    if not count_shared(result[1], len(first)):
        pending = len(mapper.loop_selector.pending)
        raise TransectError(
            "no place of the second map was recognised in the first",
            why=f"{pending} loop closures were found, and no two of them are consistent"
            if pending
            else "no loop closures",
            hint="transect maps show draws each of them",
        )
    return _keep_anchor(result[1], second)


def _count_same_keyframes(first: PlaceMap, second: PlaceMap) -> int:
    """Return how many keyframes of two maps have the same time and observation."""
    known = {
        (t_ns, _digest(seen)) for t_ns, seen in zip(first.t_ns.tolist(), first.observations, strict=True)
    }
    times = {t_ns for t_ns, _ in known}
    others = zip(second.t_ns.tolist(), second.observations, strict=True)
    return sum(t_ns in times and (t_ns, _digest(seen)) in known for t_ns, seen in others)


def _digest(seen: Observation) -> str:
    digest = sha256()
    for name in sorted(seen):
        digest.update(f"{name} {seen[name].dtype} {seen[name].shape}".encode())
        digest.update(np.ascontiguousarray(seen[name]).tobytes())
    return digest.hexdigest()


def _keep_anchor(merged: PlaceMap, second: PlaceMap) -> PlaceMap:
    """Return a merged map with the anchor of the second one if the first has none."""
    if merged.anchor is not None or second.anchor is None:
        return merged
    # The keyframes of the second map are the last ones.
    T_second_merged_k = second.poses @ se3.invert(merged.poses[-len(second) :])
    middle = T_second_merged_k[len(T_second_merged_k) // 2]
    T_second_merged = middle @ se3.exp(se3.log(se3.invert(middle) @ T_second_merged_k).mean(axis=0))
    return replace(merged, anchor=replace(second.anchor, T_crs_map=second.anchor.T_crs_map @ T_second_merged))


def _replay(mapper: Mapper, place_map: PlaceMap) -> None:
    """Pass the keyframes of a map to a mapper as they were driven, and import its loops."""
    edges, offset = place_map.edges, len(mapper.graph)
    later_end, pose = np.maximum(edges.a, edges.b), np.eye(4)
    for k, seen in enumerate(place_map.observations):
        incoming = np.flatnonzero(later_end == k).tolist()
        odometry_edge = next((n for n in incoming if edges.what[n] == ODOMETRY), None)
        pose = place_map.poses[k] if odometry_edge is None else pose @ edges.T_a_b[odometry_edge]
        covariance = None if odometry_edge is None else edges.covariance[odometry_edge]
        mapper.step(
            int(place_map.t_ns[k]),
            pose,
            covariance,
            lambda seen=seen: seen,
            connected=odometry_edge is not None,
        )
        _import_loops(mapper, edges, [n for n in incoming if edges.what[n] == LOOP], offset)


def _import_loops(mapper: Mapper, edges: Edges, loops: Sequence[int], offset: int) -> None:
    """Add loops of a map, whose keyframes start at `offset`, unless they were found again."""
    known = {(edge.a, edge.b) for edge in mapper.graph.edges}
    for n in loops:
        a, b = offset + int(edges.a[n]), offset + int(edges.b[n])
        if (a, b) not in known:
            mapper.graph.add_loop(a, b, edges.T_a_b[n], edges.covariance[n])
    if loops:
        mapper.graph.optimise()


def count_shared(merged: PlaceMap, first: int) -> int:
    """Return how many loops of a merged map connect its first keyframes with the others."""
    loops = np.array([what == LOOP for what in merged.edges.what], bool)
    return int((loops & ((merged.edges.a < first) != (merged.edges.b < first))).sum())


def describe_map(place_map: PlaceMap) -> dict[str, Any]:
    """Return the contents of a map as plain values, by name."""
    sizes = [sum(values.nbytes for values in seen.values()) for seen in place_map.observations]
    return {
        "kind": place_map.kind,
        "frame": place_map.frame,
        "anchor": place_map.anchor.crs if place_map.anchor else "none",
        "keyframes": len(place_map),
        "length [m]": round(place_map.length, 1),
        "sessions": len(set(place_map.session.tolist())),
        "components": len(PoseGraph.from_map(place_map).roots()),
        "loop closures": sum(what == LOOP for what in place_map.edges.what),
        "rejected loop closures": sum(what == REJECTED for what in place_map.edges.what),
        "size [MB]": round(sum(sizes) / 1e6, 2),
        "size per 100 m [MB]": round(sum(sizes) / 1e4 / max(place_map.length, 1.0), 2),
    }


def format_loop_count(count: int) -> str:
    """Return a number of loop closures as text."""
    return f"{count} loop closure{'' if count == 1 else 's'}"


def is_z_down(place_map: PlaceMap) -> bool:
    """Return whether z of a map points down, as z of its body does; an anchored map has z up."""
    return place_map.anchor is None and bool(place_map.calibration.get("z_down", False))


def flip_z_up(place_map: PlaceMap) -> PlaceMap:
    """Return a map with z up, rotated by half a turn about x if necessary."""
    return (
        replace(place_map, poses=HALF_TURN_ABOUT_X @ place_map.poses) if is_z_down(place_map) else place_map
    )


def map_points(place_map: PlaceMap) -> Floats:
    """Return the points (n, 3) of all keyframes; those of a planar laser are in its plane."""
    clouds = [np.zeros((0, 3))]
    for T_map_body, seen in zip(place_map.poses, place_map.observations, strict=True):
        points = np.asarray(seen.get("points", np.zeros((0, 2))), np.float64)
        if points.ndim == 2 and points.shape[1] in (2, 3):
            clouds.append(points @ T_map_body[:3, : points.shape[1]].T + T_map_body[:3, 3])
    return np.concatenate(clouds)

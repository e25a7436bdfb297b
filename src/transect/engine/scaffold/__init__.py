"""First versions of nodes and compounds from their descriptions: typed stubs and a test, to be filled in.

Code from the description is regenerated each time; hand-written code is never changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from transect import types
from transect.base.files import write_text
from transect.errors import UsageError, did_you_mean

from ..description import CompoundText, NodeText
from ..reading import read_description, text_of
from . import compounds, nodes
from .source import refuse, snake_case

__all__ = ["Scaffold", "new_compound", "new_node", "sample_value"]


@dataclass
class Scaffold:
    """What was made of a description."""

    # What it was made of, or its copy in our form; and the file to run next
    description: Path
    test: Path
    # New files, partly regenerated files, and unchanged files
    written: list[Path] = field(default_factory=list[Path])
    regenerated: list[Path] = field(default_factory=list[Path])
    kept: list[Path] = field(default_factory=list[Path])
    notes: list[str] = field(default_factory=list[str])  # what a person should know

    def once(self, path: Path, make: Callable[[], str]) -> None:
        """Write a file unless it is there."""
        if path.exists():
            self.kept.append(path)
        else:
            write_text(path, make())
            self.written.append(path)

    def renew(self, path: Path, text: str) -> None:
        """Write a file again, if that changes it."""
        if path.read_text(encoding="utf-8") == text:
            self.kept.append(path)
        else:
            write_text(path, text)
            self.regenerated.append(path)


def new_node(file: Path | str, folder: Path | str | None = None) -> Scaffold:
    """Write the interface that a file describes, stubs of its implementations, and a test.

    Parameters
    ----------
    file : path
        Description of a node.
    folder : path, optional
        Where to write; beside the description if not given. In a file that is there already only the
        interface is regenerated, and stubs of new implementations are added.
    """
    text = read_description(file)
    if not isinstance(text, NodeText):
        raise UsageError(f"{file} describes a compound", hint=f"transect new compound {file}")
    refuse(str(file), nodes.check_node(text))
    place = Path(folder) if folder is not None else Path(file).parent
    name = snake_case(text.name)
    module, made = place / f"{name}.py", Scaffold(Path(file), place / f"test_{name}.py")
    if module.exists():
        made.renew(module, nodes.renew_module(text_of(module), text, str(module)))
    else:
        made.once(module, lambda: nodes.write_module(text))
    made.once(made.test, lambda: nodes.write_test(text))
    return made


def new_compound(file: Path | str, folder: Path | str | None = None) -> Scaffold:
    """Write a compound in our form, stubs of its controllers, and a test that reads and checks it.

    Parameters
    ----------
    file : path
        Description of a compound, in any form.
    folder : path, optional
        Where to write; beside the description if not given. Files that are there are left as they are.
    """
    text = read_description(file)
    if not isinstance(text, CompoundText):
        raise UsageError(f"{file} describes a node", hint=f"transect new node {file}")
    refuse(str(file), compounds.check_compound(text))
    place = Path(folder) if folder is not None else Path(file).parent
    source = text_of(file)
    ours = compounds.is_ours(source, str(file))
    there = ours and place.resolve() == Path(file).resolve().parent
    made = Scaffold(
        Path(file) if there else place / f"{text.name}.yaml", place / f"test_{snake_case(text.name)}.py"
    )
    made.once(made.description, lambda: source if ours else compounds.write_yaml(text, made.notes))
    if not ours and made.description.exists() and made.description.samefile(file):
        made.notes.append(f"{file} stays in its form; -o with another folder writes it in ours")
    for controller, stub in compounds.write_controllers(text, made.notes).items():
        made.once(place / controller, lambda stub=stub: stub)
    made.once(made.test, lambda: compounds.write_test(text.name, made.description))
    return made


_IDENTITY_QUATERNION = (0.0, 0.0, 0.0, 1.0)
_NORTH_UP = (0.5, 0.0, 0.0, 0.0, -0.5, 0.0)


def _gray() -> types.Image:
    return types.Image(np.zeros((4, 6), np.uint8))


def _match(axes: int, kind: Callable[[Any, Any], Any]) -> Any:
    points = np.zeros((5, axes), np.float32 if axes == 2 else np.float64)
    return kind(points, points)


def _places() -> types.PlaceMap:
    still = np.tile(np.eye(4), (2, 1, 1))
    return types.PlaceMap(
        "LaserSlam", np.arange(2), still, np.zeros((2, 6, 6)), np.zeros(2, np.int64), observations=({}, {})
    )


_SAMPLES: dict[type, Callable[[], Any]] = {
    bool: lambda: True,
    int: lambda: 1,
    float: lambda: 1.0,
    str: lambda: "text",
    object: lambda: "anything",
    np.ndarray: lambda: np.zeros(3),
    types.CorrespondenceMaps2D: lambda: types.CorrespondenceMaps2D((_match(2, types.Correspondences2D),)),
    types.CorrespondenceMaps3D: lambda: types.CorrespondenceMaps3D((_match(3, types.Correspondences3D),)),
    types.Correspondences2D: lambda: _match(2, types.Correspondences2D),
    types.Correspondences3D: lambda: _match(3, types.Correspondences3D),
    types.Features2D: lambda: types.Features2D(np.zeros((5, 2), np.float32)),
    types.Features3D: lambda: types.Features3D(np.zeros((5, 3))),
    types.Octree: lambda: types.Octree(np.zeros(3), 1.0, 1, np.zeros((1, 3), np.int64), np.ones(1, np.int64)),
    types.StereoPair: lambda: types.StereoPair(_gray(), _gray()),
    types.Anchor: lambda: types.Anchor("EPSG:32633", np.eye(4)),
    types.Edges: types.Edges.none,
    types.CameraModel: lambda: types.CameraModel("camera", 6, 4, np.eye(3)),
    types.DepthMap: lambda: types.DepthMap(np.ones((4, 6), np.float32)),
    types.GridMap: lambda: types.GridMap({"elevation": np.zeros((3, 4))}, _NORTH_UP),
    types.Image: _gray,
    types.Imu: lambda: types.Imu(np.array([0.0, 0.0, 9.81]), np.zeros(3)),
    types.JointState: lambda: types.JointState(np.zeros(3)),
    types.LaserScan: lambda: types.LaserScan(np.ones(5), -0.2, 0.1),
    types.NavFix: lambda: types.NavFix(0.0, 0.0, 0.0),
    types.Odometry: lambda: types.Odometry(np.zeros(3), np.array(_IDENTITY_QUATERNION)),
    types.PlaceMap: _places,
    types.PointCloud: lambda: types.PointCloud(np.zeros((5, 3))),
    types.Pose: lambda: types.Pose(np.zeros(3), np.array(_IDENTITY_QUATERNION)),
    types.Provenance: lambda: types.Provenance(),
    types.RadarRange: lambda: types.RadarRange(1.0, 0.0, 1.0),
    types.RadarSpectrum: lambda: types.RadarSpectrum(np.zeros(8), 0.0, 0.1, 0.0),
    types.Record: lambda: types.Record(),
    types.RigidBodyState: lambda: types.RigidBodyState(np.zeros(3), np.array(_IDENTITY_QUATERNION)),
    types.SourceFile: lambda: types.SourceFile("file", 0, "0" * 64),
    types.Trajectory: lambda: types.Trajectory(np.arange(2), np.zeros((2, 3))),
    types.Transform: lambda: types.Transform("target", "source", np.eye(4)),
    types.Twist: lambda: types.Twist(np.zeros(3), np.zeros(3)),
    types.Verdict: lambda: types.Verdict("sensor", "stream", 0, 1, state="OK", raw="OK", score=1.0),
    types.WheelState: lambda: types.WheelState(np.zeros(4)),
    types.Wrench: lambda: types.Wrench(np.zeros(3), np.zeros(3)),
}


def sample_value(kind: type) -> Any:
    """Return a small, valid value of a type that ports carry, to call a node with."""
    if kind not in _SAMPLES:
        known = [known.__name__ for known in _SAMPLES]
        name = kind.__name__
        raise UsageError(f"there is no sample value of type {name}", hint=did_you_mean(name, known))
    return _SAMPLES[kind]()

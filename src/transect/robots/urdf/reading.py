"""Parsing URDF: errors include the line; missing meshes are reported and not fatal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np

from transect.base.arrays import Floats
from transect.base.xml import load_xml
from transect.errors import ParseError, UnsupportedError, did_you_mean
from transect.recording import Loss

from .model import (
    DRIVEN,
    Joint,
    JointLimit,
    JointType,
    Mimic,
    Origin,
    Urdf,
    UrdfInertial,
    UrdfLink,
    UrdfShape,
    Vector,
)

MAX_URDF_BYTES = 64 << 20

_SIZES = {
    "box": (("size", 3),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
    "sphere": (("radius", 1),),
}
JOINT_TYPES: dict[str, JointType] = {kind: kind for kind in get_args(JointType)}
_INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def parse(content: bytes, name: str, folder: Path | None = None) -> Urdf:
    """Read a URDF.

    Parameters
    ----------
    name : str
        Of the file, for errors.
    folder : Path, optional
        Folder of the file, to find meshes; None to ignore them.

    Raises
    ------
    ParseError
        If it is not a URDF or its links are not one tree; with the line.
    UnsupportedError
        If it is a xacro file.
    """
    root = _root(content, name)
    reader = _UrdfReader(name)
    links = tuple(reader.link(element) for element in root.iterfind("link"))
    joints = tuple(reader.joint(element) for element in root.iterfind("joint"))
    _refuse_bad_tree(links, joints, name)
    urdf = Urdf(root.get("name") or Path(name).stem, links, joints)
    return urdf if folder is None else _with_meshes(urdf, name, folder)


# XML


def _root(content: bytes, name: str) -> Any:
    root = load_xml(content, name, MAX_URDF_BYTES)
    if root.tag != "robot":
        raise ParseError(f"{name} is no URDF", where=f"{name}:1", why=f"it begins with <{root.tag}>")
    _refuse_xacro(root, name)
    return root


def _refuse_xacro(root: Any, name: str) -> None:
    """Raise for macros, which only xacro can expand."""
    for element in root.iter("{*}*"):
        tag = str(element.tag)
        computed = [value for value in element.attrib.values() if "${" in value or "$(" in value]
        if "xacro}" in tag or computed:
            seen = computed[0] if computed else f"<xacro:{tag.rpartition('}')[2]}>"
            plain = name.removesuffix(".xacro").removesuffix(".urdf")
            raise UnsupportedError(
                f"{name} is a xacro file, which is a program that writes a URDF",
                where=f"{name}:{element.sourceline}",
                why=f"{seen} has to be expanded first",
                hint=f"xacro {name} > {plain}.urdf",
            )


class _UrdfReader:
    """Parser of the elements of one file."""

    def __init__(self, file: str) -> None:
        self.file = file

    def error(self, element: Any, what: str, why: str = "", hint: str = "") -> ParseError:
        return ParseError(what, where=f"{self.file}:{element.sourceline}", why=why, hint=hint)

    def text(self, element: Any, attribute: str) -> str:
        value = str(element.get(attribute) or "")
        if not value:
            raise self.error(element, f"<{element.tag}> has no {attribute}")
        return value

    def numbers(
        self, element: Any, attribute: str, count: int, default: Sequence[float] | None
    ) -> list[float]:
        """Return `count` finite numbers of an attribute, which is required if `default` is None."""
        text = element.get(attribute)
        if text is None and default is not None:
            return list(default)
        try:
            values = [float(word) for word in (text or "").split()]
        except ValueError:
            values = []
        if len(values) != count or not np.isfinite(values).all():
            raise self.error(
                element,
                f"<{element.tag}> needs {attribute}, {count} finite number{'s' * (count > 1)}",
                why=f"it is {text!r}" if text is not None else "it is not there",
            )
        return values

    def number(self, element: Any, attribute: str, default: float | None = None) -> float:
        return self.numbers(element, attribute, 1, None if default is None else [default])[0]

    def vector(self, element: Any, attribute: str, default: Vector) -> Vector:
        x, y, z = self.numbers(element, attribute, 3, default)
        return x, y, z

    def origin(self, parent: Any) -> Origin:
        element = parent.find("origin")
        if element is None:
            return Origin()
        zero = (0.0, 0.0, 0.0)
        return Origin(self.vector(element, "xyz", zero), self.vector(element, "rpy", zero))

    # Links

    def link(self, element: Any) -> UrdfLink:
        uses = [(use, part) for use in ("visual", "collision") for part in element.iterfind(use)]
        return UrdfLink(
            self.text(element, "name"),
            self.inertial(element.find("inertial")),
            tuple(self.shape(use, part) for use, part in uses),
            element.sourceline,
        )

    def inertial(self, element: Any) -> UrdfInertial | None:
        if element is None:
            return None
        mass, inertia = element.find("mass"), element.find("inertia")
        if mass is None or inertia is None:
            raise self.error(element, "<inertial> needs <mass> and <inertia>")
        ixx, ixy, ixz, iyy, iyz, izz = (self.number(inertia, key) for key in _INERTIA)
        return UrdfInertial(self.number(mass, "value"), (ixx, ixy, ixz, iyy, iyz, izz), self.origin(element))

    def shape(self, use: str, element: Any) -> UrdfShape:
        geometry = element.find("geometry")
        body = next(geometry.iterchildren("{*}*"), None) if geometry is not None else None
        kind = "" if body is None else str(body.tag)
        if body is None or (kind not in _SIZES and kind != "mesh"):
            raise self.error(
                element,
                f"<{use}> has no geometry that is known",
                why=f"it is <{kind}>" if kind else "",
                hint=f"known are mesh, {', '.join(_SIZES)}",
            )
        mesh, sizes = "", [v for key, n in _SIZES.get(kind, ()) for v in self.numbers(body, key, n, None)]
        if kind == "mesh":
            mesh, sizes = self.text(body, "filename"), self.numbers(body, "scale", 3, (1.0, 1.0, 1.0))
        name = str(element.get("name") or "")
        return UrdfShape(use, kind, tuple(sizes), self.origin(element), name, mesh, line=body.sourceline)

    # Joints

    def joint(self, element: Any) -> Joint:
        name, kind = self.text(element, "name"), self.text(element, "type")
        if kind not in JOINT_TYPES:
            raise self.error(
                element,
                f"joint {name} has an unknown type {kind!r}",
                hint=did_you_mean(kind, JOINT_TYPES),
            )
        parent, child = element.find("parent"), element.find("child")
        if parent is None or child is None:
            raise self.error(element, f"joint {name} needs <parent> and <child>")
        return Joint(
            name,
            JOINT_TYPES[kind],
            self.text(parent, "link"),
            self.text(child, "link"),
            self.origin(element),
            self.axis(element, name, kind),
            self.limit(element, name, kind),
            self.mimic(element),
            element.sourceline,
        )

    def axis(self, joint: Any, name: str, kind: str) -> Vector:
        element = joint.find("axis")
        axis = (1.0, 0.0, 0.0) if element is None else self.vector(element, "xyz", (1.0, 0.0, 0.0))
        length = float(np.linalg.norm(axis))
        if length == 0 and kind in DRIVEN:
            raise self.error(element, f"the axis of joint {name} has no direction", why="it is 0 0 0")
        if length == 0 or abs(length - 1) < 1e-15:
            return axis
        return axis[0] / length, axis[1] / length, axis[2] / length

    def limit(self, joint: Any, name: str, kind: str) -> JointLimit | None:
        element = joint.find("limit")
        if element is None:
            if kind in ("revolute", "prismatic"):
                hint = "write continuous if it turns without end" if kind == "revolute" else ""
                raise self.error(joint, f"joint {name} has no <limit>, which a {kind} joint needs", hint=hint)
            return None
        lower, upper = self.number(element, "lower", 0.0), self.number(element, "upper", 0.0)
        if lower > upper:
            raise self.error(
                element, f"joint {name} has its limits the wrong way round", why=f"{lower} > {upper}"
            )
        unknown = float("nan")
        effort, velocity = (
            self.number(element, key) if element.get(key) is not None else unknown
            for key in ("effort", "velocity")
        )
        return JointLimit(lower, upper, effort, velocity)

    def mimic(self, joint: Any) -> Mimic | None:
        element = joint.find("mimic")
        if element is None:
            return None
        return Mimic(
            self.text(element, "joint"),
            self.number(element, "multiplier", 1.0),
            self.number(element, "offset", 0.0),
        )


# The tree


def _refuse_bad_tree(links: Sequence[UrdfLink], joints: Sequence[Joint], file: str) -> None:
    if not links:
        raise ParseError(f"{file} has no links", where=file, why="a robot has at least one")
    _refuse_twice("link", links, file)
    _refuse_twice("joint", joints, file)
    known = [link.name for link in links]
    above: dict[str, Joint] = {}
    for joint in joints:
        for link in (joint.parent, joint.child):
            if link not in known:
                raise ParseError(
                    f"joint {joint.name} names a link {link!r} that is not there",
                    where=f"{file}:{joint.line}",
                    hint=did_you_mean(link, known),
                )
        if joint.child in above:
            first = above[joint.child]
            raise ParseError(
                f"link {joint.child} has two parents, {first.parent} and {joint.parent}",
                where=f"{file}:{joint.line}",
                why=f"joint {first.name} in line {first.line} ties it already",
            )
        above[joint.child] = joint
    _refuse_loops(above, file)
    roots = [link for link in links if link.name not in above]
    if len(roots) > 1:
        raise ParseError(
            f"the links of {file} are {len(roots)} trees, not one",
            where=f"{file}:{roots[1].line}",
            why=f"{', '.join(link.name for link in roots)} have no parent",
        )
    _refuse_bad_mimics(joints, file)


def _refuse_twice(kind: str, parts: Sequence[UrdfLink] | Sequence[Joint], file: str) -> None:
    lines: dict[str, int | None] = {}
    for part in parts:
        if part.name in lines:
            raise ParseError(
                f"there are two {kind}s named {part.name}",
                where=f"{file}:{part.line}",
                why=f"the first is in line {lines[part.name]}",
            )
        lines[part.name] = part.line


def _refuse_loops(above: dict[str, Joint], file: str) -> None:
    good: set[str] = set()
    for start in above:
        path: list[str] = []
        link = start
        while link in above and link not in good:
            path.append(link)
            link = above[link].parent
            if link in path:
                loop = [*path[path.index(link) :], link]
                raise ParseError(
                    "the joints form a loop",
                    where=f"{file}:{above[link].line}",
                    why=" -> ".join(reversed(loop)),
                )
        good.update(path)


def _refuse_bad_mimics(joints: Sequence[Joint], file: str) -> None:
    by_name = {joint.name: joint for joint in joints}
    for joint in joints:
        seen, at = [joint.name], joint
        while at.mimic is not None:
            leader = by_name.get(at.mimic.joint)
            if leader is None or leader.type not in DRIVEN or leader.name in seen:
                raise ParseError(
                    f"joint {at.name} mimics {at.mimic.joint!r}, which it cannot",
                    where=f"{file}:{at.line}",
                    why="there is no such joint"
                    if leader is None
                    else f"that joint is {leader.type}"
                    if leader.type not in DRIVEN
                    else f"it goes round: {' -> '.join([*seen, leader.name])}",
                )
            seen.append(leader.name)
            at = leader


# Meshes


def _with_meshes(urdf: Urdf, file: str, folder: Path) -> Urdf:
    """Return the robot with the files of its meshes; missing ones are losses."""
    losses: list[Loss] = []

    def found(shape: UrdfShape) -> UrdfShape:
        if shape.kind != "mesh":
            return shape
        path = _mesh_file(shape.mesh, folder)
        if path is None:
            losses.append(Loss(file, f"the mesh {shape.mesh} is not there", line=shape.line))
        return replace(shape, file=path)

    links = tuple(replace(link, shapes=tuple(found(shape) for shape in link.shapes)) for link in urdf.links)
    return replace(urdf, links=links, losses=tuple(losses))


def _mesh_file(mesh: str, folder: Path) -> Path | None:
    """Find a mesh: beside the file, or for ``package://name/rest`` in the folders above it.

    The folder of a package may have another name, for example after a download: `rest` is searched as well.
    """
    if mesh.startswith("package://"):
        package, _, rest = mesh.removeprefix("package://").partition("/")
        folders = (folder, *folder.parents)
        paths = [path for top in folders for path in (top / package / rest, top / rest)]
    elif "://" in mesh and not mesh.startswith("file://"):
        return None
    else:
        paths = [folder / mesh.removeprefix("file://")]
    return next((path for path in paths if path.is_file()), None)


MAX_MESH_BYTES = 200_000_000
_STL_HEADER_BYTES = 80
_FACET = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def read_mesh(path: Path) -> Floats:
    """Return the triangles (n, 3, 3) of a mesh, in its own units.

    Raises
    ------
    UnsupportedError
        For unknown formats and files that are too large.
    ParseError
        If the content does not match the format.
    """
    readers = {".stl": _read_stl, ".obj": _read_obj}
    if path.suffix.lower() not in readers:
        raise UnsupportedError(f"the mesh {path.name} cannot be read", hint=f"known are {', '.join(readers)}")
    if path.stat().st_size > MAX_MESH_BYTES:
        raise UnsupportedError(f"the mesh {path.name} has more than {MAX_MESH_BYTES // 1_000_000} MB")
    try:
        triangles = readers[path.suffix.lower()](path.read_bytes())
    except (ValueError, IndexError) as error:
        raise ParseError(f"{path.name} is no mesh", where=str(path), why=str(error)) from error
    return triangles[np.isfinite(triangles).all(axis=(1, 2))]


def _read_stl(content: bytes) -> Floats:
    """Read STL; binary files are recognised by length, since their header may also start with `solid`."""
    body = content[_STL_HEADER_BYTES + 4 :]
    count = int.from_bytes(content[_STL_HEADER_BYTES : _STL_HEADER_BYTES + 4], "little")
    if len(content) >= _STL_HEADER_BYTES + 4 and len(body) >= count * _FACET.itemsize and count:
        return np.frombuffer(body, _FACET, count)["corners"].astype(np.float64)
    words = content.split()
    at = [k for k, word in enumerate(words) if word == b"vertex"]
    if not at or len(at) % 3:
        raise ValueError(f"it has {len(at)} corners")
    return np.array([words[k + 1 : k + 4] for k in at], np.float64).reshape(-1, 3, 3)


def _read_obj(content: bytes) -> Floats:
    """Read the corners and faces of OBJ; larger faces are split into triangles."""
    lines = [line.split() for line in content.splitlines()]
    corners = np.array([line[1:4] for line in lines if line[:1] == [b"v"]], np.float64).reshape(-1, 3)
    triangles: list[tuple[int, int, int]] = []
    for line in lines:
        if line[:1] == [b"f"]:
            numbers = [int(word.partition(b"/")[0]) for word in line[1:]]
            face = [n - 1 if n > 0 else len(corners) + n for n in numbers]
            triangles += [(face[0], a, b) for a, b in pairwise(face[1:])]
    return corners[np.array(triangles, np.int64).reshape(-1, 3)]

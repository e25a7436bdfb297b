"""Writing URDF: numbers with all their digits, so that reading gives back what was written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from .model import Joint, Link, Origin, Shape, Urdf

_SIZES = {
    "box": ("size",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "sphere": ("radius",),
}
_INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def text_of(urdf: Urdf) -> str:
    """Return a robot as the text of a URDF file."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    root = etree.Element("robot", name=urdf.name)
    for note in urdf.notes:
        # XML ends a comment at two hyphens.
        root.append(etree.Comment(f" {note.replace('--', '- -')} "))
    for link in urdf.links:
        _add_link(root, link)
    for joint in urdf.joints:
        _add_joint(root, joint)
    etree.indent(root, "  ")
    return '<?xml version="1.0"?>\n' + etree.tostring(root, encoding="unicode") + "\n"


def _add(parent: Any, tag: str, attributes: Mapping[str, str]) -> Any:
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    return etree.SubElement(parent, tag, {key: text for key, text in attributes.items() if text})


def _numbers(values: Iterable[float]) -> str:
    """Return numbers with the fewest digits that read back equal; whole ones without a point."""
    return " ".join(
        str(int(v)) if v.is_integer() and abs(v) < 1e15 else repr(v) for v in (float(v) + 0.0 for v in values)
    )


def _add_origin(parent: Any, origin: Origin) -> None:
    if origin != Origin():
        _add(parent, "origin", {"xyz": _numbers(origin.xyz), "rpy": _numbers(origin.rpy)})


def _add_link(root: Any, link: Link) -> None:
    element = _add(root, "link", {"name": link.name})
    if link.inertial is not None:
        inertial = _add(element, "inertial", {})
        _add_origin(inertial, link.inertial.origin)
        _add(inertial, "mass", {"value": _numbers([link.inertial.mass])})
        moments = zip(_INERTIA, link.inertial.inertia, strict=True)
        _add(inertial, "inertia", {key: _numbers([value]) for key, value in moments})
    for shape in link.shapes:
        _add_shape(element, shape)


def _add_shape(link: Any, shape: Shape) -> None:
    element = _add(link, shape.use, {"name": shape.name})
    _add_origin(element, shape.origin)
    geometry = _add(element, "geometry", {})
    if shape.kind == "mesh":
        scale = _numbers(shape.size) if shape.size != (1.0, 1.0, 1.0) else ""
        _add(geometry, "mesh", {"filename": shape.mesh, "scale": scale})
    elif shape.kind == "box":
        _add(geometry, "box", {"size": _numbers(shape.size)})
    else:
        sizes = zip(_SIZES[shape.kind], shape.size, strict=True)
        _add(geometry, shape.kind, {key: _numbers([value]) for key, value in sizes})


def _add_joint(root: Any, joint: Joint) -> None:
    element = _add(root, "joint", {"name": joint.name, "type": joint.type})
    _add_origin(element, joint.origin)
    _add(element, "parent", {"link": joint.parent})
    _add(element, "child", {"link": joint.child})
    if joint.axis != (1.0, 0.0, 0.0):
        _add(element, "axis", {"xyz": _numbers(joint.axis)})
    if joint.limit is not None:
        limit = joint.limit
        known = {
            "lower": limit.lower,
            "upper": limit.upper,
            "effort": limit.effort,
            "velocity": limit.velocity,
        }
        _add(element, "limit", {key: _numbers([v]) for key, v in known.items() if not math.isnan(v)})
    if joint.mimic is not None:
        mimic = joint.mimic
        numbers = {"multiplier": _numbers([mimic.multiplier]), "offset": _numbers([mimic.offset])}
        _add(element, "mimic", {"joint": mimic.joint, **numbers})

"""Write docs/types.md: the attributes of all types that nodes get and give, from their classes."""

from __future__ import annotations

import dataclasses
import inspect
import re
import runpy
from pathlib import Path
from typing import Any

from transect import types

PAGE = Path(__file__).resolve().parent.parent / "docs" / "types.md"
FIRST = "## Motion"
"""Above this line the page is written by hand."""
GROUPS = (
    ("Motion", ("Pose", "Odometry", "Twist", "RigidBodyState", "Trajectory", "Transform")),
    ("Sensors", (
        "Imu", "NavFix", "WheelState", "JointState", "Wrench", "LaserScan", "RadarSpectrum", "RadarRange",
    )),
    ("Images and clouds", (
        "Image", "DepthMap", "StereoPair", "CameraModel", "PointCloud", "Octree", "GridMap",
    )),
    ("Features", (
        "Features2D", "Features3D", "Correspondences2D", "Correspondences3D", "CorrespondenceMaps2D",
        "CorrespondenceMaps3D",
    )),
    ("Maps of places", ("PlaceMap", "Edges", "Anchor")),
    ("Other", ("Record", "Verdict")),
)  # fmt: skip
COMMON = ("t_ns", "frame", "child")
"""Attributes that the page explains once, above the tables."""
attributes_of = runpy.run_path(str(Path(__file__).with_name("fields.py")))["attributes_of"]


def page() -> str:
    """Return the page."""
    parts = [PAGE.read_text("utf-8").partition(FIRST)[0].rstrip()]
    for title, names in GROUPS:
        parts.append(f"## {title}")
        for name in names:
            kind = getattr(types, name)
            parts += [f"### {name}", summary_of(kind), table_of(kind)]
    return "\n\n".join(parts) + "\n"


def summary_of(kind: type) -> str:
    """Return the docstring of a class above its attributes."""
    text = (inspect.getdoc(kind) or "").partition("Attributes\n---")[0].strip()
    return text.replace("``", "`")


def table_of(kind: type) -> str:
    """Return attributes and properties of a class: type and shape, unit, columns, meaning."""
    described = attributes_of(kind)
    rows: list[tuple[str, ...]] = []
    for field in dataclasses.fields(kind):
        if field.name in COMMON and field.name not in described:
            continue
        annotation, meaning = described[field.name]
        shape = re.sub(r"Floats|Ints|Mask|Errors|NDArray\[.*?\]", "array", annotation).replace(" | ", " or ")
        columns = " ".join(f"`{name}`" for name in field.metadata.get("columns", ()))
        rows.append((f"`{field.name}`", shape, field.metadata.get("unit", ""), columns, meaning))
    rows += [(f"`{name}`", "computed", "", "", text) for name, text in _properties(kind)]
    common = [f.name for f in dataclasses.fields(kind) if f.name in COMMON and f.name not in described]
    headings = ("attribute", "type, shape", "unit", "columns", "meaning")
    used = [k for k in range(len(headings)) if any(row[k] for row in rows)]
    lines = [[headings[k] for k in used], ["---" for _ in used], *([row[k] for k in used] for row in rows)]
    table = "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)
    return f"{table}\n\nAlso {', '.join(f'`{name}`' for name in common)}." if common else table


def _properties(kind: type) -> list[tuple[str, str]]:
    """Return the properties of a class with the first line of what they say."""
    found: list[tuple[str, Any]] = [(n, v) for n, v in vars(kind).items() if isinstance(v, property)]
    return [(name, (inspect.getdoc(value) or "").splitlines()[0]) for name, value in found]


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"wrote {PAGE}")

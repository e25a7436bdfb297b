"""YAML and XML as calibration tools write them, as plain mappings and lists.

OpenCV's FileStorage writes a YAML of its own: `%YAML:1.0` without a blank, tags `!!opencv-matrix`, and people
leave out the blank after a colon (`data:[1, 2]`). A matrix becomes ``{rows, cols, data}`` in either syntax.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from transect.base.arrays import Floats
from transect.base.xml import load_xml
from transect.base.yaml_parts import parse_all
from transect.errors import ParseError

from . import LARGEST
from .model import numbers

_DIRECTIVE = re.compile(r"\A\s*%YAML[^\n]*\n?")
_TAG = re.compile(r"!!opencv-[\w-]+")
_TIGHT_KEY = re.compile(r"(?m)^(\s*(?:-\s+)?[A-Za-z_][\w.]*):(?=[^\s:/])")
_MATRICES = ("rows", "cols", "data")


def documents(data: bytes, name: str) -> list[dict[str, Any]]:
    """Return the mappings of a YAML file (one per document) or of an OpenCV XML file."""
    if len(data) > LARGEST:
        raise ParseError(
            f"{name} is too large for a calibration", where=name, why=f"it has {len(data)} bytes"
        )
    if data.lstrip()[:5] in (b"<?xml", b"<open"):
        return [_xml(data, name)]
    return _yaml(data.decode("utf-8-sig", "replace"), name)


def _yaml(text: str, name: str) -> list[dict[str, Any]]:
    text = _TIGHT_KEY.sub(r"\1: ", _TAG.sub("", _DIRECTIVE.sub("", text)))
    found = [document for document, _ in parse_all(text, name)]
    found = [document for document in found if document is not None]
    if not found or not all(isinstance(d, dict) for d in found):
        raise ParseError(
            f"{name} holds no calibration", where=name, why="it is not a mapping of names to values"
        )
    return [{str(k): v for k, v in d.items()} for d in found]


def _xml(data: bytes, name: str) -> dict[str, Any]:
    root = load_xml(data, name)
    return {str(child.tag): _element(child) for child in root if isinstance(child.tag, str)}


def _element(element: Any) -> Any:
    children = [c for c in element if isinstance(c.tag, str)]
    if element.get("type_id") == "opencv-matrix":
        parts: dict[str, list[str]] = {str(c.tag): str(c.text or "").split() for c in children}
        return {
            "rows": _first(parts.get("rows")),
            "cols": _first(parts.get("cols")),
            "data": parts.get("data", []),
        }
    if children:
        if all(c.tag == "_" for c in children):
            return [_element(c) for c in children]
        return {str(c.tag): _element(c) for c in children}
    words = (element.text or "").split()
    return words[0].strip('"') if len(words) == 1 else [w.strip('"') for w in words]


def _first(words: list[str] | None) -> str:
    return words[0] if words else ""


def is_matrix(value: Any) -> bool:
    """Tell whether a value is an OpenCV (or ROS) matrix."""
    return isinstance(value, Mapping) and all(key in value for key in _MATRICES)


def matrix(value: Any, what: str) -> Floats:
    """Return ``{rows, cols, data}`` or nested lists as a (rows, cols) array."""
    if is_matrix(value):
        rows, cols = int(value["rows"]), int(value["cols"])
        if rows < 0 or cols < 0 or rows * cols > 1024:
            raise ValueError(f"{what} is a matrix of {rows} x {cols}")
        return numbers(value["data"], rows * cols, what=what).reshape(rows, cols)
    if isinstance(value, list) and value and isinstance(value[0], list):
        return numbers(value, len(value), len(value[0]), what=what)
    if isinstance(value, list):
        return numbers(value, len(value), what=what).reshape(-1, 1)
    raise ValueError(f"{what} is not a matrix")

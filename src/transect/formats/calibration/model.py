"""Content of calibration files in any dialect, and common parts of the dialects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.base.xml import load_xml
from transect.base.yaml_parts import parse_all
from transect.errors import FrameError, ParseError
from transect.geometry import se3
from transect.recording import FrameTree
from transect.types import CameraModel

from . import MAX_FILE_BYTES

_DIRECTIVE = re.compile(r"\A\s*%YAML[^\n]*\n?")
_TAG = re.compile(r"!!opencv-[\w-]+")
_TIGHT_KEY = re.compile(r"(?m)^(\s*(?:-\s+)?[A-Za-z_][\w.]*):(?=[^\s:/])")
_MATRICES = ("rows", "cols", "data")


def documents(data: bytes, name: str) -> list[dict[str, Any]]:
    """Return the mappings of a YAML file (one per document) or of an OpenCV XML file."""
    if len(data) > MAX_FILE_BYTES:
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
    """Return whether a value is an OpenCV (or ROS) matrix."""
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


StaticTransform = tuple[str, str, Floats]
_LENSES = {"none": (0,), "radtan": (4, 5, 8), "equidistant": (4,)}


@dataclass(frozen=True, eq=False)
class CalibrationFile:
    """Cameras and their extrinsics."""

    cameras: Mapping[str, CameraModel]  # In the file's order; a camera's frame has its name
    # each (4, 4), ``T_parent_child`` in metres, in the direction in which the file states it
    frames: tuple[StaticTransform, ...] = ()
    kind: str = ""  # The dialect it was read from
    notes: tuple[str, ...] = ()  # What was assumed

    def tree(self, source: str = "") -> FrameTree:
        """Return the frames as a tree; an edge to a frame that has a parent already is turned round."""
        tree = FrameTree()
        for parent, child, matrix in self.frames:
            if child in tree and tree.parent_of(child) is not None:
                parent, child, matrix = child, parent, se3.invert(matrix)
            tree.add_static(parent, child, matrix, source=source)
        return tree

    def transform(self, target: str, source: str) -> Floats | None:
        """Return ``T_target_source`` from the file, possibly composed or inverted, or None."""
        for parent, child, matrix in self.frames:
            if (parent, child) == (target, source):
                return matrix
        try:
            return self.tree().lookup(target, source)
        except FrameError:
            return None


def numbers(values: Any, *shape: int, what: str) -> Floats:
    """Return nested lists as an array of finite numbers of a shape; text such as 5e-05 is a number, too.

    The lengths are looked at before anything is expanded: aliases of aliases can stand for billions.
    """
    flat: Any = [values]
    for size in shape:
        if any(not isinstance(v, Sequence) or isinstance(v, str) or len(v) != size for v in flat):
            raise ValueError(f"{what} is not {' x '.join(map(str, shape))} numbers")
        flat = [item for v in flat for item in v]
    if any(
        isinstance(v, Mapping | bool) or (isinstance(v, Sequence) and not isinstance(v, str)) for v in flat
    ):
        raise ValueError(f"{what} is not {' x '.join(map(str, shape))} numbers")
    try:
        result = np.array([float(v) for v in flat], dtype=np.float64).reshape(shape)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{what} is not {' x '.join(map(str, shape)) or 'a'} number") from None
    if not np.isfinite(result).all():
        raise ValueError(f"{what} is not finite")
    return result


def scalars(text: str) -> Floats:
    """Return all numbers in a text, in order."""
    found = re.findall(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", text)
    return np.array([float(v) for v in found], dtype=np.float64)


def pinhole(fx: float, fy: float, cx: float, cy: float, skew: float = 0.0) -> Floats:
    """Return the (3, 3) intrinsic matrix, pixels."""
    return np.array([[fx, skew, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]], dtype=np.float64)


def camera(
    name: str,
    size: Iterable[float],
    K: Floats,
    lens: str = "none",
    coefficients: Iterable[float] = (),
    R: Floats | None = None,
    P: Floats | None = None,
) -> CameraModel:
    """Return a camera model, checked.

    Parameters
    ----------
    size : width, height in pixels
        0, 0 where the file does not say.
    coefficients : sequence of float
        Zeros at the end of more radtan coefficients than we know (thin prism, tilt) are dropped.
    R, P : arrays of 9 and of 12 numbers, or None
        Rectification and projection, of any shape.
    """
    values = np.array(list(coefficients), dtype=np.float64)
    if lens == "radtan":
        values = _check_radtan(values, name)
    if lens not in _LENSES or len(values) not in _LENSES[lens]:
        raise ValueError(f"{name}: {len(values)} coefficients of a lens {lens!r}")
    width, height = (int(v) for v in size)
    if not (K[0, 0] and K[1, 1]) or not 0 <= width < 1_000_000 or not 0 <= height < 1_000_000:
        raise ValueError(f"{name}: focal length {K[0, 0]}, {K[1, 1]}, size {width} x {height}")
    rectification = np.eye(3) if R is None else R.reshape(3, 3)
    P_3x4 = None if P is None else P.reshape(3, 4)
    return CameraModel(name, width, height, K, lens, values, rectification, P_3x4, frame=name)


def _check_radtan(values: Floats, name: str) -> Floats:
    if len(values) in (12, 14) and not values[8:].any():
        values = values[:8]
    if len(values) == 2:  # only k1 k2
        values = np.append(values, (0.0, 0.0))
    if len(values) > 8:
        raise ValueError(f"{name}: thin-prism and tilt coefficients are not known here")
    return values


def rigid(rotation: Floats, translation: Floats) -> Floats:
    """Return the (4, 4) matrix of a rotation (3, 3), as printed, and a translation (3,) in metres."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = rotation, np.asarray(translation).reshape(3)
    return T


def projection(model: CameraModel) -> Floats:
    """Return P (3, 4) of a camera, computed from K if it is not rectified."""
    return np.column_stack([model.K, np.zeros(3)]) if model.P is None else model.P


def static_edges(frames: FrameTree) -> tuple[StaticTransform, ...]:
    """Return the transforms of a tree that do not change."""
    return tuple((e.parent, e.child, e.matrix) for e in frames.edges if e.matrix is not None)


def rectified_pair(left: CameraModel, right: CameraModel) -> list[StaticTransform]:
    """Return T_right_left of a rectified pair, from how each camera is rectified and the baseline in P."""
    if left.P is None or right.P is None or not right.P[0, 3]:
        return []
    T = np.eye(4)
    T[:3, :3] = right.R.T @ left.R
    T[:3, 3] = right.R.T @ np.array([right.P[0, 3] / right.P[0, 0] - left.P[0, 3] / left.P[0, 0], 0.0, 0.0])
    return [(right.name, left.name, T)]


def refuse(name: str, kind: str, error: Exception) -> ParseError:
    """Return the error for a file that is not the calibration it seemed to be."""
    why = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) and error.args else str(error)
    return ParseError(f"{name} is not a {kind} calibration", where=name, why=why)

"""Triangles of simple bodies: closed, turned outwards, and as large as they should be."""

import numpy as np
import pytest

from transect.base.arrays import Floats
from transect.geometry import meshes


def volume(triangles: Floats) -> float:
    """Return what triangles enclose: the sum of tetrahedra from the origin, negative if turned inwards."""
    return float(np.einsum("ni,ni->", triangles[:, 0], np.cross(triangles[:, 1], triangles[:, 2])) / 6)


def test_a_box_encloses_its_volume() -> None:
    triangles = meshes.box((2.0, 3.0, 0.5))
    assert volume(triangles) == pytest.approx(3.0)
    assert np.ptp(triangles.reshape(-1, 3), axis=0) == pytest.approx([2.0, 3.0, 0.5])


@pytest.mark.parametrize(
    ("triangles", "exact"),
    [(meshes.cylinder(0.5, 2.0), np.pi * 0.5**2 * 2.0), (meshes.sphere(1.5), 4 / 3 * np.pi * 1.5**3)],
    ids=["cylinder", "sphere"],
)
def test_what_is_round_encloses_a_little_less_than_it_would(triangles: Floats, exact: float) -> None:
    assert 0.95 * exact < volume(triangles) < exact


def test_every_edge_of_a_cylinder_is_shared_by_two_triangles() -> None:
    corners = meshes.cylinder(1.0, 1.0).round(9)
    edges = [
        frozenset(map(tuple, (t[a], t[b]))) for t in corners.tolist() for a, b in ((0, 1), (1, 2), (2, 0))
    ]
    assert {edges.count(edge) for edge in set(edges)} == {2}

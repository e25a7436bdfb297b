"""Transformation between the planes of two maps with different coordinate reference systems."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from transect.base.arrays import Floats
from transect.errors import UsageError
from transect.types import GridMap

Plane = Callable[[Floats, Floats], tuple[Floats, Floats]]
"""Takes x and y of the reference's plane to the estimate's."""


def plane_between(
    reference: GridMap, estimate: GridMap, *, placed: bool, degrees: bool = False
) -> tuple[Plane, tuple[str, ...]]:
    """Return the transformation from the reference's plane to the estimate's, and notes for the user.

    Parameters
    ----------
    placed : bool
        Whether the position of the estimate is given: a map in a site frame can then be compared with one in
        a coordinate reference system.
    degrees : bool
        Whether cells of the reference may be in degrees.

    Raises
    ------
    UsageError
        If only one map has a reference system and the position of the other is not given, if a system is not
        known, or if the reference's cells are in degrees and may not be.
    """
    if not reference.crs and not estimate.crs:
        return _same, ()
    if not (reference.crs and estimate.crs):
        if shares_local_frame(reference, estimate):
            return _same, (
                "the maps are compared in a local frame: only one has a CRS, with the same x and y",
            )
        if placed:
            return _same, ("one map is in a site frame: it was moved by the given shift, without rotation",)
        local = "estimate" if reference.crs else "reference"
        raise UsageError(
            f"the {local} has no coordinate reference system, the other map has",
            why=f"the other is in {reference.crs or estimate.crs}",
            hint="--shift X,Y,Z (in Python shift=): the origin of its frame in the other system; "
            "transect maps locate estimates it",
        )
    return _between(reference.crs, estimate.crs, degrees)


def shares_local_frame(a: GridMap, b: GridMap) -> bool:
    """Whether two maps can be compared in a local frame although one of them has a reference system.

    A map with both has the same x and y in its frame and in its reference system.
    """
    georeferenced, local = (a, b) if a.crs else (b, a)
    return bool(georeferenced.crs and georeferenced.frame) and not local.crs


def _same(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    return x, y


def _between(reference: str, estimate: str, degrees: bool) -> tuple[Plane, tuple[str, ...]]:
    import pyproj
    from pyproj.exceptions import CRSError

    try:
        ours, theirs = pyproj.CRS.from_user_input(reference), pyproj.CRS.from_user_input(estimate)
    except CRSError as error:
        raise UsageError("a coordinate reference system is not known", why=str(error)) from error
    if ours.is_geographic and not degrees:
        raise UsageError(
            "the cells of the reference are in degrees",
            why=f"it is in {reference}; distances are in metres",
            hint="reproject it to UTM first (gdalwarp -t_srs)",
        )
    if ours == theirs:
        return _same, ()
    transformer = pyproj.Transformer.from_crs(ours, theirs, always_xy=True)

    def plane(x: Floats, y: Floats) -> tuple[Floats, Floats]:
        east, north = transformer.transform(x, y)
        return np.asarray(east), np.asarray(north)

    note = (
        f"the estimate is in {_short(theirs)}, sampled at positions in {_short(ours)}; heights are unchanged"
    )
    return plane, (note,)


def _short(crs: object) -> str:
    return str(getattr(crs, "name", crs))

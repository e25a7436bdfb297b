"""What a panel of a moment's picture shows, as plain arrays.

Every panel has a `name`, which is its title, and `dt`: the seconds by which its sample is later than the
moment, None where there is no one sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from transect.base.arrays import Floats


@dataclass(frozen=True)
class Limits:
    """What of a sensor's view is drawn.

    Attributes
    ----------
    sector : float or None
        Bearings up to so much to either side of straight ahead, rad; all there are if None.
    reach : float or None
        How far from the vehicle, m; as far as most returns if None.
    """

    sector: float | None = None
    reach: float | None = None


@dataclass(frozen=True, eq=False)
class Photo:
    """An image.

    Attributes
    ----------
    rgb : (h, w, 3) uint8 array
    row : int or None
        A line of pixels that is marked.
    """

    name: str
    rgb: NDArray[Any]
    dt: float | None = 0.0
    row: int | None = None


@dataclass(frozen=True, eq=False)
class Points:
    """Points of a scan or a cloud, from above or from the side.

    Attributes
    ----------
    points : (n, 3) array
        x forward, y left, z up, in metres; NaN where nothing came back.
    by_height : bool
        Whether colours tell z.
    frame : str
        Whose axes they are; its origin is at (0, 0).
    side : bool
        Whether they are seen from the right side, else from above.
    """

    name: str
    points: Floats
    dt: float | None = 0.0
    by_height: bool = False
    frame: str = "sensor"
    side: bool = False


Things = tuple[tuple[str, Floats], ...]
"""Names of what is known to be there, and where."""


@dataclass(frozen=True, eq=False)
class Together:
    """Points of several sensors in the same axes, and things at points (3,)."""

    name: str
    parts: tuple[Points, ...]
    things: Things = ()
    dt: float | None = None


@dataclass(frozen=True, eq=False)
class Spectrum:
    """A revolution of a radar.

    Attributes
    ----------
    reflectivity : (n, bins) array
        As the radar scales it.
    bearings : (n,) array
        rad to the left.
    ranges : (bins,) array
        m.
    detected : (k, 2) array
        Bearing (rad) and range (m) of what the radar took for targets.
    frame : str
        From whose x axis bearings count.
    """

    name: str
    reflectivity: Floats
    bearings: Floats
    ranges: Floats
    dt: float | None = 0.0
    detected: Floats | None = None
    frame: str = "sensor"


@dataclass(frozen=True, eq=False)
class Ranges:
    """Scans, or turns of a radar, as range over bearing.

    Attributes
    ----------
    scans : sequence of (n, 2) arrays
        Bearing (rad to the left) and range (m) in each.
    lines : bool
        Whether the beams of a scan are joined; else they are dots.
    frame : str
        From whose x axis bearings count.
    things : sequence of (str, (2,) array)
        At a bearing and a range.
    """

    name: str
    scans: Sequence[Floats]
    lines: bool = False
    dt: float | None = None
    frame: str = "sensor"
    things: Things = ()


@dataclass(frozen=True, eq=False)
class Rows:
    """The same line of one or more images: (k, w, 3) uint8, drawn as three signals."""

    name: str
    rgb: NDArray[Any]
    dt: float | None = None


@dataclass(frozen=True, eq=False)
class OverTime:
    """What a sensor saw, line by line, as an image whose time goes down.

    Attributes
    ----------
    values : (k, n) array, or (k, n, 3) uint8 array
        One line for each sample; colours as they are, or numbers for the colour bar.
    seconds : (k,) array
    across : (n,) array
        Where the values of a line are: pixels, rad to the left, or m.
    kind : str
        Which of these: `pixel`, `bearing` or `range`.
    label : str
        What the colour bar tells.
    """

    name: str
    values: NDArray[Any]
    seconds: Floats
    across: Floats
    kind: Literal["pixel", "bearing", "range"]
    label: str = ""
    dt: None = None


@dataclass(frozen=True, eq=False)
class Graph:
    """Numbers over time, or over each other: (name, x (n,), y (n,)) of each curve, and what the axes tell."""

    name: str
    curves: tuple[tuple[str, Floats, Floats], ...]
    xlabel: str
    ylabel: str
    dt: None = None


@dataclass(frozen=True, eq=False)
class Field:
    """A raster of numbers.

    Attributes
    ----------
    values : (h, w) array
        NaN where there are none.
    label : str
        What they are, with the unit.
    extent : (left, right, bottom, top) or None
        In metres, of a map; None where it is an image.
    """

    name: str
    values: Floats
    label: str
    extent: tuple[float, float, float, float] | None = None
    dt: float | None = None


Panel = Photo | Points | Together | Spectrum | Ranges | Rows | OverTime | Graph | Field

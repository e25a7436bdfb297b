"""A page on this machine that scrubs a recording: cameras, lasers and clouds in 3-D, plots, verdicts.

`scene` says what there is to show, `encoding` turns samples into bytes, `server` answers the page's requests,
on the loopback address alone. The page draws points, lines and axes by WebGL2 itself (`space.js`): a hundred
lines, where a library would be half a megabyte to ship, to update and to trust.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .scene import Scene
    from .server import Viewer

__all__ = ["Scene", "Viewer"]

__getattr__ = importer(__name__, {"scene": ("Scene",), "server": ("Viewer",)})

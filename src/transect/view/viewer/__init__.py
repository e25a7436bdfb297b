"""A page on this machine that scrubs a recording or plays a run: 3-D, pictures, a map, plots, verdicts.

`scene` says what there is to show, `models` what the robot looks like, `results` what runs left;
`encoding` turns samples into bytes, `server` answers the page's requests, on the loopback
address alone. `watching` is a run that goes on meanwhile, `sessions` opens a page for it.

The page is a dozen small modules of JavaScript, each about one thing, which the browser loads as they stand:
nothing is built. It draws in 3-D by WebGL2 itself (`space.js`): two hundred lines, where a library would be
half a megabyte to ship, to update and to trust.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .scene import Scene
    from .server import Viewer
    from .sessions import watch

__all__ = ["Scene", "Viewer", "watch"]

__getattr__ = importer(__name__, {"scene": ("Scene",), "server": ("Viewer",), "sessions": ("watch",)})

"""A page on this machine that scrubs a recording or plays a run: 3-D, pictures, a map, plots, verdicts.

`scene` lists what can be shown, `run_streams` the outputs of runs; `encoding` turns samples and the shapes of
the robot into bytes; `server` answers the page's requests, on the loopback address only, and `check_process`
checks the sensors beside it. `live_run` is a run that is played from the page.

The page is a dozen small modules of JavaScript, each about one thing, which the browser loads as they stand:
nothing is built. 3-D is drawn directly with WebGL2 (`space.js`): 200 lines instead of a library of 500 kB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .live_run import watch
    from .scene import Scene
    from .server import Viewer

__all__ = ["Scene", "Viewer", "watch"]

__getattr__ = importer(__name__, {"scene": ("Scene",), "server": ("Viewer",), "live_run": ("watch",)})

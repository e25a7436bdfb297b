"""A local web page to view a recording or to play a run: 3-D, images, a map, plots, verdicts.

`scene` lists the content, `run_streams` the outputs of runs; `encoding` encodes samples and the geometry of
the robot; `server` answers the page's requests, on the loopback interface only, and `check_process` checks
the sensors in the background. `live_run` is a run that is played from the page.

The page consists of small JavaScript modules, which the browser loads without a build step. 3-D is drawn
with WebGL2 (`space.js`, 200 lines, instead of a library of 500 kB).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .live_run import watch
    from .scene import ViewerScene
    from .server import Viewer

__all__ = ["Viewer", "ViewerScene", "watch"]

__getattr__ = importer(__name__, {"scene": ("ViewerScene",), "server": ("Viewer",), "live_run": ("watch",)})

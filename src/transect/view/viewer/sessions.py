"""A replay in a browser: a person plays it, and the run goes on when the page is closed."""

from __future__ import annotations

import signal
import threading
import webbrowser
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

from transect.engine import Replay
from transect.errors import UsageError

from .scene import Scene
from .server import Viewer
from .watching import Watch


def watch(replay: Replay, *, port: int = 0, show: Callable[[str], object] = webbrowser.open) -> None:
    """Let a person step, play and pause a replay in a browser; return when the page is closed.

    For `transect.run`: ``transect.run("LidarOdometry", recording, play=watch)``. What is watched gives the
    digest that it gives unwatched.

    Parameters
    ----------
    replay : Replay
    port : int
        0 for any that is free.
    show : callable
        Is given the address of the page.

    Raises
    ------
    UsageError
        If the replay plays on several threads.
    """
    if replay.settings.jobs > 1:
        raise UsageError("a run that is watched plays one wave after the other", hint="leave jobs out")
    scene = Scene(replay.recording)
    watched = Watch(replay, scene.axis.start_ns)
    viewer = Viewer(scene, port, watch=watched)
    server = threading.Thread(target=_serve, args=(viewer, watched), daemon=True)
    server.start()
    try:
        with _closing_on_interrupt(watched):
            show(viewer.url)
            watched.obey()
    finally:
        viewer.close()
        server.join()


def _serve(viewer: Viewer, watched: Watch) -> None:
    viewer.serve()
    watched.order("close")


@contextmanager
def _closing_on_interrupt(watched: Watch) -> Generator[None]:
    """Let Ctrl-C end the watching after the wave that is under way; a second one interrupts at once."""
    if threading.current_thread() is not threading.main_thread():  # others cannot handle signals
        yield
        return

    def close(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        watched.order("close")

    before = signal.signal(signal.SIGINT, close)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

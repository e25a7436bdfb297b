"""A process that imports matplotlib while a run is playing, and then draws the figures."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired

from transect.base.processes import cores, python_command

SERVE = "import gc; gc.disable(); from transect.evaluation.runs.figures import serve; serve()"
"""Garbage collection is off, as the process is short-lived."""
NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Keeps numpy and Arrow from starting threads on import, since the process is forked."""
TERMINATION_TIMEOUT_S = 5.0
"""Time for a terminated process to remove unfinished files."""


class DrawingProcess:
    """Draws the figures of runs in a separate process, which is started in a `with` block.

    Importing matplotlib takes half a second; in a thread it would delay the nodes because of the global
    interpreter lock. Without a second core, or if matplotlib is imported already, the figures are drawn in
    this process.
    """

    def __init__(self) -> None:
        self._process: Popen[bytes] | None = None

    def __enter__(self) -> DrawingProcess:
        if cores() > 1 and "matplotlib.figure" not in sys.modules:
            self._process = _start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._end(signal.SIGKILL)  # it is idle

    def draw(self, folder: Path) -> None:
        """Draw the figures of a run into its folder, in this process if the other one cannot."""
        if not self._ask(folder):
            from transect.evaluation.runs.figures import draw_run  # imports matplotlib

            draw_run(folder)

    def _ask(self, folder: Path) -> bool:
        """Request the figures from the other process; return whether it drew them."""
        from json import dumps

        from transect.evaluation.runs import DRAWN

        if self._process is None or self._process.stdin is None or self._process.stdout is None:
            return False
        try:
            self._process.stdin.write(f"{dumps(str(folder.absolute()))}\n".encode())
            return self._process.stdout.readline() == DRAWN
        except BrokenPipeError:
            return False
        except BaseException:
            self._end(signal.SIGTERM)
            raise

    def _end(self, number: int) -> None:
        """Send a signal to the process group; wait for its end."""
        process, self._process = self._process, None
        if process is None:
            return
        with process:
            os.killpg(process.pid, number)
            try:
                process.wait(TERMINATION_TIMEOUT_S)
            except TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def _start() -> Popen[bytes] | None:
    """Start the process in its own group, so that Ctrl-C does not reach it; None on failure."""
    command, environment = python_command("-c", SERVE), os.environ | NO_THREADS
    try:
        return Popen(
            command, bufsize=0, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment, process_group=0
        )
    except OSError:
        return None

"""A second process, started while a run plays, that imports matplotlib and then draws the figures."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired

from transect.base.processes import cores, python_command

SERVE = "import gc; gc.disable(); from transect.evaluation.runs.figures import serve; serve()"
"""It ends before there is garbage worth searching for."""
NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""What keeps numpy and Arrow from starting threads when they are imported: the process is to be forked."""
PATIENCE_S = 5.0
"""For how long a process that is told to end may take to remove what it has not finished."""


class DrawingProcess:
    """Draws the figures of runs in a process of its own, which is started in a `with` block.

    Importing matplotlib takes half a second. On a thread it would hold up the nodes, since only one thread
    at a time runs Python. A process that can draw already, has one core, or cannot start another process
    draws by itself.
    """

    def __init__(self) -> None:
        self._process: Popen[bytes] | None = None

    def __enter__(self) -> DrawingProcess:
        if cores() > 1 and "matplotlib.figure" not in sys.modules:
            self._process = _start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._end(signal.SIGKILL)  # it has nothing to do, and nothing to lose

    def draw(self, folder: Path) -> None:
        """Draw the figures of a run into its folder: this process draws what the other one cannot."""
        if not self._ask(folder):
            from transect.evaluation.runs.figures import draw_run  # imports matplotlib

            draw_run(folder)

    def _ask(self, folder: Path) -> bool:
        """Let the other process draw; return whether it did."""
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
        """Send a signal to the process and those that it forked; wait until it is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        with process:
            os.killpg(process.pid, number)
            try:
                process.wait(PATIENCE_S)
            except TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def _start() -> Popen[bytes] | None:
    """Start a process, in a group of its own: Ctrl-C is for this one. None if that cannot be done."""
    command, environment = python_command("-c", SERVE), os.environ | NO_THREADS
    try:
        return Popen(
            command, bufsize=0, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment, process_group=0
        )
    except OSError:
        return None

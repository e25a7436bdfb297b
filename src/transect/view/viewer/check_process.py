"""Checks the sensors in a separate process, so that the server is not delayed.

``python -m transect.view.viewer.check_process`` reads a request as a line of JSON, and writes the verdicts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from threading import Thread
from typing import Any

from transect.base.clocks import NS
from transect.base.processes import python_command
from transect.errors import TransectError
from transect.recording import Recording

NICENESS_INCREMENT = 10
Windows = dict[str, list[list[Any]]]
"""By stream: start and end in seconds, state and reason of each window."""


def judge(recording: Recording, start_ns: int) -> Windows:
    """Return the verdicts on each sensor; times are seconds from a start."""
    from transect.integrity import check

    return {
        name: [[(v.t0_ns - start_ns) / NS, (v.t1_ns - start_ns) / NS, v.state, v.reason] for v in verdicts]
        for name, verdicts in check(recording).by_stream.items()
    }


def judge_in_process(recording: Recording, start_ns: int) -> Windows:
    """Like `judge`, in a process that opens the recording; a recording in memory is checked here."""
    if not recording.sources:
        return judge(recording, start_ns)
    request = {
        "paths": [str(source.path) for source in recording.sources],
        "format": recording.format,
        "options": dict(recording.options),
        "streams": [stream.name for stream in recording],
        "start_ns": start_ns,
    }
    return json.loads(_ask(json.dumps(request)))


def _ask(request: str) -> str:
    """Return the answer of the process to a request; its input stays open until it answers."""
    command = python_command("-m", __name__)
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{request}\n")
        process.stdin.flush()
        answered = process.stdout.read()
        if process.wait():
            errors.seek(0)
            raise TransectError("the sensors could not be checked", why=errors.read().strip()[-300:])
        return answered


def answer(request: dict[str, Any]) -> Windows:
    """Open the requested recording and check its requested streams."""
    from transect import formats

    whole = formats.open(*request["paths"], format=request["format"], **request["options"])
    wanted = set(request["streams"])
    streams = tuple(stream for stream in whole if stream.name in wanted)
    return judge(whole.replace(streams=streams), request["start_ns"])


def main() -> None:
    """Answer one request from standard input, at low priority."""
    os.nice(NICENESS_INCREMENT)
    request = json.loads(sys.stdin.readline())
    Thread(target=_exit_with_parent, daemon=True).start()
    sys.stdout.write(json.dumps(answer(request)))


def _exit_with_parent() -> None:
    """Exit when the parent process ends, which closes the pipe."""
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


if __name__ == "__main__":
    main()

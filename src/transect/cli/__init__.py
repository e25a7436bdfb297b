"""The command line: one file per verb, each imported when it is named."""

from __future__ import annotations

import atexit
import errno
import gc
import os
import signal
import sys
from typing import NoReturn

import click

from transect._version import __version__
from transect.base.plugins import failures
from transect.base.processes import claim_process
from transect.errors import TransectError

from .shared.groups import LazyGroup
from .shared.terminal import PlainStream

LOSSY, BAD_VERDICT, INTERRUPTED = 3, 4, 130


@click.group(
    cls=LazyGroup,
    offered="commands",
    kind="verb",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="transect")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def command(debug: bool) -> None:
    """From a robot's raw logs to fused, checked, citable data.

    \b
    transect info PATH               what was recorded
    transect run                     what can be computed, and of what
    transect run NAME PATH -o DIR    compute it
    transect VERB --help             what a verb does
    """  # noqa: D301, the sign is click's
    del debug  # read from sys.argv by `main`, which must know it before the parsing


def main() -> NoReturn:
    """Run and exit: 0 fine, 1 failed, 2 usage, 3 data lost, 4 bad verdict, 130 interrupted."""
    claim_process()
    gc.set_threshold(50_000)  # importing makes many objects, and none of them is garbage
    atexit.register(gc.freeze)  # what ends with the process need not be searched for garbage first
    plain = PlainStream(sys.stdout)
    sys.stdout, sys.stderr = plain, PlainStream(sys.stderr)  # pyright: ignore[reportAttributeAccessIssue]
    signal.signal(signal.SIGTERM, _terminate)
    debug = "--debug" in sys.argv
    arguments = [a for a in sys.argv[1:] if a != "--debug"]
    try:
        code = command.main(arguments, prog_name="transect", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except SystemExit:
        if sys.stdout is plain:
            raise
        sys.exit(0)  # click has put a mute stream there: who read the output went away
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.UsageError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort):
        _say("interrupted")
        sys.exit(INTERRUPTED)
    except TransectError as error:
        if debug:
            raise
        _say(f"error: {error}")
        for failure in failures().values():  # what was asked for may be theirs
            _say(f"note: {failure.what}: {failure.why}")
        sys.exit(error.exit_code)
    except OSError as error:
        _exit_for_system(error, debug)


def _terminate(number: int, _: object) -> NoReturn:
    """Leave as an exception does, so that nothing half-written stays; a second signal does not disturb it."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def _exit_for_system(error: OSError, debug: bool) -> NoReturn:
    """Say what the operating system refused; a reader that went away (`| head`) is no error."""
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    if debug:
        raise error
    hint = {
        errno.ENOSPC: "free some space, or write elsewhere with -o",
        errno.EACCES: "check the permissions, or write elsewhere with -o",
        errno.EROFS: "write elsewhere with -o",
    }.get(error.errno or 0, "")
    where = str(error.filename or "")
    _say(f"error: {TransectError(error.strerror or str(error), where=where, hint=hint)}")
    sys.exit(1)


def _say(text: str) -> None:
    click.echo(text, err=True)

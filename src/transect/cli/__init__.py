"""The command line: one module per command, each imported when it is called."""

from __future__ import annotations

import atexit
import errno
import gc
import os
import signal
import sys
from enum import IntEnum
from typing import NoReturn

import click

from transect._version import __version__
from transect.base.plugins import failures
from transect.base.processes import claim_process
from transect.errors import TransectError

from .shared.options import LazyGroup
from .shared.terminal import PlainStream


class ExitCode(IntEnum):
    """Exit codes of commands, in addition to 0 for success, 1 for failure and 2 for usage errors."""

    DATA_LOST = 3
    BAD_VERDICT = 4
    INTERRUPTED = 130


@click.group(
    cls=LazyGroup,
    offered="commands",
    kind="command",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="transect")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def command(debug: bool) -> None:
    """From a robot's raw logs to fused, checked, citable data.

    \b
    transect info PATH               list the streams of a recording
    transect run                     list what can be computed
    transect run NAME PATH -o DIR    compute it from a recording
    transect COMMAND --help          explain a command
    """  # noqa: D301, the sign is click's
    del debug  # `main` reads it from sys.argv before the parsing


def main() -> NoReturn:
    """Run and exit: 0 success, 1 failure, 2 usage error, 3 data lost, 4 bad verdict, 130 interrupted."""
    claim_process()
    gc.set_threshold(50_000)  # importing creates many objects, none of them garbage
    atexit.register(gc.freeze)  # no garbage collection at exit
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
        sys.exit(0)  # click replaced the stream, as the reader of the output has closed the pipe
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.UsageError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort):
        _print_error("interrupted")
        sys.exit(ExitCode.INTERRUPTED)
    except TransectError as error:
        if debug:
            raise
        _print_error(f"error: {error}")
        for failure in failures().values():  # the cause may be a plug-in that could not be loaded
            _print_error(f"note: {failure.what}: {failure.why}")
        sys.exit(error.exit_code)
    except OSError as error:
        _exit_for_system(error, debug)


def _terminate(number: int, _: object) -> NoReturn:
    """Raise SystemExit, so that partial files are removed; further signals are ignored meanwhile."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def _exit_for_system(error: OSError, debug: bool) -> NoReturn:
    """Report an error of the operating system; a closed pipe (`| head`) is not an error."""
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
    _print_error(f"error: {TransectError(error.strerror or str(error), where=where, hint=hint)}")
    sys.exit(1)


def _print_error(text: str) -> None:
    click.echo(text, err=True)

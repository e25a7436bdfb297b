"""Run the benchmark of the checks: ``python -m benchmarks.integrity --help``."""

import sys

import click

from benchmarks.integrity.command import command
from transect.errors import TransectError

if __name__ == "__main__":
    try:
        command.main(prog_name="python -m benchmarks.integrity", standalone_mode=False)
    except (TransectError, click.ClickException) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)

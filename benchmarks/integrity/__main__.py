"""Run the benchmark of the checks: ``python -m benchmarks.integrity --help``."""

import sys

from benchmarks.integrity.command import command

if __name__ == "__main__":
    sys.exit(command.main(prog_name="python -m benchmarks.integrity", standalone_mode=False) or 0)

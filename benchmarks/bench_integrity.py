"""How well the checks find faults, beside other tools: a few faults in a few recordings.

All of it, with other seeds and real recordings, takes hours: ``python -m benchmarks.integrity --help``.
"""

from benchmarks.integrity.command import command


def main() -> None:
    """Put faults into clear recordings, and count what the checks say."""
    command.main(["--quick"], standalone_mode=False)

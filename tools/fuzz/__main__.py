"""The command: run campaigns until the time is over, print a table of each; exit with 1 on a find."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.formats.corpus import WRITERS

from . import examples, hostile, kills, workers

CAMPAIGNS = ("mutations", "kills", "hostile", "hypothesis")
UNLIMITED_COUNT = 10**9
MAX_SHOWN_FINDS = 30
"""Hostile files in the table."""


def main() -> int:
    """Run the campaigns that the names choose."""
    parser = argparse.ArgumentParser(
        prog="make fuzz ARGS=...",
        description="Look for what breaks: mutated files, killed commands, new hypothesis examples.",
    )
    parser.add_argument(
        "names",
        nargs="*",
        help="campaigns (mutations, kills, hostile, hypothesis; default: all), and what they are about: "
        "readers (rosbag) or samples of them (rosbag-mcap), commands (run, cache), tests as for pytest -k",
    )
    parser.add_argument("--seconds", type=float, default=300.0, help="of all campaigns together (300)")
    parser.add_argument(
        "--count", type=int, default=UNLIMITED_COUNT, help="mutations of each reader, kills of each command"
    )
    parser.add_argument(
        "--log", type=Path, metavar="DIR", help="note what is done in DIR; the next time, go on from there"
    )
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="repeats a campaign")
    parser.add_argument(
        "--use-every", type=int, default=20, metavar="N",
        help="check, report, export and show one mutation in N (20), 0 for none",
    )  # fmt: skip
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    chosen = parser.parse_args()
    plan = chosen_campaigns(chosen.names)
    found = 0
    for left, (campaign, names) in zip(range(len(plan), 0, -1), plan.items(), strict=True):
        began = time.monotonic()
        found |= RUN[campaign](names, chosen, chosen.seconds / left)
        chosen.seconds = max(0.0, chosen.seconds - (time.monotonic() - began))
    return found


def chosen_campaigns(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the campaigns, and of each what it is about; nothing means everything."""
    samples = {
        sample for sample in WRITERS for name in names if sample == name or sample.startswith(f"{name}-")
    }
    commands = [name for name in names if name in kills.COMMANDS]
    known = {name for name in names if name in CAMPAIGNS or name in commands}
    tests = [name for name in names if name not in known and not any(s.startswith(name) for s in samples)]
    about = {"mutations": sorted(samples), "kills": commands, "hostile": [], "hypothesis": tests}
    wanted = [name for name in CAMPAIGNS if name in names] or [name for name in CAMPAIGNS if about[name]]
    return {name: about[name] for name in wanted or CAMPAIGNS}


def run_mutations(samples: list[str], chosen: argparse.Namespace, seconds: float) -> int:
    """Mutate samples, all readers alike; keep the first mutation that shows something."""
    samples = samples or sorted(WRITERS)
    log = chosen.log / "mutations.jsonl" if chosen.log else None
    campaign = workers.Campaign(samples, chosen.seed, chosen.count, log, chosen.use_every)
    print(f"seed {campaign.seed}", flush=True)
    workers.import_readers(samples)
    with tempfile.TemporaryDirectory(dir=_memory()) as scratch:
        campaign.run(chosen.workers, time.monotonic() + seconds, Path(scratch))
    _print(workers.HEADINGS, list(campaign.rows()))
    print(f"{campaign.finds} finds")
    return int(campaign.finds > 0)


def run_kills(commands: list[str], chosen: argparse.Namespace, seconds: float) -> int:
    """Kill commands, all for the same time."""
    commands = commands or list(kills.COMMANDS)
    each = seconds * chosen.workers / len(commands)
    print(f"seed {chosen.seed}", flush=True)

    def run(command: str) -> kills.Tally:
        with tempfile.TemporaryDirectory() as scratch:
            until = time.monotonic() + each
            return kills.run_command(command, chosen.seed, chosen.count, until, Path(scratch))

    with ThreadPoolExecutor(chosen.workers) as pool:
        tallies = list(pool.map(run, commands))
    _print(kills.HEADINGS, [tally.row() for tally in tallies])
    finds = [find for tally in tallies for find in tally.finds]
    print("\n".join(["", *finds, f"{len(finds)} finds"]))
    return int(bool(finds))


def run_hostile(names: list[str], chosen: argparse.Namespace, seconds: float) -> int:
    """Open files that are wrong on purpose."""
    if not hostile.FOLDER.is_dir():
        print(f"there are no hostile files in {hostile.FOLDER}")
        return 0
    with tempfile.TemporaryDirectory(dir=_memory()) as scratch:
        start_s, start_bytes = hostile.start_up(Path(scratch))
        rows = hostile.run(Path(scratch))
    _print(hostile.HEADINGS, [row.cells() for row in rows[:MAX_SHOWN_FINDS]])
    finds = [row for row in rows if row.worst > 1]
    for row in finds:
        print(row.path, *(look["error"] for look in row.looks), sep="\n  ")
    print(f"starting up takes {start_s:.1f} s and {start_bytes >> 20} MB, which is not counted")
    print(f"{len(rows)} files and folders, each opened twice, the worst first; {len(finds)} finds")
    return int(bool(finds))


def run_hypothesis(names: list[str], chosen: argparse.Namespace, seconds: float) -> int:
    """Draw new examples."""
    return examples.run(names, chosen.workers, seconds)


RUN: dict[str, Callable[[list[str], argparse.Namespace, float], int]] = {
    "mutations": run_mutations,
    "kills": run_kills,
    "hostile": run_hostile,
    "hypothesis": run_hypothesis,
}


def _memory() -> str | None:
    """Where files that live for a millisecond are not written to a disk."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _print(headings: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> None:
    rows = [headings, *lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        first, *others = (cell.ljust(width) if k == 0 else cell.rjust(width)
                          for k, (cell, width) in enumerate(zip(row, widths, strict=True)))  # fmt: skip
        print("  ".join([first, *others]))


if __name__ == "__main__":
    sys.exit(main())

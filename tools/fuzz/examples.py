"""Run the hypothesis tests with new random examples until time is over.

The tests themselves draw the same examples everywhere; every round
here draws others. What fails is printed as the decorator to put above the test, for all later runs.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEST = re.compile(r"^_{3,} (.+?) _{3,}$")
EXAMPLE = re.compile(r"^E?\s*(?:Falsifying example|Failing test case): (\w+)\($")

HOW = "Put this between @given and the test, without what @parametrize or fixtures give:"


def run(names: list[str], workers: int, seconds: float) -> int:
    """Run rounds of the tests that the names choose; return 1 if an example failed."""
    end = time.monotonic() + seconds
    rounds, failures = 0, {}
    while rounds == 0 or time.monotonic() < end:
        rounds += 1
        code, output = run_round(names, str(workers))
        if code not in (0, 1):  # usage, nothing collected, interrupted: no other round would do better
            print(output)
            return code
        found = failing_examples(output)
        if code == 1 and not found:
            print(output)
        print(f"round {rounds}: {output.strip().splitlines()[-1]}", flush=True)
        for test, example in found.items():
            if test not in failures:
                print(f"\n{test} fails. {HOW}\n\n{example}\n", flush=True)
        failures |= found
        if code == 1 and not found:
            return 1
    print(f"{rounds} rounds, {len(failures)} tests failed: {', '.join(failures) or 'none'}")
    return 1 if failures else 0


def run_round(names: list[str], workers: str) -> tuple[int, str]:
    """Exit code and output of pytest for one round."""
    paths = [name for name in names if (ROOT / name.partition("::")[0]).exists()]
    words = [name for name in names if name not in paths]
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-n", workers, "-m", "hypothesis"),
        *("--hypothesis-profile", "fuzz", "--durations-min=1000", "--tb=short", "-p", "no:cacheprovider"),
        *(["-k", " or ".join(words)] if words else []),
        *(paths or ["tests"]),
    ]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def failing_examples(output: str) -> dict[str, str]:
    """By the name of the test, the falsifying example as a decorator."""
    found: dict[str, str] = {}
    lines = iter(output.splitlines())
    test = ""
    for line in lines:
        if heading := TEST.match(line):
            test = heading[1]
        elif begins := EXAMPLE.match(line):
            arguments = []
            for each in lines:
                text = re.sub(r"^E? {0,3}", "", each)
                if text.strip() == ")":
                    break
                arguments.append(text)
            found.setdefault(test or begins[1], "\n".join(["@example(", *arguments, ")"]))
    return found

"""Run the benchmarks: ``python -m benchmarks [--list] [--json FILE] [--page FILE] [NAME ...]``."""

import argparse
import importlib
import json
import sys
import traceback
from pathlib import Path

from benchmarks import _harness
from benchmarks._page import write_page


def names() -> list[str]:
    """Names of all benchmarks: ``bench_frames.py`` is ``frames``."""
    return sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))


def run(name: str) -> bool:
    """Run one benchmark; False if it broke."""
    print(f"\n{name}")
    try:
        importlib.import_module(f"benchmarks.bench_{name}").main()
    except Exception:  # noqa: BLE001  (one broken benchmark must not hide the others)
        traceback.print_exc()
        return False
    return True


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ours beside a peer.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which ones (default: all)")
    parser.add_argument("--list", action="store_true", help="only list the names")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there, too")
    parser.add_argument("--page", type=Path, metavar="FILE.md", help="put the tables into a page, too")
    args = parser.parse_args()
    unknown = set(args.names) - set(names())
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(names())}")
    return args


def main() -> int:
    args = arguments()
    if args.list:
        print(*names(), sep="\n")
        return 0
    _harness.print_header()
    broken: list[str] = []
    sections: dict[str, list[_harness.Row]] = {}
    for name in args.names or names():
        before = len(_harness.rows())
        if run(name):
            sections[name] = _harness.rows()[before:]
        else:
            broken.append(name)
    if args.page:
        write_page(args.page, sections)
    if args.json:
        args.json.write_text(json.dumps(_harness.report(), indent=2) + "\n", "utf-8")
    if broken:
        print(f"broken: {', '.join(broken)}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

"""What checks call BAD or SUSPECT in all recordings of `tests/real/verdicts.csv`, against what that explains.

Wrong words are counted once for each stream and reason, in recordings that are not simulated. The result of
each recording is kept in a temporary folder named by the code of `transect`: a run that was stopped goes on
where it was, and starts again once the code has changed.
"""

import hashlib
import json
import os
import tempfile
from pathlib import Path

from tests.real import verdicts
from tests.real.verdicts import RECORDINGS, SHORT, expected_problems, explained, hours_of, problems_of

import transect
from benchmarks import _harness

Problems = dict[tuple[str, str, str], str]


def kept_folder() -> Path:
    """Return the folder of results of this code."""
    package = Path(transect.__file__).parent
    digest = hashlib.sha256()
    for path in (*sorted(package.rglob("*.py")), Path(verdicts.__file__)):
        digest.update(path.as_posix().encode() + b"\0" + path.read_bytes())
    return Path(tempfile.gettempdir()) / f"transect-verdicts-{digest.hexdigest()[:16]}"


def judge(name: str, data: Path, kept: Path) -> tuple[Problems, float]:
    """Return the problems and the hours of a recording, as they were kept or by checking it now."""
    path = kept / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"
    if not path.exists():
        with tempfile.TemporaryDirectory() as folder:
            recording = RECORDINGS[name](data, Path(folder))
            rows = [[*key, state] for key, state in problems_of(recording).items()]
            text = json.dumps({"name": name, "hours": hours_of(recording), "problems": rows})
        kept.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(text, "utf-8")
        part.replace(path)
    document = json.loads(path.read_text("utf-8"))
    return {(s, c, r): state for s, c, r, state in document["problems"]}, document["hours"]


def main() -> None:
    default = Path(__file__).parents[1] / "../shared/data"
    data = Path(os.environ.get("TRANSECT_TEST_DATA", default)).resolve()
    rows, hours, differing, kept = list(explained()), 0.0, 0, kept_folder()
    for name in sorted(RECORDINGS, key=lambda each: each not in SHORT):
        (found, span), expected = judge(name, data, kept), expected_problems(name)
        hours += 0.0 if name.startswith("simulated") else span
        for key in sorted(found.keys() | expected.keys()):
            if found.get(key) != expected.get(key):
                differing += 1
                print(f"  {name}: {key} is {found.get(key)}, in the table {expected.get(key)}", flush=True)
    wrong = [row for row in rows if row["is_right"] == "no" and not row["recording"].startswith("simulated")]
    words = {(row["recording"], row["stream"], row["reason"]) for row in wrong}
    print(f"  {len(RECORDINGS)} recordings, {hours:.2f} stream-hours, {len(rows)} rows; kept in {kept}")
    for state in ("BAD", "SUSPECT"):
        of_state = [row for row in rows if row["state"] == state]
        print(f"  {state}: {len(of_state)} rows, wrong {sum(row['is_right'] == 'no' for row in of_state)}")
    _harness.quality("verdicts that are not in the table", differing, "rows", at_most=0)
    _harness.quality("wrong words per stream-hour", len(words) / hours, "1/h", at_most=1.0)

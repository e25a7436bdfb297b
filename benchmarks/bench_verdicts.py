"""What checks call BAD or SUSPECT in all recordings of `tests/real/verdicts.csv`, against what that explains.

Wrong words are counted once for each stream and reason, in recordings that are not simulated.
"""

import os
import tempfile
from pathlib import Path

from tests.real.verdicts import RECORDINGS, expected_problems, explained, hours_of, problems_of

from benchmarks import _harness


def main() -> None:
    default = Path(__file__).parents[1] / "../shared/data"
    data = Path(os.environ.get("TRANSECT_TEST_DATA", default)).resolve()
    rows, hours, differing = list(explained()), 0.0, 0
    for name, make in RECORDINGS.items():
        with tempfile.TemporaryDirectory() as folder:
            recording = make(data, Path(folder))
            found, expected = problems_of(recording), expected_problems(name)
            if not name.startswith("simulated"):
                hours += hours_of(recording)
        for key in sorted(found.keys() | expected.keys()):
            if found.get(key) != expected.get(key):
                differing += 1
                print(f"  {name}: {key} is {found.get(key)}, in the table {expected.get(key)}", flush=True)
    wrong = [row for row in rows if row["is_right"] == "no" and not row["recording"].startswith("simulated")]
    words = {(row["recording"], row["stream"], row["reason"]) for row in wrong}
    print(f"  {len(RECORDINGS)} recordings, {hours:.2f} stream-hours, {len(rows)} rows")
    for state in ("BAD", "SUSPECT"):
        of_state = [row for row in rows if row["state"] == state]
        print(f"  {state}: {len(of_state)} rows, wrong {sum(row['is_right'] == 'no' for row in of_state)}")
    _harness.quality("verdicts that are not in the table", differing, "rows", at_most=0)
    _harness.quality("wrong words per stream-hour", len(words) / hours, "1/h", at_most=1.0)

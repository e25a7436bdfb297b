"""Which sensor could be trusted, when, and why; and what fusion does with the answer.

A drive is simulated, and its IMU hangs for a while. With your own it is ``transect.open(path)``; the commands
are ``transect check PATH`` and ``transect run PoseFusion PATH --check``.
"""

from pathlib import Path

import transect
from transect.evaluation import absolute_error, associate, load_trajectory
from transect.integrity import check
from transect.simulation.day import WorldOptions, simulate, write_day
from transect.simulation.faults import inject

SIGNS = {"OK": "-", "SUSPECT": "!", "BAD": "#", "UNKNOWN": "."}

write_day(
    simulate("rosario", WorldOptions(10.0, seed=2, streams=("Odometry", "Imu", "Gps/*"))), Path("drive")
)
broken, labels = inject(transect.open("drive"), "stuck", severity=1.0, streams=["Imu"])

# Every check judges every stream of its types, second by second.
verdicts = check(broken)
for sensor, windows in verdicts.by_sensor.items():
    print(f"{sensor:14}", "".join(SIGNS[verdict.state] for verdict in windows))
bad = verdicts.select(state="BAD")
for reason in sorted({verdict.reason for verdict in bad}):
    first = bad.select(reason=reason)[0]
    seconds = (first.t0_ns - broken["Imu"].t_ns[0]) / 1e9
    print(f"{first.stream}: {reason} by {first.check} after {seconds:.0f} s, {dict(first.evidence)}")
assert {verdict.stream for verdict in bad} == {"Imu"}, "what was broken, and nothing else"

# In a run the same checks look on, and fusion leaves out what they call BAD.
truth = load_trajectory(broken, truth=True)
errors = {}
for name, acts in {"trusting": False, "checking": True}.items():
    transect.run("PoseFusion", broken, check=acts, out=name)
    error = absolute_error(associate(truth, load_trajectory(f"{name}/pose.tum")), "yaw").statistics
    errors[name] = error.rmse
    print(f"{name}: {error.rmse:.3f} m off, {error.max:.3f} m at the most")
assert errors["checking"] < errors["trusting"]

verdicts.write("verdicts.parquet")  # `transect run ... --verdicts verdicts.parquet` acts in hindsight

"""What a notebook shows of a recording, a stream, a run, verdicts and a product."""

import numpy as np

import transect
from transect.engine import node
from transect.integrity import check
from transect.products import Payload, Product
from transect.recording import Recording, stream_of_values
from transect.types import Imu

HOSTILE = "<script>alert(1)</script>"
T_NS = 1_656_936_023_000_000_000 + np.arange(400) * 10_000_000


def recording() -> Recording:
    acc = {"acc_x": np.zeros(400), "acc_y": np.zeros(400), "acc_z": np.full(400, 9.81)}
    gyro = {f"gyro_{axis}": np.random.default_rng(1).normal(0, 0.01, 400) for axis in "xyz"}
    return Recording("day", (stream_of_values(HOSTILE, T_NS, acc | gyro, type=Imu),))


@node
def strength(imu: Imu) -> float:
    return float(np.linalg.norm(imu.acceleration))


def test_each_noun_is_shown_as_a_table_and_runs_no_name() -> None:
    rec = recording()
    compound = transect.compound(
        "Strong", {"strength": strength}, ["imu -> strength.imu", "strength.out -> out"]
    )
    run = transect.run(compound, rec)
    product = Product(
        "Trajectory", Payload.of(b"1 2 3", "tum"), name=HOSTILE, quality={"score": 0.5, "rmse_m": 0.25}
    )
    shown = {
        "recording": (rec, "400"),
        "stream": (rec.streams[0], "<td>acc_z</td><td>m/s2</td><td>9.81</td>"),
        "run": (run, run.digest[:12]),
        "verdicts": (check(rec), "<th>worst</th>"),
        "product": (product, "<td>rmse_m</td><td>0.25</td>"),
    }
    for name, (value, expected) in shown.items():
        page = str(getattr(value, "_repr_html_")())  # noqa: B009 (as a notebook asks)
        assert expected in page, name
        assert "<table>" in page, name
        assert "<script>" not in page, name


def test_a_stream_shows_its_times_as_times_and_its_numbers_whole() -> None:
    page = recording().streams[0]._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert "<td>time</td><td>utc</td><td>2022-07-04T12:00:23.000</td>" in page
    assert "\u2026" not in page

"""Which sensors suit which conditions: scores, what is still seen, and the document's summary tables."""

from __future__ import annotations

import numpy as np
import pytest
from tests.commands import transect

from transect import formats
from transect.base.clocks import NS
from transect.evaluation.tables import text_of
from transect.integrity import VerdictTable, check
from transect.integrity.sensor_suitability import (
    SensorRow,
    advise,
    find_conditions,
    matrix_table,
    measure_sensors,
    sensors_table,
    summary_table,
)
from transect.recording import Recording, stream_of_values
from transect.simulation.faults import inject
from transect.types import RadarRange

from .recordings import START_NS, radar, yard

CHECKS = ("C01", "C02", "C03", "C06")
Judged = tuple[Recording, VerdictTable]


@pytest.fixture(scope="module")
def days() -> dict[str, Judged]:
    """A laser and a radar for 30 s, with something in the air or somebody around from 10 s to 20 s."""
    made: dict[str, Judged] = {}
    for name in ("clear", "dust", "rain", "human"):
        laser = yard(walker=name == "human")
        if name in ("dust", "rain"):
            laser = inject(laser, name, severity=0.6, seed=1, start="+10s", end="+20s")[0]
        recording = Recording(name, (*laser.streams, radar()), frames=laser.frames)
        made[name] = recording, check(recording, checks=CHECKS)
    return made


def rows(days: dict[str, Judged]) -> dict[tuple[str, str], SensorRow]:
    found = [row for each in days.values() for row in measure_sensors(*each)]
    return {(row.recording, row.sensor): row for row in found}


def test_a_laser_loses_beams_and_score_in_dust_and_the_radar_does_not(days: dict[str, Judged]):
    of = rows(days)
    assert of["dust", "laser"].state == "BAD"
    assert of["dust", "radar"].meanwhile == of["clear", "laser"].meanwhile == 1.0
    assert of["dust", "laser"].meanwhile < 0.3 < of["dust", "laser"].score < 0.9  # of the cloud; of all 30 s
    assert 0.5 < of["dust", "laser"].ok < 0.75  # ten of thirty seconds, and the time to clear
    clear, dust = (
        np.array([each.value.measured for each in days[air][0]["laser"]]) for air in ("clear", "dust")
    )
    came = np.isfinite(clear).mean()
    nearer = np.mean(dust[200:400] < np.nan_to_num(clear[200:400], nan=80.0) - 0.6)  # from 10 s to 20 s
    assert nearer > 0.2
    assert of["clear", "laser"].beams == pytest.approx(came, abs=0.005)
    assert of["dust", "laser"].beams == pytest.approx(came - nearer, abs=0.06)
    assert of["rain", "laser"].beams > came - 0.02
    assert of["human", "laser"].state == "OK"


def test_steady_ranges_of_a_radar_are_targets_and_others_are_not():
    angle = np.tile(np.radians(np.arange(-10, 10, 2.0)), 8 * 3)
    rng = np.random.default_rng(0)
    spread = np.where(angle < 0, 0.05, 5.0)  # of ten bearings five are steady
    columns = {
        "angle": angle,
        "range": 20 + spread * rng.normal(size=len(angle)),
        "reflectivity": np.full(len(angle), 30.0),
    }
    t_ns = START_NS + np.arange(len(angle)) * (NS // 80)
    eyes = stream_of_values("radar", t_ns, columns, type=RadarRange, frame="mast")
    recording = Recording("eyes", (eyes,))
    [row] = measure_sensors(recording, check(recording, checks=["C06", "T02"]))
    assert row.targets == 5


def test_advice_names_whom_to_use_in_each_condition(days: dict[str, Judged]):
    said = advise(list(rows(days).values()))
    assert said[0] == "clear: use laser, radar"
    assert said[1] == "dust: use radar; not laser"
    assert len(said) == 4


def test_the_summary_has_a_mark_where_the_document_has_one(days: dict[str, Judged]):
    table = summary_table(list(days.values()))
    assert table.headings == ("dataset", "dust", "smoke", "rain", "human", "lasers", "radar", "cameras")
    marks = {row[0]: row[1:5] for row in table.rows}
    assert marks["clear"] == ("", "", "", "")
    assert marks["dust"] == ("?", "?", "", "")  # no camera tells dust from smoke
    assert marks["rain"] == ("", "", "X", "")
    assert marks["human"] == ("", "", "", "X")
    recording, verdicts = days["clear"]
    said = Recording("07-StaticSmoke", recording.streams)
    assert summary_table([(said, verdicts)]).rows[0][1:5] == ("", "o", "", "")  # said, and not found
    assert find_conditions(verdicts) == set()


def test_layouts_and_formats(days: dict[str, Judged]):
    every = list(rows(days).values())
    matrix = matrix_table(every)
    assert matrix.headings == ("sensor", "clear", "dust", "rain", "human")
    assert [row[0] for row in matrix.rows] == ["laser", "radar"]
    assert text_of(sensors_table(every), "markdown").startswith("| condition | sensor | still sees | score |")
    twice = [*every, SensorRow("again", ("dust",), "laser", "LaserScan", "BAD", 0.5, 0.6, 0.1)]
    assert sensors_table(twice).headings[:3] == ("condition", "recording", "sensor")
    assert matrix_table(twice).headings[-1] == "again (dust)"


def test_the_command_fits_a_screen(days: dict[str, Judged], tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("sensors") / "dust"
    formats.write(days["dust"][0], folder, format="parquet")
    done = transect("table", "sensors", folder)
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "dust: use radar; not laser" in done.stdout

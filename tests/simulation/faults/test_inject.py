"""What holds for every fault: labels are exact, severity 0 is nothing, more is more, the seed decides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulation.faults.scene import START_NS, labelled_rows, scene, touched_rows

from transect.errors import StreamError, UsageError
from transect.recording import Recording, Stream, arrow
from transect.simulation.faults import FAULTS, LABELS, inject
from transect.types import Record

OF_STREAMS = [name for name, fault in FAULTS.items() if fault.apply is not None]
SCENE = scene()
SMALL = {
    name: SCENE.replace(streams=tuple(s for s in SCENE if s.name not in ("Lidar", "RadarSpectrum")))
    for name in OF_STREAMS
}


def names_in(labels: object) -> set[str]:
    return set(arrow.texts(labels, "stream"))  # type: ignore[arg-type]


@pytest.mark.parametrize("fault", OF_STREAMS)
def test_every_changed_sample_has_a_label_with_its_time_and_every_labelled_sample_changed(fault: str) -> None:
    changed, labels = inject(SCENE, fault, 0.8, seed=3)
    assert labels.num_rows > 0
    for before in SCENE:
        after = changed[before.name]
        assert touched_rows(before, after) == labelled_rows(labels, before.name), before.name
    index, t_ns = arrow.numbers(labels, "index"), arrow.numbers(labels, "t_ns")
    for name in names_in(labels):
        own = np.array([n == name for n in arrow.texts(labels, "stream")])
        np.testing.assert_array_equal(SCENE[name].t_ns[index[own]], t_ns[own])
    assert set(arrow.texts(labels, "fault")) == {fault}
    assert set(" ".join(arrow.texts(labels, "reason")).split()) == set(FAULTS[fault].reasons) > set()
    assert set(arrow.numbers(labels, "severity").tolist()) == {0.8}
    fraction = arrow.numbers(labels, "fraction")
    assert fraction.min() >= 0
    assert fraction.max() <= 1


@pytest.mark.parametrize("fault", OF_STREAMS)
def test_severity_0_is_the_recording_itself(fault: str) -> None:
    changed, labels = inject(SCENE, fault, 0.0, seed=3)
    assert changed is SCENE
    assert labels.num_rows == 0


@pytest.mark.parametrize("fault", OF_STREAMS)
def test_the_seed_decides_and_nothing_else(fault: str) -> None:
    recording = SMALL[fault]
    one, labels = inject(recording, fault, 0.7, seed=5)
    other, again = inject(recording, fault, 0.7, seed=5)
    assert labels.equals(again)
    for stream in one:
        for name in stream.table.column_names:
            mine, theirs = (s.table.column(name).to_pylist() for s in (stream, other[stream.name]))
            assert repr(mine) == repr(theirs)  # NaN is NaN


@given(
    st.sampled_from(OF_STREAMS),
    st.integers(0, 50),
    st.floats(0.05, 1.0),
    st.floats(0.05, 1.0),
)
def test_more_severity_touches_at_least_as_much(fault: str, seed: int, one: float, other: float) -> None:
    recording = SMALL[fault]
    less, more = (inject(recording, fault, severity, seed)[1] for severity in sorted((one, other)))
    for stream in recording:
        assert labelled_rows(less, stream.name) <= labelled_rows(more, stream.name)


def test_nothing_is_touched_outside_the_window() -> None:
    some = SCENE.select("Imu", "Gnss", "Wheels", "Laser*", "Stereo*", "Arm/*", "Estimate")
    for fault in OF_STREAMS:
        if fault in ("late_start", "early_stop", "wheel_slip"):
            continue  # they begin or end with the recording; ticks keep what they gained
        _, labels = inject(some, fault, 1.0, start="+5s", end="+10s")
        seconds = (arrow.numbers(labels, "t_ns") - START_NS) / 1e9
        assert seconds.min() >= 5.0
        assert seconds.max() < 10.0


def test_only_the_streams_that_match_are_touched() -> None:
    changed, labels = inject(SCENE, "stuck", 1.0, streams=("imu", "Wh*"))
    assert names_in(labels) == {"Imu", "Wheels"}
    assert changed["Gnss"] is SCENE["Gnss"]


def test_the_labels_are_a_stream_of_truth_and_add_up() -> None:
    once, first = inject(SCENE, "dust", 0.5, seed=1)
    twice, second = inject(once, "gnss_spike", 1.0, seed=2)
    truth = twice[LABELS]
    assert truth.role == "truth"
    assert len(truth) == first.num_rows + second.num_rows
    assert twice.conditions["injected"] == ["dust, severity 0.5, seed 1", "gnss_spike, severity 1, seed 2"]


def test_two_faults_of_one_kind_keep_their_pictures_apart() -> None:
    recording = scene("VideoVisual")
    once, _ = inject(recording, "overexposure", 0.3, start="+1s", end="+2s")
    twice, labels = inject(once, "overexposure", 0.3, start="+3s", end="+4s")
    assert touched_rows(once["VideoVisual"], twice["VideoVisual"]) == labelled_rows(labels, "VideoVisual")
    assert touched_rows(recording["VideoVisual"], twice["VideoVisual"]) == {4, 5, 6, 7, 12, 13, 14, 15}


def test_truth_is_never_touched() -> None:
    truth = SCENE["Imu"].replace(name="truth/imu", role="truth")
    nav = SCENE["Imu"].replace(name="Nav", role="truth")
    recording = SCENE.replace(streams=(*SCENE.streams, truth, nav))
    changed, labels = inject(recording, "dropout", 1.0)
    assert changed["truth/imu"] is truth
    assert changed["Nav"] is nav
    assert "Nav" in names_in(inject(recording, "dropout", 1.0, streams=("Nav",))[1])
    with pytest.raises(UsageError, match="cannot affect"):
        inject(recording, "dropout", 1.0, streams=("truth/*",))
    assert names_in(labels) == {s.name for s in SCENE}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("dusk", 0.5), "no fault 'dusk'"),
        (("dust", 1.5), "not between 0 and 1"),
        (("bit_flip", 0.5), "is a fault of files"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: tuple[str, float], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        inject(SCENE, *arguments)


def test_a_fault_says_which_streams_and_parameters_it_knows() -> None:
    with pytest.raises(UsageError, match="cannot affect Imu") as error:
        inject(SCENE, "blur", 0.5, streams=("Imu",))
    assert "Image" in error.value.why
    with pytest.raises(StreamError, match="no stream of scene matches Sonar"):
        inject(SCENE, "noise", 0.5, streams=("Imu", "Sonar"))
    with pytest.raises(UsageError, match="has no parameter 'winds'") as error:
        inject(SCENE, "dust", 0.5, parameters={"winds": 1.0})
    assert "wind" in error.value.hint


def test_a_recording_without_samples_stays_as_it_is() -> None:
    empty = Recording("empty", (Stream("Log", Record, arrow.empty({"a": ""})),))
    changed, labels = inject(empty, "dropout", 1.0)
    assert changed is empty
    assert labels.num_rows == 0

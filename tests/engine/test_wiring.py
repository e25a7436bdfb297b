"""Which stream feeds which input: by type, then by tag; everything else is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.engine.wiring import CompoundInput, WiringError, wire_inputs, words
from transect.errors import UsageError
from transect.recording import Recording, Stream, arrow
from transect.types import GridMap, Image, Imu, PointCloud, Pose, RigidBodyState


def stream(name: str, kind: type, **attributes: Any) -> Stream:
    return Stream(name, kind, arrow.table(np.arange(3), {}), **attributes)


def recording(*streams: Stream) -> Recording:
    return Recording("day", streams)


def inputs(**wanted: type | tuple[type, str]) -> dict[str, CompoundInput]:
    return {
        name: CompoundInput(name, *given) if isinstance(given, tuple) else CompoundInput(name, given)
        for name, given in wanted.items()
    }


STEREO = recording(
    stream("cam/l", Image, tag="left"),
    stream("cam/r", Image, tag="right"),
    stream("Imu", Imu),
    stream("truth/trajectory", Pose, role="truth"),
    stream("odom", RigidBodyState, role="estimate"),
)


def names(wiring: Any) -> dict[str, str]:
    return {name: stream.name for name, stream in wiring.streams.items()}


def failure(*args: Any, **kwargs: Any) -> WiringError:
    with pytest.raises(WiringError) as caught:
        wire_inputs(*args, **kwargs)
    return caught.value


def test_the_only_stream_of_a_type_is_wired_by_type() -> None:
    wiring = wire_inputs(inputs(imu=Imu), STEREO)
    assert names(wiring) == {"imu": "Imu"}
    assert wiring.links[0].how == "by type"
    assert not wiring.used_truth


def test_a_plain_tuple_is_an_input() -> None:
    assert names(wire_inputs({"imu": ("imu", Imu, "")}, STEREO)) == {"imu": "Imu"}


def test_a_subtype_fits_and_a_supertype_does_not() -> None:
    class Special(Imu):
        pass

    assert names(wire_inputs(inputs(imu=Imu), recording(stream("a", Special)))) == {"imu": "a"}
    assert "a is an Imu, not a Special" in failure(inputs(imu=Special), recording(stream("a", Imu))).why


def test_of_several_alike_the_declared_tag_chooses() -> None:
    wiring = wire_inputs(inputs(one=(Image, "right"), two=(Image, "left")), STEREO)
    assert names(wiring) == {"one": "cam/r", "two": "cam/l"}
    assert [link.how for link in wiring.links] == ["by tag right", "by tag left"]


@pytest.mark.parametrize("name", ["leftImage", "image_left", "left", "LEFT", "LeftCameraImage"])
def test_of_several_alike_a_tag_in_the_name_chooses(name: str) -> None:
    assert names(wire_inputs(inputs(**{name: Image}), STEREO)) == {name: "cam/l"}


def test_of_several_alike_the_only_one_without_a_tag_is_meant() -> None:
    day = recording(stream("front", Image), stream("rear", Image, tag="rear"))
    [link] = wire_inputs(inputs(picture=Image), day).links
    assert (link.stream.name, link.how) == ("front", "without a tag")


def test_a_tag_is_a_whole_word_of_the_name() -> None:
    assert words("leftoverImage2") == {"leftover", "image", "2"}
    assert words("rawGPSFix") == {"raw", "gps", "fix"}
    assert "cam/l (left), cam/r (right)" in failure(inputs(leftoverImage=Image), STEREO).why


def test_an_ambiguous_input_names_its_candidates_and_what_to_type() -> None:
    error = failure(inputs(image=Image), STEREO)
    assert isinstance(error, UsageError)
    assert error.what == "cannot tell which stream of day feeds image (Image)"
    assert error.hint == "--wire image=cam/l or --wire image=cam/r"


def test_what_the_others_took_by_tag_leaves_one_for_the_input_without() -> None:
    wiring = wire_inputs(inputs(image=Image, right=Image), STEREO)
    assert names(wiring) == {"image": "cam/l", "right": "cam/r"}


def test_one_stream_never_feeds_two_inputs_by_itself() -> None:
    mono = recording(stream("cam", Image))
    error = failure(inputs(left=Image, right=Image), mono)
    assert "left: it could be cam, but so could another input" in error.why
    assert "--wire right=cam" in error.hint


def test_one_stream_feeds_two_inputs_if_asked() -> None:
    mono = recording(stream("cam", Image))
    wiring = wire_inputs(inputs(left=Image, right=Image), mono, {"left": "cam", "right": "cam"})
    assert names(wiring) == {"left": "cam", "right": "cam"}


def test_a_stream_with_another_tag_is_not_taken_for_want_of_the_right_one() -> None:
    error = failure(inputs(image=(Image, "left")), recording(stream("cam", Image, tag="right")))
    assert "cam has the tag right" in error.why
    assert error.hint == "--wire image=cam"


@pytest.mark.parametrize("role", ["truth", "estimate", "derived"])
def test_only_measurements_are_wired_by_themselves(role: Any) -> None:
    day = recording(stream("truth/trajectory", Pose, role=role))
    error = failure(inputs(pose=Pose), day)
    assert f"truth/trajectory fits but is {'an estimate' if role == 'estimate' else role}" in error.why
    assert error.hint == "--wire pose=truth/trajectory"
    wiring = wire_inputs(inputs(pose=Pose), day, {"pose": "truth/trajectory"})
    assert names(wiring) == {"pose": "truth/trajectory"}
    assert wiring.used_truth == (role == "truth")
    assert len(wiring.notes) == 1


def test_where_nothing_fits_near_types_are_named() -> None:
    error = failure(inputs(pose=Pose), recording(stream("odom", RigidBodyState), stream("Imu", Imu)))
    assert error.why.endswith("; odom is a RigidBodyState, not a Pose")


def test_all_inputs_that_cannot_be_wired_are_named_at_once() -> None:
    error = failure(inputs(image=Image, cloud=PointCloud, imu=Imu), STEREO)
    assert error.what.endswith("image (Image), cloud (PointCloud)")
    assert "cloud: no measurement of type PointCloud is left for it" in error.why


def test_an_input_that_nobody_needs_may_stay_unwired_and_that_is_said() -> None:
    wiring = wire_inputs(inputs(imu=Imu, cloud=PointCloud, image=Image), STEREO, optional={"cloud", "image"})
    assert names(wiring) == {"imu": "Imu"}
    _, _, cloud, image = str(wiring).splitlines()
    assert cloud.endswith("-       stays unwired: nothing fits")
    assert "stays unwired: it could be cam/l" in image


def test_an_optional_input_with_several_candidates_says_what_is_not_used_and_how_to_choose() -> None:
    day = recording(stream("a", Imu), stream("b", Imu), stream("c", Pose))
    wanted = inputs(imu=Imu, motion=Pose, position=Pose)
    assert wire_inputs(wanted, day, optional=wanted).notes == (
        "a or b could feed imu, and nothing does: to choose, --wire imu=a",
        "c could feed motion or position, and nothing does: to choose, --wire motion=c",
    )
    asked = {"imu": "none", "motion": "c"}
    wiring = wire_inputs(wanted, day, asked, optional=wanted)
    assert (names(wiring), wiring.notes) == ({"motion": "c"}, ())


def test_of_inputs_that_stand_for_each_other_the_first_is_wired_and_one_must_be() -> None:
    wanted = {
        "state": CompoundInput("state", RigidBodyState, one_of="path"),
        "pose": CompoundInput("pose", Pose, one_of="path"),
    }
    both = recording(stream("p", Pose), stream("s", RigidBodyState))
    assert names(wire_inputs(wanted, both, optional=wanted)) == {"state": "s"}
    assert names(wire_inputs(wanted, both, {"pose": "p"}, optional=wanted)) == {"pose": "p"}
    unsure = recording(stream("p", Pose), stream("s", RigidBodyState), stream("t", RigidBodyState))
    error = failure(wanted, unsure, optional=wanted)
    assert error.what == "cannot tell which stream of day feeds state (RigidBodyState) or pose (Pose)"
    assert error.options == [["--wire state=s", "--wire state=t", "--wire pose=p"]]


def test_an_input_for_many_takes_all_that_is_left() -> None:
    wanted = {
        "left": CompoundInput("left", Image, "left"),
        "others": CompoundInput("others", Image, many=True),
    }
    day = recording(*STEREO.streams, stream("main", Image))
    wiring = wire_inputs(wanted, day)
    assert wiring.pairs == [("left", day["cam/l"]), ("others", day["cam/r"]), ("others", day["main"])]
    assert list(wiring.to_dict()) == ["left", "others", "others 2"]


def test_an_input_that_is_needed_comes_before_one_that_is_not() -> None:
    wiring = wire_inputs(inputs(spare=Imu, imu=Imu), STEREO, optional={"spare"})
    assert names(wiring) == {"imu": "Imu"}


def test_asking_for_an_unknown_input_suggests_the_known_ones() -> None:
    error = failure(inputs(leftImage=Image), STEREO, {"leftImag": "cam/l"})
    assert "no input 'leftImag'" in error.what
    assert error.hint == "did you mean 'leftImage'?"


def test_asking_for_an_unknown_stream_suggests_the_known_ones() -> None:
    error = failure(inputs(leftImage=Image), STEREO, {"leftImage": "cam/lx"})
    assert error.what == "--wire leftImage=cam/lx: day has no stream 'cam/lx'"
    assert "did you mean 'cam/l'" in error.hint


def test_asking_for_a_stream_of_another_type_names_those_that_fit() -> None:
    error = failure(inputs(image=Image), STEREO, {"image": "Imu"})
    assert "its samples are Imu, the input takes Image" in error.why
    assert error.hint == "these fit: cam/l, cam/r"


def test_streams_on_different_clocks_are_refused_with_the_offset_to_type() -> None:
    day = recording(stream("a", Imu), stream("b", Image), stream("c", PointCloud, clock="device"))
    error = failure(inputs(imu=Imu, image=Image, cloud=PointCloud), day)
    assert error.why == "device: c; utc: a, b"
    assert error.hint.startswith("--offset c=auto  ")


def test_what_holds_for_all_times_goes_with_any_clock() -> None:
    day = recording(stream("a", Imu), stream("map", GridMap, clock="index", meta={"timeless": True}))
    assert names(wire_inputs(inputs(imu=Imu, dem=GridMap), day)) == {"imu": "a", "dem": "map"}


def test_a_wiring_prints_as_an_aligned_table() -> None:
    wanted = inputs(leftImage=(Image, "left"), imu=Imu, pose=Pose)
    wiring = wire_inputs(wanted, STEREO, {"pose": "truth/trajectory"})
    assert str(wiring).splitlines() == [
        "input      type   stream            how",
        "leftImage  Image  cam/l             by tag left",
        "imu        Imu    Imu               by type",
        "pose       Pose   truth/trajectory  asked",
    ]
    assert wiring.to_dict()["pose"]["role"] == "truth"


@given(st.permutations(["left", "right", "main", "any"]), st.permutations(["left", "right", "main", ""]))
def test_the_order_of_inputs_and_streams_does_not_matter(order: list[str], tags: list[str]) -> None:
    day = recording(*(stream(f"cam_{tag or 'plain'}", Image, tag=tag) for tag in tags))
    wiring = wire_inputs({name: CompoundInput(name, Image) for name in order}, day)
    wanted = {"left": "cam_left", "right": "cam_right", "main": "cam_main", "any": "cam_plain"}
    assert names(wiring) == wanted


def with_units(unit: str) -> Recording:
    columns = {"acc_x": np.array([1.0, 2.0, 3.0]), "gyro_x": np.zeros(3)}
    table = arrow.table(np.arange(3), columns, units={"acc_x": unit, "gyro_x": "rad/s"})
    return recording(Stream("imu", Imu, table))


def test_a_stream_in_another_unit_is_converted_and_that_is_said() -> None:
    wiring = wire_inputs(inputs(imu=Imu), with_units("g"))
    assert wiring.streams["imu"]["acc_x"] == pytest.approx([9.80665, 19.6133, 29.41995])
    assert wiring.streams["imu"].units["acc_x"] == "m/s2"
    assert wiring.notes == ("imu: acc_x is in g, and is converted to m/s2",)
    assert wire_inputs(inputs(imu=Imu), with_units("m/s2")).notes == ()
    assert wire_inputs(inputs(imu=Imu), with_units("")).notes == ()


@pytest.mark.parametrize(
    ("unit", "why"), [("deg", "a unit of another kind than m/s2"), ("furlong", "no unit 'furlong'")]
)
def test_a_stream_whose_unit_cannot_be_converted_is_refused(unit: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"imu has acc_x in {unit}, where m/s2 is wanted") as caught:
        wire_inputs(inputs(imu=Imu), with_units(unit))
    assert why in str(caught.value)

import numpy as np
import pytest
from scipy.stats import chi2

import transect
from transect.datasets.marulan.world import disturbances
from transect.datasets.marulan.world.disturbances import CLEAR_HOUR
from transect.datasets.marulan.world.navigation import STATE_SIGMAS, state_errors
from transect.datasets.marulan.world.sites import Site
from transect.errors import StreamError, UsageError
from transect.geometry import rotations, se3
from transect.recording import arrow
from transect.simulation.day import WorldOptions, iterate_windows, simulate, usual_seconds, write_day
from transect.simulation.motion import Motion
from transect.simulation.terrain import flat

RANGE_SENSORS = ("Laser*", "Radar*", "Nav")


@pytest.fixture(scope="module")
def static():
    return simulate("marulan", WorldOptions(seconds=2.0, streams=RANGE_SENSORS))


@pytest.fixture(scope="module")
def reflectors():
    conditions = {"reflectors": "standing"}
    return simulate("marulan", WorldOptions(seconds=2.0, streams=RANGE_SENSORS, conditions=conditions))


@pytest.fixture(scope="module")
def driving():
    return simulate(
        "marulan", WorldOptions(seconds=6.0, scale=0.1, conditions={"scene": "houses", "human": "walking"})
    )


def kinds_of(day, laser):
    """What each beam of a laser hit, by name."""
    table = day.truth.tables["hits"]
    mine = table.filter(arrow.from_numpy(np.array(arrow.texts(table, "stream")) == laser))
    names = np.array(arrow.texts(day.truth.tables["hit_kinds"], "kind"))
    return names[arrow.lists_of(mine, "kinds")[0].astype(int)]


def beams_of(stream):
    """Bearings (k,), ranges (k,) and rows (k,) of all beams."""
    ranges, offsets = arrow.lists_of(stream.table, "ranges")
    row = np.repeat(np.arange(len(stream)), np.diff(offsets))
    beam = np.arange(len(row)) - offsets[row]
    return stream["start_angle"][row] + beam * stream["angle_increment"][row], ranges, row


def in_table_1(recording, laser):
    """Points of a laser in the axes of Table 1 (X right, Y ahead, Z up, m): by the report's frames alone."""
    angle, ranges, _ = beams_of(recording[laser])
    T = recording.frames.lookup("Body", laser)
    body = (np.column_stack([np.cos(angle), np.sin(angle), 0 * angle]) * ranges[:, None]) @ T[:3, :3].T + T[
        :3, 3
    ]
    centre = [recording.frames.lookup("Body", name)[:3, 3] for name in ("LaserHorizontal", "LaserVertical")]
    right, ahead, down = (body - np.mean(centre, axis=0))[:, [1, 0, 2]].T
    # Object 1: the centre of the sensor frame is at 190, -293 cm, 185 cm high.
    return np.column_stack([right + 1.90, ahead - 2.93, 1.85 - down])


POLES = {
    "supporting pole": [(0, 0), (4.31, 0), (0, 9.30), (4.31, 9.30)],
    "laser pole": [(-0.23, 2.95), (4.40, 3.64)],
}
BOXES = {
    "plastic box": ((1.17, 1.87), (5.67, 6.09)),
    "brick tower": ((0.26, 0.51), (6.72, 6.95)),
    "canister": ((3.15, 3.42), (7.58, 7.86)),
    "table": ((0.98, 1.90), (8.61, 8.64)),
}


@pytest.mark.parametrize("laser", ["LaserHorizontal", "LaserPort", "LaserStarboard"])
def test_lasers_see_the_objects_of_table_1_where_the_table_has_them(static, laser):
    points, kinds = in_table_1(static.recording, laser), kinds_of(static, laser)
    for kind, places in POLES.items():
        seen = points[kinds == kind][:, :2]
        off = np.min([np.hypot(*(seen - place).T) for place in places], axis=0)
        assert len(seen)
        assert np.abs(off - off.mean()).max() < 0.06
        assert 0.02 < off.mean() < 0.05  # the poles' radii are 3 and 4.5 cm, and only their fronts are seen
    for kind, ((west, east), (near, far)) in BOXES.items():
        x, y = points[kinds == kind][:, :2].T
        assert ((x > west - 0.05) & (x < east + 0.05) & (y > near - 0.05) & (y < far + 0.05)).all()


def test_every_object_of_table_1_is_seen_by_a_laser_and_every_laser_sees_some(static):
    """4.2: every sensor could see at least some of them; 5.1: the laser detects all in its field of view."""
    seen = {laser: set(kinds_of(static, laser)) for laser in static.recording.select("Laser*")._by_name}
    expected = {"supporting pole", "tree", "leaves", "laser pole", *BOXES}
    assert expected <= set.union(*seen.values())
    assert all(kinds & expected for kinds in seen.values())


def test_the_frame_s_poles_are_the_first_and_last_feature_on_the_left_and_right(static):
    """5.1 of Fig. 26: objects origin and 4 bound what is perceived of the test area."""
    angle, _, _ = beams_of(static.recording["LaserHorizontal"])
    kinds = kinds_of(static, "LaserHorizontal")
    inside = np.isin(kinds, ["supporting pole", "laser pole", "tree", "leaves", *BOXES])
    assert kinds[inside][np.argmin(angle[inside])] == "supporting pole"
    assert kinds[inside][np.argmax(angle[inside])] == "supporting pole"
    assert np.degrees(angle[inside]).min() < -30
    assert np.degrees(angle[inside]).max() > 35


def test_clear_scans_repeat_to_the_noise_and_have_no_early_returns(static):
    _, ranges, row = beams_of(static.recording["LaserHorizontal"])
    first = ranges[row % 4 == 0].reshape(-1, 181)
    codes, _ = arrow.lists_of(static.recording["LaserHorizontal"].table, "range_error")
    usual = np.median(first, axis=0)
    measured = usual < 80
    assert (np.abs(first - usual)[:, measured] < 0.06).all()
    assert (np.isnan(first) == ~measured).all()
    assert (codes == np.where(np.isnan(ranges), 8191, 0)).all()


def test_the_radar_is_noisier_than_the_lasers(static):
    """5.1: the laser provides much more precise range measurements than the radar."""
    turn = np.degrees(static.recording["RadarRangeBearing"]["angle"])
    ranges = static.recording["RadarRangeBearing"]["range"]
    ahead = (turn > 5) & (turn < 15)
    _, laser, row = beams_of(static.recording["LaserHorizontal"])
    spread = np.nanmean(np.std(laser[row % 4 == 0].reshape(-1, 181)[:, 75:86], axis=0))
    assert np.std(ranges[ahead]) > 5 * spread


@pytest.mark.parametrize(("place", "height"), [((0.88, 3.21), 1.04), ((2.49, 7.80), 0.145)])
def test_the_radar_finds_the_reflectors_within_a_bin(reflectors, place, height):
    recording = reflectors.recording
    centre = [recording.frames.lookup("Body", name)[:3, 3] for name in ("LaserHorizontal", "LaserVertical")]
    there = np.mean(centre, axis=0) + np.array([place[1] + 2.93, place[0] - 1.90, 1.85 - height])
    radar = np.linalg.inv(recording.frames.lookup("Body", "Radar")) @ [*there, 1.0]
    distance, bearing = np.linalg.norm(radar[:3]), np.arctan2(radar[1], radar[0])
    spectra = recording["RadarSpectrum"]
    off = np.abs((spectra["angle"] - bearing + np.pi) % (2 * np.pi) - np.pi)
    lines = arrow.lists_of(spectra.table, "reflectivity")[0].reshape(-1, 512)[off < np.radians(1.0)]
    bins = np.arange(1, 513) * 0.28150 - 0.3507  # eq. 1
    near = np.abs(bins - distance) < 1.0
    assert len(lines) > 5
    found = bins[near][lines[:, near].argmax(axis=1)]
    assert np.abs(found - distance).max() <= 0.29
    assert lines[:, near].max(axis=1).min() > 45
    ranges = recording["RadarRangeBearing"]["range"][off < np.radians(1.0)]
    assert np.abs(ranges - distance).max() < 0.15


def test_without_reflectors_there_are_none(static):
    assert "radar reflector" not in arrow.texts(static.truth.tables["objects"], "kind")


def test_nav_says_where_the_vehicle_is_to_a_few_centimetres_facing_south(static):
    nav = static.recording["Nav"]
    truth = static.truth.motion.position[0]
    assert abs(nav["yaw"].mean()) == pytest.approx(np.pi, abs=0.01)
    assert nav["north"].mean() - 6_156_000 == pytest.approx(truth[1], abs=0.05)
    assert nav["east"].mean() - 226_000 == pytest.approx(truth[0], abs=0.05)
    assert nav["covariance"].shape == (40, 144)
    np.testing.assert_allclose(nav["covariance"][0].reshape(12, 12).diagonal(), STATE_SIGMAS**2)


def test_errors_of_nav_are_as_large_as_its_covariance_says():
    start = np.arange(3) * 50_000_000
    errors = np.array([state_errors(start, seed)[-1] for seed in range(60)]) / STATE_SIGMAS
    total, dof = float((errors**2).sum()), errors.size
    assert chi2.ppf(0.001, dof) < total < chi2.ppf(0.999, dof)


def test_nav_of_a_drive_follows_the_truth_in_place_speed_and_attitude(driving):
    nav, motion = driving.recording["Nav"], driving.truth.motion.at(driving.recording["Nav"].t_ns)
    place = np.column_stack([nav["east"] - 226_000, nav["north"] - 6_156_000, -(nav["down"] + 640)])
    assert np.abs(place - motion.position).max() < 6 * 0.012
    speed = np.column_stack([nav["deast"], nav["dnorth"], -nav["ddown"]])
    assert np.abs(speed - motion.velocity).max() < 6 * 0.01
    moved = motion.position[60:, :2] - motion.position[40:-20, :2]  # in a second, once it drives
    ahead = np.column_stack([np.sin(nav["yaw"]), np.cos(nav["yaw"])])[50:-10]
    assert (np.einsum("ij,ij->i", ahead, moved) > 0.999 * np.linalg.norm(moved, axis=1)).all()
    assert np.abs(nav["dyaw"] - motion.angular_velocity[:, 2]).max() < 0.02
    said = rotations.matrix_from_quaternion(nav.array("qx", "qy", "qz", "qw"))  # of Body, whose z points down
    true = motion.transforms[:, [1, 0, 2], :3] * [[1], [1], [-1]]  # north, east, down
    np.testing.assert_allclose(said, true, atol=6 * np.radians(0.08))


def test_wheels_turn_as_fast_as_the_vehicle_and_its_slip_say(driving):
    slip = driving.truth.tables["slip"]
    left, right, speed = (arrow.numbers(slip, name) for name in ("left", "right", "speed"))
    wheels = np.column_stack(
        [driving.recording[f"Payload/Wheel{side}"]["angular_velocity"] for side in ("Left", "Right")]
    )
    way = (0.30 * wheels * (1 - np.column_stack([left, right]))).mean(axis=1)
    assert speed.max() > 1.0
    np.testing.assert_allclose(way, speed, atol=0.05)
    assert driving.recording["Payload/Battery24V"]["voltage"].mean() == pytest.approx(27.5, abs=0.3)


def test_scans_of_a_drive_put_walls_where_they_stand(driving):
    """The long house's north side is at y = -13."""
    recording, kinds = driving.recording, kinds_of(driving, "LaserStarboard")
    angle, ranges, row = beams_of(recording["LaserStarboard"])
    T = recording.frames.lookup("Body", "LaserStarboard")
    body = (np.column_stack([np.cos(angle), np.sin(angle), 0 * angle]) * ranges[:, None]) @ T[:3, :3].T + T[
        :3, 3
    ]
    beam = np.arange(len(row)) - np.searchsorted(row, row)
    motion = driving.truth.motion.at(
        recording["LaserStarboard"].t_ns[row] + (beam / 360 / 75 * 1e9).astype(np.int64)
    )
    world = np.einsum("nij,nj->ni", motion.transforms[:, :3, :3], body) + motion.position
    wall = (kinds == "house") & (ranges < 80) & (np.abs(world[:, 0]) < 10.5) & (world[:, 1] < 0)
    assert wall.sum() > 1000
    assert world[wall, 1].mean() == pytest.approx(-13.0, abs=0.005)
    assert world[wall, 1].std() < 0.02


def test_a_human_walks_past_and_is_named_in_the_hits(driving):
    human = kinds_of(driving, "LaserHorizontal") == "human"
    assert human.any()
    assert not human.all()


def test_a_slice_has_the_rows_of_the_whole(static):
    again = simulate("marulan", WorldOptions(seconds=2.0, streams=RANGE_SENSORS)).recording.slice(
        "+0.7s", "+1.3s"
    )
    whole = static.recording.slice("+0.7s", "+1.3s")
    for name in ("LaserPort", "RadarSpectrum", "RadarRangeBearing", "Nav"):
        one, other = again[name].table, whole[name].table
        if name == "LaserPort":  # whose ranges are NaN where nothing came back
            np.testing.assert_array_equal(
                arrow.lists_of(one, "ranges")[0], arrow.lists_of(other, "ranges")[0]
            )
            one, other = one.drop_columns("ranges"), other.drop_columns("ranges")
        assert one.equals(other)
        assert "parsed" not in static.recording[name].__dict__ or len(whole[name]) < len(
            static.recording[name]
        )
    assert len(again["RadarSpectrum"]) == 600
    empty = static.recording["LaserPort"].between("+9s", "+10s")
    assert (len(empty), empty.table.num_rows) == (0, 0)
    odd = static.recording["LaserPort"].take(np.arange(150) % 2 == 1)
    assert odd.table.num_rows == 75


CLEAR = WorldOptions(seconds=2.0, seed=5, streams=("LaserHorizontal",), conditions=CLEAR_HOUR)


@pytest.fixture(scope="module")
def ordinary():
    return simulate("marulan", CLEAR)


def test_in_an_ordinary_clear_hour_beams_waver_that_repeat_in_an_ideal_world(ordinary):
    """Windy leaves, shaken beams at edges: returns come early by half a metre, and nothing is wrong."""
    _, ranges, _ = beams_of(ordinary.recording["LaserHorizontal"])
    offsets = arrow.lists_of(ordinary.recording["LaserHorizontal"].table, "ranges")[1]
    sweep = np.round(np.degrees(ordinary.recording["LaserHorizontal"]["start_angle"] + np.pi / 2) * 4)
    scans = np.array([ranges[at : at + 180] for at in offsets[:-1][sweep == 1]])
    seen = np.isfinite(scans).mean(axis=0) > 0.5
    early = scans[:, seen] < np.nanmedian(scans[:, seen], axis=0) - 0.5
    assert 0.0 < early.mean() < 0.02
    kinds = kinds_of(ordinary, "LaserHorizontal")
    assert {"leaves", "grass"} <= set(kinds)
    assert len(kinds) == len(ranges)


def test_real_stamps_scatter_in_order_and_some_scans_are_missing(ordinary):
    number = np.arange(45_000)  # ten minutes
    log = disturbances.log_scans(number, np.rint(number * (1e9 / 75)).astype(np.int64), 5, "LaserHorizontal")
    steps = np.diff(log.stamps) / (1e9 / 75)
    assert steps.min() > 0
    assert np.median(steps) == pytest.approx(1.0, abs=0.01)
    assert 0.02 < np.median(np.abs(steps - np.median(steps))) < 0.1  # 1 ms, as in real logs
    assert 0.0005 < 1 - len(log.number) / 45_000 < 0.002
    assert np.ptp(np.diff(ordinary.recording["LaserHorizontal"].t_ns)) > 1e6


def test_visitors_come_stand_and_leave_and_a_car_passes():
    steps = disturbances.count_steps(1800.0)
    walk = np.array([(-3.0, -1.0), (-3.8, -7.0), (-0.6, -4.0)])
    person, *_, body, _ = disturbances.make_visitors(Site(flat(130.0), (), None, walk), 3, steps)
    assert person.track is not None
    assert body.track is not None
    speed = np.linalg.norm(np.diff(person.track[:, :2], axis=0), axis=1) / 0.05
    assert speed.max() < 1.5  # never faster than people walk
    near = np.linalg.norm(person.track[:, :2], axis=1) < 12.0
    assert 0.05 < near.mean() < 0.8
    assert ((speed == 0) & near[1:]).any()
    assert np.ptp(body.track[:, 0]) == pytest.approx(124.0)


def test_windows_are_the_whole_recording_piece_by_piece(ordinary):
    windows = list(iterate_windows(ordinary.recording, 0.75))
    assert len(windows) == 3
    ranges = np.concatenate([beams_of(window["LaserHorizontal"])[1] for window in windows])
    np.testing.assert_array_equal(ranges, beams_of(ordinary.recording["LaserHorizontal"])[1])


def weather(air, streams=("LaserPort", "RadarRange*", "VideoVisual", "Nav")):
    return simulate(
        "marulan", WorldOptions(seconds=2.2, scale=0.05, streams=streams, conditions={"air": air})
    )


@pytest.fixture(scope="module")
def dusty():
    return weather("dust")


@pytest.fixture(scope="module")
def not_dusty():
    return weather("clear").recording


def test_a_day_with_dust_begins_and_ends_clear_and_its_truth_names_what_was_touched(dusty, not_dusty):
    """Of 44 s those from 12 to 32 are dusty: of 2.2 s those from 0.6 to 1.6."""
    clear, labels = not_dusty, dusty.truth.tables["faults"].to_pydict()
    for name in ("LaserPort", "RadarRangeBearing", "VideoVisual"):
        touched = {i for i, s in zip(labels["index"], labels["stream"], strict=True) if s == name}
        times = clear[name].t_ns[sorted(touched)] - clear[name].t_ns[0]
        assert touched
        assert times.min() >= 0.6e9
        assert times.max() < 1.6e9
        for k in range(0, len(clear[name]), 4):
            before, now = clear[name][k], dusty.recording[name][k]
            same = [np.array_equal(f(before), f(now), equal_nan=True) for f in CONTENT[name]]
            assert all(same) == (k not in touched)
    assert set(labels["fault"]) == {"dust"}
    assert not set(labels["stream"]) & {"Nav"}


CONTENT = {
    "LaserPort": [lambda s: s.value.ranges],
    "RadarRangeBearing": [lambda s: s.value.range, lambda s: s.value.reflectivity],
    "VideoVisual": [lambda s: s.payload.data],
}


def test_lasers_see_the_dust_and_the_radar_almost_none(dusty, not_dusty):
    usual, seen = (beams_of(each["LaserPort"])[1] for each in (not_dusty, dusty.recording))
    assert (seen < np.where(np.isnan(usual), np.inf, usual) - 0.5).mean() > 0.02
    ranges, radar = not_dusty["RadarRangeBearing"]["range"], dusty.recording["RadarRangeBearing"]
    assert np.abs(ranges - radar["range"]).max() < 0.3


def test_the_air_is_the_same_whichever_streams_and_rows_are_asked_for(dusty):
    alone = weather("dust", ("LaserPort",)).recording.slice("+0.9s", "+1.2s")["LaserPort"]
    whole = dusty.recording.slice("+0.9s", "+1.2s")["LaserPort"]
    np.testing.assert_array_equal(*(arrow.lists_of(each.table, "ranges")[0] for each in (alone, whole)))


def test_days_with_weather_are_long_enough_for_it():
    assert usual_seconds("marulan", {"air": "smoke"}) == 44.0
    assert usual_seconds("marulan", {}) == usual_seconds("etna", {}) == 20.0


def test_the_time_axis_is_known_without_simulating(monkeypatch):
    recording = simulate("marulan", WorldOptions(seconds=7200.0, streams=RANGE_SENSORS)).recording
    assert len(recording["LaserHorizontal"]) == 75 * 7200
    assert len(recording["RadarSpectrum"]) == 7_200_000
    last = recording.slice("+7199s")
    assert "parsed" not in recording["RadarSpectrum"].__dict__
    # A second of a standing vehicle needs one pose, not the 720 000 of the day.
    monkeypatch.setattr(Motion, "transforms", property(lambda motion: pytest.fail(f"{len(motion)} poses")))
    assert last["LaserHorizontal"]["start_angle"].shape == (75,)


def check_scaled_camera(camera, full):
    """A tenth of the size: a pixel (u, v) of the full image is now at (u + 0.5) / 10 - 0.5."""
    across, down = 136 / full.width, 102 / full.height
    assert (camera.width, camera.height) == (136, 102)
    assert camera.K[[0, 1], [0, 1]] == pytest.approx(full.K[[0, 1], [0, 1]] * [across, down])
    assert camera.K[:2, 2] == pytest.approx((full.K[:2, 2] + 0.5) * [across, down] - 0.5)
    np.testing.assert_array_equal(camera.coefficients, full.coefficients)


def test_the_reader_opens_what_was_written_and_finds_the_same(tmp_path):
    options = WorldOptions(seconds=0.8, scale=0.1, conditions={"scene": "open"})
    day = simulate("marulan", options)
    said = write_day(day, tmp_path / "day")
    found = transect.open(tmp_path / "day")
    assert found.format == "sdi"
    assert not found.losses
    assert "dataset" not in found.conditions  # none of the report's own
    for stream in day.recording.select(*RANGE_SENSORS, "Payload/*"):
        for name in stream.columns:
            kept = found[stream.name]
            if name in ("ranges", "range_error", "reflectivity") and stream.type.__name__ in (
                "LaserScan",
                "RadarSpectrum",
            ):
                ours, theirs = arrow.lists_of(stream.table, name)[0], arrow.lists_of(kept.table, name)[0]
            else:
                ours, theirs = stream[name], kept[name]
            np.testing.assert_allclose(theirs, ours, rtol=1e-12, atol=1e-12)
    assert (found["VideoIR"][0].value.height, found["VideoIR"][0].value.width) == (40, 51)
    assert found["VideoVisual"][0].value.data.shape == (102, 136, 3)
    assert said == ()
    check_scaled_camera(found["VideoVisual"][0].value.camera, day.recording.robot.cameras["VideoVisual"])
    assert found["VideoIR"][0].value.camera is None  # nobody knows where its images were cut out
    assert any("calibration is for 64 x 48 pixels" in note for note in found.notes)
    truth = {s.name for s in found if s.role == "truth"}
    assert truth == {
        "Nav",
        *(f"truth/{n}" for n in ("dem", "hit_kinds", "hits", "objects", "slip", "trajectory")),
    }
    np.testing.assert_allclose(
        found["truth/trajectory"].array("x", "y", "z"), day.truth.motion.position, atol=1e-6
    )


@pytest.mark.parametrize("light", ["day", "low_sun", "night", "night_lights"])
def test_pictures_are_made_in_every_light(light):
    options = WorldOptions(seconds=0.2, scale=0.08, conditions={"scene": "open", "light": light})
    recording = simulate("marulan", options).recording
    visual, heat = recording["VideoVisual"][0].value, recording["VideoIR"][0].value
    assert visual.mode == "rgb"
    assert heat.mode == "thermal"
    assert visual.data.std() > 3
    assert heat.data.std() > 3


def test_the_car_s_lights_brighten_the_night():
    pictures = {}
    for light in ("night", "night_lights"):
        day = simulate(
            "marulan", WorldOptions(seconds=0.2, scale=0.08, conditions={"scene": "open", "light": light})
        )
        pictures[light] = day.recording["VideoVisual"][0].value.data.astype(float)
    assert np.abs(pictures["night_lights"] - pictures["night"]).mean() > 1


def test_houses_of_a_terrace_are_equal_and_equally_far_apart():
    options = WorldOptions(seconds=0.1, streams=("Nav",), conditions={"scene": "terrace"})
    objects = simulate("marulan", options).truth.tables["objects"].to_pandas()
    houses = objects[(objects["kind"] == "house") & (objects["y"] > 0)].sort_values("x")
    np.testing.assert_allclose(np.diff(houses["x"]), 6.0)
    assert len({tuple(size) for size in houses["size"]}) == 1


def test_another_track_is_a_metre_beside_the_usual_one():
    usual, beside = (
        simulate(
            "marulan",
            WorldOptions(seconds=3.0, streams=("Nav",), conditions={"scene": "yard", "track": track}),
        )
        for track in ("usual", "beside")
    )
    off = beside.truth.motion.position - usual.truth.motion.position
    np.testing.assert_allclose(np.linalg.norm(off[:, :2], axis=1), 0.99, atol=0.05)


def test_scenes_have_what_the_report_names():
    """4.3: a shed and fences; three wooden buildings and a fence; a lake and a eucalyptus forest."""
    expected = {
        "open": {"shed", "fence post", "car"},
        "houses": {"house", "roof", "fence post"},
        "dam": {"water", "trunk", "leaves"},
    }
    for scene, kinds in expected.items():
        day = simulate("marulan", WorldOptions(seconds=0.1, streams=("Nav",), conditions={"scene": scene}))
        assert kinds <= set(arrow.texts(day.truth.tables["objects"], "kind"))
        assert "hits" not in day.truth.tables


def test_cameras_have_the_report_s_rates_and_payload_exists_only_while_driving(static):
    standing = simulate("marulan", WorldOptions(seconds=2.0)).recording
    moving = simulate("marulan", WorldOptions(seconds=2.0, conditions={"scene": "dam"})).recording
    assert (len(standing["VideoVisual"]), len(moving["VideoVisual"])) == (30, 20)  # 2.2.3: 15 and 10 a second
    assert len(standing["VideoIR"]) == 25  # 2.2.4: 12.5 a second
    assert not [s for s in standing if s.name.startswith("Payload")]
    assert len([s for s in moving if s.name.startswith("Payload")]) == 10
    assert standing.conditions["simulated"] is True


def test_conditions_that_are_not_known_are_refused():
    for conditions in ({"weather": "fine"}, {"scene": "beach"}):
        with pytest.raises(UsageError):
            simulate("marulan", WorldOptions(conditions=conditions))
    with pytest.raises(StreamError, match="no stream"):
        simulate("marulan", WorldOptions(streams=("Lidar",)))


def test_boards_determine_the_extrinsics_of_laser_and_camera():
    """Section 4.4.1, with one small picture of each board, by the compound that a user runs."""
    options = WorldOptions(3.9, 0, 0.4, ("LaserHorizontal", "VideoVisual"), {"scene": "boards"})
    day = simulate("marulan", options)
    pictures = day.recording["VideoVisual"]
    once = pictures.take(np.arange(len(pictures)) % 6 == 2)
    shown = day.recording.replace(streams=(day.recording["LaserHorizontal"], once))
    board = {"square": 0.0749, "square_height": 0.0747, "min_boards": 6}
    done = transect.run(
        "LaserCameraCalibration", shown, set={f"calibration.{name}": value for name, value in board.items()}
    )
    found = done["transform"].values[-1]
    true = transect.robots.load("argo").frames.lookup("LaserHorizontal", "VideoVisual")
    error = np.abs(se3.log(se3.invert(true) @ found.matrix))
    assert (found.target, found.source) == ("LaserHorizontal", "VideoVisual")
    # Ten boards in small pictures leave 6 to 8 cm (one sigma) along y, the normal of the laser's plane.
    assert (error[:3] < [0.03, 0.15, 0.02]).all()  # m along the camera's axes
    assert (np.degrees(error[3:]) < [2.0, 1.0, 2.0]).all()
    assert done["rms"].values[-1] == pytest.approx(0.01, abs=0.003)  # m: what the laser scatters
    assert len(day.truth.tables["boards"]) == len(once) == 10

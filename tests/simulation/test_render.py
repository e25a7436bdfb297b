"""Pictures: the lens is exact, light falls as it should, features can be followed, and bytes repeat."""

import hashlib

import cv2
import numpy as np
import pytest

from transect.errors import TransectError
from transect.simulation import light, randomness, solids, terrain
from transect.simulation import render as rendering
from transect.simulation._threads import run_in_batches
from transect.simulation.light import SENSOR, develop
from transect.simulation.raycast import Scene
from transect.simulation.render import RenderedFrame, render
from transect.types import CameraModel

LENS = np.array([-0.17, 0.03, 0.001, -0.0005])


def camera(scale: float = 0.25, lens: np.ndarray = LENS) -> CameraModel:
    """A ZED at 672x376, times a scale."""
    K = np.array([[350.0 * scale, 0, 335.5 * scale], [0, 350.0 * scale, 187.5 * scale], [0, 0, 1]])
    return CameraModel("zed", round(672 * scale), round(376 * scale), K, "radtan", lens)


def looking(place: list[float], yaw: float, down: float) -> np.ndarray:
    """``T_world_camera`` at a place, `yaw` from east and `down` from level, rad."""
    forward = np.array([np.cos(yaw) * np.cos(down), np.sin(yaw) * np.cos(down), -np.sin(down)])
    right = np.array([np.sin(yaw), -np.cos(yaw), 0.0])
    T = np.eye(4)
    T[:3, :3] = np.column_stack([right, np.cross(forward, right), forward])
    T[:3, 3] = place
    return T


@pytest.fixture(scope="module")
def lava() -> Scene:
    return Scene(terrain.rough(1, size_m=38.4, cell=0.05))


def over(
    scene: Scene, x: float, y: float, height: float = 1.2, yaw: float = 1.57, down: float = 0.25
) -> np.ndarray:
    return looking([x, y, float(scene.terrain.at([x, y])) + height], yaw, down)


def shot(scene: Scene, T: np.ndarray, lit: light.Light, index: int = 0, scale: float = 0.25) -> RenderedFrame:
    return render(scene, camera(scale), T, lit, noise=randomness.generator(1, "zed", "noise", index))


def test_a_ball_appears_where_opencv_projects_it() -> None:
    places = np.array([[6.0, 2.0, 1.5], [6.0, -2.5, 0.6], [5.0, 0.5, 2.0]])
    balls = solids.Solids.of([solids.sphere("ball", place, 0.08) for place in places])
    T, cam = looking([0.0, 0.0, 1.0], 0.0, 0.0), camera(1.0)
    frame = render(Scene(terrain.flat(40.0), balls), cam, T, light.day())
    back = np.linalg.inv(T)
    expected, _ = cv2.projectPoints(places, cv2.Rodrigues(back[:3, :3])[0], back[:3, 3], cam.K, LENS)
    for number, pixel in enumerate(expected.reshape(-1, 2), start=1):
        rows, columns = np.nonzero(frame.kind == number)
        assert np.hypot(*(np.array([columns.mean(), rows.mean()]) - pixel)) < 0.25


def test_depth_puts_every_pixel_back_on_the_ground(lava: Scene) -> None:
    T, cam = over(lava, 0.0, -10.0), camera()
    frame = render(lava, cam, T, light.day())
    rows, columns = np.nonzero(frame.kind == 0)
    pixels = np.column_stack([columns, rows]).astype(np.float64)
    exactly = (cv2.TERM_CRITERIA_COUNT, 40, 0.0)
    plane = cv2.undistortPoints(pixels[:, None], cam.K, LENS, criteria=exactly)[:, 0]
    z = frame.depth[rows, columns].astype(np.float64)[:, None]
    points = np.hstack([plane * z, z]) @ T[:3, :3].T + T[:3, 3]
    assert np.abs(points[:, 2] - lava.terrain.at(points[:, :2])).max() < 2e-3
    assert np.isnan(frame.depth[frame.kind == -1]).all()


def test_the_sun_throws_the_shadow_of_a_box_where_it_must() -> None:
    # The sun in the east at 45 degrees: a box from z = 0 to 1 shades the ground 1 m to its west.
    sun = light.Light(sun_elevation=np.pi / 4, sun_azimuth=np.pi / 2)
    scene = Scene(terrain.flat(20.0), solids.Solids.of([solids.box("box", [0, -1, 0], [0.1, 1, 1])]))
    T = looking([-1.0, 0.0, 6.0], 0.0, np.pi / 2)
    frame = render(scene, camera(1.0, np.zeros(4)), T, sun, colour=False)
    down = 350.0 / 6.0  # pixels per metre; image rows run west
    shade = frame.image[187 - int(0.9 * down) : 187 + int(0.9 * down), 300:370]
    sunny = frame.image[187 + int(1.1 * down) : 187 + int(1.8 * down), 300:370]
    assert frame.image[187 - 20 : 187 + 20, 300:370].mean() < 0.75 * sunny.mean()
    assert shade.shape[0] > 50
    edge = frame.image[:, 300:370].mean(axis=1)
    assert np.argmax(np.diff(edge[150:300])) + 150 == pytest.approx(187.5, abs=3)


def test_features_can_be_followed_at_walking_speed(lava: Scene) -> None:
    # 0.4 m/s and 12 frames a second; the full size of the ZED.
    cam, before, after = camera(1.0), over(lava, 0.0, -12.0), over(lava, 0.0, -12.0)
    after[1, 3] += 0.4 / 12
    one, two = (
        render(lava, cam, T, light.day(), colour=False, noise=randomness.generator(1, "zed", "noise", i))
        for i, T in enumerate([before, after])
    )
    corners = cv2.goodFeaturesToTrack(one.image, 1000, 0.01, 5)
    tracked, status, _ = cv2.calcOpticalFlowPyrLK(one.image, two.image, corners, None)
    seen, found = corners[:, 0], tracked[:, 0]
    columns, rows = np.rint(seen).astype(int).T
    depth = one.depth[rows, columns]
    good = (status[:, 0] == 1) & np.isfinite(depth)
    rays = cv2.undistortPoints(seen[good][:, None].astype(np.float64), cam.K, LENS)[:, 0]
    points = np.column_stack([rays, np.ones(len(rays))]) * depth[good][:, None]
    back = np.linalg.inv(after) @ before
    expected, _ = cv2.projectPoints(points, cv2.Rodrigues(back[:3, :3])[0], back[:3, 3], cam.K, LENS)
    error = np.linalg.norm(expected[:, 0] - found[good], axis=1)
    assert (error < 1.0).sum() >= 200
    assert np.median(error) < 0.3


def test_pictures_are_neither_flat_nor_saturated(lava: Scene) -> None:
    for lit in (light.day(), light.low_sun()):
        image = shot(lava, over(lava, 0.0, -10.0), lit).image
        assert 70 < image.mean() < 160
        assert image.std() > 25
        assert (image == 255).mean() < 0.01


def test_the_sky_has_a_gradient_and_no_two_neighbours_alike(lava: Scene) -> None:
    frame = shot(lava, over(lava, 0.0, -10.0, down=-0.3), light.day())
    sky = np.where(frame.kind[..., None] == -1, frame.image, 0)
    assert (frame.kind == -1).mean() > 0.5
    assert sky.max() < 255
    assert len(np.unique(sky)) > 50


def test_night_is_dark_and_headlights_light_what_is_near(lava: Scene) -> None:
    T = over(lava, 0.0, -10.0)
    day, night, lamps = (
        render(lava, camera(), T, lit, exposure=2.0)
        for lit in (light.day(), light.night(), light.night_with_lights())
    )
    assert night.image.mean() < 0.2 * day.image.mean()
    near, far = lamps.depth < 4, lamps.depth > 12
    assert lamps.image[near].mean() > 4 * max(lamps.image[far].mean(), 1.0)


def test_a_thermal_camera_sees_a_warm_body_and_a_cold_sky() -> None:
    person = solids.cylinder("person", [4.0, 0.0, 0.0], 0.3, 1.8, solids.SurfaceMaterial(temperature=306.0))
    scene = Scene(terrain.flat(30.0), solids.Solids.of([person]))
    night = light.Light(sun=0.0, thermal=True)
    frame = render(scene, camera(), looking([0.0, 0.0, 1.2], 0.0, 0.0), night, colour=False)
    body, ground, sky = (frame.image[frame.kind == k].mean() for k in (1, 0, -1))
    assert body > ground + 30
    assert sky < ground - 30


def test_haze_hides_what_is_far_and_only_that(lava: Scene) -> None:
    T, cam = over(lava, 0.0, -10.0), camera()
    clear, dusty = (
        render(lava, cam, T, light.day(), exposure=1.0, haze=haze)
        for haze in (None, lambda r: (r < 6.0).astype(np.float32))
    )
    near = clear.depth < 3
    np.testing.assert_array_equal(dusty.image[near], clear.image[near])
    assert dusty.image[clear.depth > 6].std(axis=0).max() < 1


def test_a_moving_camera_blurs_and_a_still_one_does_not(lava: Scene) -> None:
    T, cam = over(lava, 0.0, -10.0, down=0.6), camera()
    moved = T.copy()
    moved[:3, 3] += 0.3 * T[:3, 0]
    sharp, still, blurred = (
        render(lava, cam, T, light.day(), exposure=1.0, moved=to, colour=False).image.astype(float)
        for to in (None, T, moved)
    )
    assert np.abs(still - sharp).max() <= 1
    assert np.diff(blurred, axis=1).std() < 0.6 * np.diff(sharp, axis=1).std()


def test_more_rays_per_pixel_change_little(lava: Scene) -> None:
    T = over(lava, 0.0, -10.0)
    one, nine = (
        render(lava, camera(), T, light.day(), exposure=1.0, supersample=n, colour=False) for n in (1, 3)
    )
    assert np.median(np.abs(one.image.astype(float) - nine.image)) < 8
    np.testing.assert_allclose(nine.depth, one.depth, rtol=1e-5)
    with pytest.raises(TransectError, match="odd"):
        render(lava, camera(), T, light.day(), supersample=2)


def test_exposure_is_a_gain_until_white(lava: Scene) -> None:
    T = over(lava, 0.0, -10.0)
    means = [render(lava, camera(), T, light.day(), exposure=g).image.mean() for g in (0.3, 1.0, 3.0, 500.0)]
    assert means == sorted(means)
    assert means[-1] > 250


def test_all_cores_give_the_same_pixels_as_one(lava: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    T, moved = over(lava, 0.0, -10.0), over(lava, 0.02, -10.0)
    pictures = []
    for piece in (100, 10**9):
        monkeypatch.setattr(
            rendering,
            "run_in_batches",
            lambda work, count, _=0, piece=piece: run_in_batches(work, count, piece),
        )
        pictures.append(render(lava, camera(), T, light.day(), moved=moved).image.tobytes())
    assert pictures[0] == pictures[1]


def digest(index: int = 0) -> str:
    scene = Scene(terrain.rough(2, size_m=9.6, cell=0.1))
    frame = shot(scene, over(scene, 0.0, -3.0), light.day(), index)
    return hashlib.sha256(frame.image.tobytes() + frame.depth.tobytes()).hexdigest()


def test_the_same_seed_gives_the_same_bytes_and_each_index_its_own_noise() -> None:
    assert digest() == digest()
    assert digest(0) != digest(1)


def test_unknown_ground_is_named() -> None:
    with pytest.raises(TransectError, match="snow"):
        render(Scene(terrain.flat(ground="snow")), camera(), looking([0, 0, 1.0], 0.0, 0.3), light.day())


@pytest.mark.parametrize("name", sorted(light.PRESETS))
def test_every_light_renders_every_ground_without_gaps(name: str) -> None:
    for ground in ("basalt", "soil"):
        scene = Scene(terrain.flat(20.0, ground=ground))
        frame = render(scene, camera(0.1), looking([0, 0, 1.0], 0.5, 0.1), light.PRESETS[name]())
        assert frame.image.shape == (38, 67, 3)
        assert frame.image.std() > 0


def test_noise_is_normal_and_as_large_as_photons_and_reading_make_it() -> None:
    """Quantiles of a normal distribution, from the middle to beyond three deviations."""
    exposure = 0.5
    picture = np.full((300, 400, 3), exposure, np.float32)
    seen = develop(picture, 1.0, randomness.generator(2, "noise"), linear=True).astype(np.float64)
    grain = (seen - 255 * exposure) / (255 * np.sqrt(SENSOR.read_sigma**2 + SENSOR.shot_variance * exposure))
    assert abs(grain.mean()) < 0.2  # of a pixel's step: the tone curve has 4096
    assert grain.std() == pytest.approx(1.0, rel=0.03)
    for deviations, part in ((1.0, 0.3173), (2.0, 0.0455), (3.0, 0.0027)):
        assert (np.abs(grain - grain.mean()) > deviations).mean() == pytest.approx(part, rel=0.35)
    bands = grain.reshape(-1, 3) - grain.mean()
    assert abs(np.corrcoef(bands.T)[0, 1:]).max() < 0.01

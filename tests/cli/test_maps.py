import json

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from tests.commands import transect

from transect.base.files import write_bytes
from transect.formats.geotiff import encode_geotiff
from transect.types import GridMap

HEIGHTS_M = 6 * gaussian_filter(np.random.default_rng(3).normal(size=(90, 90)), 3)


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    """A drone's map, and a part of it that begins five cells further east and two further south."""
    folder = tmp_path_factory.mktemp("maps")
    part = HEIGHTS_M[20:70, 25:75] + 10.0
    transforms = (1.0, 0, 0.0, 0, -1.0, 90.0), (1.0, 0, 20.0, 0, -1.0, 72.0)
    for name, heights, transform in zip(("drone", "rover"), (HEIGHTS_M, part), transforms, strict=True):
        write_bytes(folder / f"{name}.tif", encode_geotiff(GridMap({"elevation": heights}, transform)))
    write_bytes(
        folder / "flat.tif", encode_geotiff(GridMap({"elevation": np.zeros((40, 40))}, transforms[0]))
    )
    return folder


def test_align_writes_the_shift_the_map_and_a_picture(maps, tmp_path):
    done = transect("maps", "align", maps / "drone.tif", maps / "rover.tif", "-o", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["shift_m"] == pytest.approx([5.0, -2.0, -10.0], abs=0.02)
    assert json.loads((tmp_path / "out" / "alignment.json").read_text()) == told
    assert (tmp_path / "out" / "difference.png").stat().st_size > 1000
    shown = transect(
        "eval", maps / "drone.tif", tmp_path / "out" / "aligned.tif", "--align", "none", "--json"
    )
    assert shown.returncode == 0, shown.stderr


def test_locate_lists_places(maps):
    done = transect("maps", "locate", maps / "drone.tif", maps / "rover.tif", "--turn", "10", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["sure"]
    assert told["hypotheses"][0]["place"] == pytest.approx([50.0, 45.0], abs=0.05)


@pytest.mark.parametrize(("job", "said"), [("align", "rotation [deg]"), ("locate", "1.000")])
def test_a_map_that_does_not_lean_is_shown_without_tilt(maps, job, said):
    done = transect("maps", job, maps / "drone.tif", maps / "rover.tif", "--turn", "10", "--no-tilt")
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    assert "tilt" not in done.stdout


def test_flat_ground_is_refused_in_words(maps):
    done = transect("maps", "align", maps / "flat.tif", maps / "flat.tif")
    assert done.returncode == 1
    assert "flat" in done.stderr


@pytest.mark.parametrize("at", ["45", "45,here", "1,2,3"])
def test_where_a_map_may_be_is_two_coordinates(maps, at):
    done = transect("maps", "locate", maps / "drone.tif", maps / "rover.tif", "--at", at)
    assert done.returncode == 2
    assert f"--at {at} is not two coordinates" in done.stderr
    assert "--at 500012.5,4178800" in done.stderr


def test_a_place_that_is_known_and_a_factor_of_lengths_are_told(maps, tmp_path):
    near = ("--at", "50,45", "--turn", "5", "--scale")
    done = transect("maps", "align", maps / "drone.tif", maps / "rover.tif", *near, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    rows = {line[:10].strip(): line.split()[-3:] for line in done.stdout.splitlines()}
    assert float(rows["scale"][0]) == pytest.approx(1.0, abs=0.01)
    assert f"wrote {tmp_path / 'out' / 'alignment.json'}" in done.stderr
    assert transect("maps", "align", "a.tif", "b.tif", "-o", tmp_path / "out").returncode == 2

"""Real robots: SherpaTT as CDFF describes it, and the KUKA LWR's xacro."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from transect.errors import UnsupportedError
from transect.robots import urdf


@pytest.fixture(scope="module")
def sherpa(real_data: Path) -> urdf.Urdf:
    return urdf.read(real_data / "urdf" / "sherpa_tt" / "sherpa_tt.urdf")


def test_sherpa_has_what_its_source_says(sherpa: urdf.Urdf):
    # SOURCE.txt: 45 links, 44 joints, 36 of them moving; innerStrut.stl and steeringUnit.stl are absent.
    assert (len(sherpa.links), len(sherpa.joints)) == (45, 44)
    assert sum(joint.type != "fixed" for joint in sherpa.joints) == 36
    assert {Path(loss.reason.split()[2]).name for loss in sherpa.losses} == {
        "innerStrut.stl",
        "steeringUnit.stl",
    }
    assert [loss.line for loss in sherpa.losses[:2]] == [54, 96]
    assert len(sherpa.driven) == 36 - 16  # four joints of each leg mimic another


def test_sherpa_is_read_back_from_its_own_text(sherpa: urdf.Urdf):
    assert urdf.parse(urdf.text_of(sherpa).encode(), "again.urdf") == sherpa


def test_the_wheels_of_sherpa_stay_level_when_a_leg_lifts(sherpa: urdf.Urdf):
    # The parallelogram: the knee mimics beta with the multiplier -1, so that it moves but does not tilt.
    flat = sherpa.frames(dict.fromkeys(sherpa.driven, 0.0))
    lifted = sherpa.frames({**dict.fromkeys(sherpa.driven, 0.0), "beta_front_left": -0.3})
    before, after = (tree.lookup("body", "wheel_upper_front_left") for tree in (flat, lifted))
    assert abs(after[2, 3] - before[2, 3]) > 0.05
    assert np.allclose(after[:3, :3], before[:3, :3], atol=1e-9)
    mirrored = flat.lookup("body", "wheel_front_right")[:3, 3] * (1, -1, 1)
    assert np.allclose(flat.lookup("body", "wheel_front_left")[:3, 3], mirrored, atol=1e-3)


def test_the_xacro_of_the_lwr_is_refused_with_a_hint(real_data: Path):
    path = real_data / "urdf" / "kuka_lwr" / "robots" / "kuka_lwr.urdf.xacro"
    with pytest.raises(UnsupportedError, match=r"xacro .* > .*kuka_lwr\.urdf") as caught:
        urdf.read(path)
    assert caught.value.where.endswith(":5")

"""The masses and compliances of the links: what the SIS prints, and what stands for what it lost."""

from typing import Any

import numpy as np
import pytest

from transect.datasets.insight.robot.arm import DeploymentArm
from transect.datasets.insight.robot.parameters import MissingParameterError, Parameters
from transect.datasets.insight.robot.statics import LinkFrames, LinkProperties, sum_outer_masses
from transect.errors import TransectError

PRINTED = Parameters.printed()
ARM = DeploymentArm.of(PRINTED, fitted=True)


def test_the_grapple_phase_decides_what_is_carried():
    # SIS 5.1.3.20: seis_mass, wts_mass, hp3_mass; phases of Table 15
    phases = ["Launch-Locked", 1, "OK-To-Open", "SEIS-Grappled", "WTS-Grappled", np.int64(5)]
    assert [LinkProperties.of(ARM, phase).payload for phase in phases] == [0.0, 0.0, 0.0, 8.9, 7.3, 2.7]


def test_masses_add_up_from_the_tool_inwards():
    # SIS 5.1.3.22 to 5.1.3.26: 0.509, 1.2381, 1.4944 and 0.1481 kg, and WTS
    links, frames = LinkProperties.of(ARM, "WTS-Grappled"), LinkFrames.of(ARM, np.zeros((7, 4)))
    carried = sum_outer_masses(links, frames, with_payload=True)
    np.testing.assert_allclose(carried.mass, [10.6896, 10.6896, 10.1806, 8.9425, 7.4481, 7.3])
    np.testing.assert_allclose(
        sum_outer_masses(links, frames, with_payload=False).mass[[0, 5]], [3.3896, 0.0]
    )
    assert carried.moment.shape == (6, 3, 7)


def test_a_centre_of_mass_worked_by_hand():
    # all joints at zero: link 2 starts a1 = 0.029609 m out and d1 = 0.056456 m up, its x outwards and its z
    # towards -y; its centre (0.708, 0, -0.0762) is thus at (0.737609, 0.0762, -0.056456)
    links, frames = LinkProperties.of(ARM), LinkFrames.of(ARM, np.zeros(4))
    np.testing.assert_allclose(frames.transform(2, links.centre[2]), [0.737609, 0.0762, -0.056456], atol=1e-9)


@pytest.mark.parametrize("link", ["1", "2", "3_UNSTOWED", "4_STOWED"])
def test_the_printed_matrices_are_reciprocal(link):
    # spec 4.14 (a): why wCf may be the transpose of vCm
    v, w = PRINTED.numbers(f"RA_DEFL_LINK_{link}", "vCm"), PRINTED.numbers(f"RA_DEFL_LINK_{link}", "wCf")
    np.testing.assert_allclose(v, w.T, rtol=0, atol=2e-19)


def test_what_the_sis_lost_is_named_with_its_substitute():
    assert LinkProperties.of(ARM).substitutes == (
        "RA_DEFL_LINK_0 mass, cm_x, cm_y, cm_z, vCf: zero",
        "RA_DEFL_LINK_0 wCf: transpose of its vCm",
        "RA_DEFL_LINK_4_UNSTOWED mass, cm_x, cm_y, cm_z, vCf, wCf, vCm, wCm: that of RA_DEFL_LINK_4_STOWED",
    )
    assert LinkProperties.of(ARM, "Stowed").substitutes[2:] == (
        "RA_DEFL_LINK_3_STOWED mass, cm_x, cm_y, cm_z, vCf: that of RA_DEFL_LINK_3_UNSTOWED",
        "RA_DEFL_LINK_3_STOWED wCf: transpose of its vCm",
    )


def base() -> dict[str, Any]:
    return {"mass": 1.0, "cm_x": 0.0, "cm_y": 0.0, "cm_z": 0.0, "vCf": np.zeros((3, 3)).tolist()}


def test_the_lost_numbers_can_be_refused():
    with pytest.raises(MissingParameterError, match="RA_DEFL_LINK_0 lacks mass"):
        LinkProperties.of(ARM, missing="raise")
    with_base = DeploymentArm.of(Parameters.over_printed({"RA_DEFL_LINK_0": base()}))
    with pytest.raises(MissingParameterError, match="RA_DEFL_LINK_4_UNSTOWED lacks mass"):
        LinkProperties.of(with_base, missing="raise")


def test_the_matrices_of_the_forearms_are_shared_even_then():
    forearm = {"mass": 2.0, "cm_x": 0.4, "cm_y": 0.0, "cm_z": 0.0}
    arm = DeploymentArm.of(
        Parameters.over_printed({"RA_DEFL_LINK_0": base(), "RA_DEFL_LINK_3_STOWED": forearm})
    )
    links = LinkProperties.of(arm, "Launch-Locked", missing="raise")
    assert links.mass[3] == 2.0
    assert "RA_DEFL_LINK_3_STOWED vCf: that of RA_DEFL_LINK_3_UNSTOWED" in links.substitutes
    np.testing.assert_allclose(links.compliance[3], LinkProperties.of(arm).compliance[3], rtol=0, atol=1e-20)


@pytest.mark.parametrize("phase", [6, -1, "Grappled"])
def test_an_unknown_grapple_phase_is_refused(phase):
    with pytest.raises(TransectError, match="no grapple phase"):
        LinkProperties.of(ARM, phase)

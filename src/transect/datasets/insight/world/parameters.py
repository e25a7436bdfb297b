"""The parameter file of the simulated arm: what the SIS prints, and what had to be invented.

The SIS lost some values (spec, 4.14 and 4.4). Those below are plausible, not InSight's; they are named in the
parameter file itself, in a set that the SIS does not have, and in ``conditions["invented"]``.
"""

from __future__ import annotations

from typing import Any

from transect.robots import load

NOTE = "SIMULATION"
"""Name of the parameter set that says what is simulated."""
_NO_FORCE = ((2.0e-8, 0.0, 0.0), (0.0, 2.0e-8, 0.0), (0.0, 0.0, 2.0e-8))


def parameter_sets() -> dict[str, dict[str, Any]]:
    """Return all 32 sets of SIS 5.1.3, complete, and one that names what is invented."""
    constants = load("ida").constants
    sets: dict[str, dict[str, Any]] = {
        name: {key: _plain(value) for key, value in values.items()}
        for name, values in constants["parameters"].items()
    }
    sets["RA_ARM_PARAMS"]["x_wrist"] = _plain(constants["x_wrist"])  # by definition
    for name, values in _invent(sets, constants["fitted"]).items():
        sets.setdefault(name, {}).update(values)
    sets[NOTE] = {"simulated": "1", "invented": "; ".join(invented_keys())}
    return sets


def invented_keys() -> tuple[str, ...]:
    """Return what no document gives, as `SET key`."""
    constants = load("ida").constants
    invented = _invent(constants["parameters"], constants["fitted"])
    return tuple(f"{name} {key}" for name, values in invented.items() for key in values)


def _invent(printed: Any, fitted: Any) -> dict[str, dict[str, Any]]:
    """Return the values that the SIS lost; what reciprocity gives is taken from what is printed."""
    base, forearm = printed["RA_DEFL_LINK_0"], printed["RA_DEFL_LINK_3_UNSTOWED"]
    wrist = printed["RA_DEFL_LINK_4_STOWED"]
    return {
        "RA_ARM_PARAMS": {
            "x_scoop": (0.005, 0.0, 0.12, 0.0),
            "x_grapple_attach": _plain(fitted["x_grapple_attach"]),
            "dist_grapple": _plain(fitted["dist_grapple"]),
            "dist_seis": (0.0, 0.0, 0.309),  # the hook is 1 cm below the fingers (SIS 2.6.2.2: 5 cm less 4)
            "dist_wts": (0.0, 0.0, 0.309),
            "dist_hp3": (0.0, 0.0, 0.309),
        },
        "RA_CTRL_PARAMS": {"loop_time_thermostat": 1.0, "power_on_time_delay": 2, "off_count": 3},
        "RA_TAU_PARAMS": {"c_nl_4": (0.0, 0.0, 0.0, 0.0)},
        "RA_FAULT_DETECT": {"runaway_samples": 3, "ace_cal_samples": 4, "collision_mode": 2},
        "RA_DEFL_LINK_0": {
            "mass": 1.2,
            "cm_x": 0.0,
            "cm_y": 0.0,
            "cm_z": -0.03,
            "vCf": _NO_FORCE,
            "wCf": _transpose(base["vCm"]),
        },
        "RA_DEFL_LINK_3_STOWED": {
            "mass": 1.95,  # the grapple is folded to the forearm
            "cm_x": 0.545,
            "cm_y": 0.038,
            "cm_z": -0.019,
            "vCf": _plain(forearm["vCf"]),
            "wCf": _plain(forearm["wCf"]),
        },
        "RA_DEFL_LINK_4_UNSTOWED": {
            "mass": 0.6,  # the grapple hangs from the wrist
            "cm_x": 0.003,
            "cm_y": -0.021,
            "cm_z": -0.031,
            **{key: _plain(wrist[key]) for key in ("vCf", "wCf", "vCm", "wCm")},
        },
    }


def _plain(value: Any) -> Any:
    """Tuples where YAML makes lists, as the reader of parameter files has them."""
    return tuple(_plain(item) for item in value) if isinstance(value, list | tuple) else value


def _transpose(matrix: Any) -> Any:
    return tuple(zip(*_plain(matrix), strict=True))

"""Parameters of the arm: those of a recording's parameter file over those that the SIS prints (5.1.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.errors import TransectError, did_you_mean
from transect.recording import Recording, Robot
from transect.robots import load

Sets = Mapping[str, Mapping[str, Any]]

FITTED = "a fit to via.q and via.x of the SIS (invented)"
"""Origin of the numbers of `Parameters.with_fitted`."""


class MissingParameterError(TransectError, LookupError):
    """A parameter that neither the file nor the SIS gives."""


@dataclass(frozen=True)
class Parameters:
    """Parameter sets in order of precedence; SI, so currents are amperes."""

    # (origin, sets): those of a file first, then those of the SIS
    sources: Sequence[tuple[str, Sets]]

    @classmethod
    def printed(cls, robot: Robot | None = None) -> Parameters:
        """Return the parameters that the SIS prints (`ida.yaml`), or those of a user's copy of the robot."""
        if robot is None or "parameters" not in robot.constants:
            return cls((("the SIS", load("ida").constants["parameters"]),))
        origin = "the SIS" if robot.name == "ida" else f"the robot {robot.name}"
        return cls(((origin, robot.constants["parameters"]),))

    @classmethod
    def over_printed(
        cls, sets: Sets, where: str = "the parameter file", robot: Robot | None = None
    ) -> Parameters:
        """Return `sets`, and those of the SIS (or a user's copy of the robot) for missing parameters."""
        return cls(((where, sets), *cls.printed(robot).sources))

    @classmethod
    def of(cls, recording: Recording) -> Parameters:
        """Return the parameters of a recording, and those of the SIS for missing ones."""
        sets, robot = recording.conditions.get("parameters", {}), recording.robot
        if not sets:
            return cls.printed(robot)
        return cls.over_printed(sets, f"the parameter files of {recording.name}", robot)

    def with_fitted(self) -> Parameters:
        """Add a position of the grapple that fits one pose which the SIS prints.

        The SIS omits `x_grapple_attach` and `dist_grapple`, and one pose does not determine one of the
        numbers (set to 0), so they are used only on request; their `origin` is `FITTED`.
        """
        fitted = {key: value for key, value in load("ida").constants["fitted"].items() if key != "invented"}
        return Parameters((*self.sources, (FITTED, {"RA_ARM_PARAMS": fitted})))

    def numbers(self, set_name: str, key: str) -> NDArray[np.float64]:
        """Return a parameter as an array: () for a scalar, (4,) for one per joint, (3, 3) for a matrix.

        Raises
        ------
        MissingParameterError
            If no source has it; the error names the file and set to add it to.
        """
        return np.asarray(self._find(set_name, key)[1], dtype=np.float64)

    def number(self, set_name: str, key: str) -> float:
        """Return a parameter that is one number."""
        return float(self.numbers(set_name, key))

    def origin(self, set_name: str, key: str) -> str:
        """Return the source of a parameter: a file, or the SIS."""
        return self._find(set_name, key)[0]

    def has(self, set_name: str, key: str) -> bool:
        """Whether some source has a parameter."""
        return any(key in sets.get(set_name, {}) for _, sets in self.sources)

    def _find(self, set_name: str, key: str) -> tuple[str, Any]:
        for origin, sets in self.sources:
            if key in (values := sets.get(set_name, {})):
                return origin, values[key]
        raise _missing(set_name, key, [origin for origin, _ in self.sources])


def _missing(set_name: str, key: str, asked: Sequence[str]) -> MissingParameterError:
    known = {parameter.name: parameter for parameter in SETS.get(set_name, ())}
    if set_name not in SETS:
        return MissingParameterError(
            f"there is no parameter set {set_name}", hint=did_you_mean(set_name, SETS)
        )
    if key not in known:
        return MissingParameterError(f"{set_name} has no parameter {key}", hint=did_you_mean(key, known))
    parameter = known[key]
    size = " or ".join(map(str, parameter.sizes))
    return MissingParameterError(
        f"{set_name} lacks {key}",
        why=f"neither of {', '.join(asked)} gives it" if len(asked) > 1 else f"{asked[0]} does not give it",
        hint=f"put {key} ({size} numbers{f', {parameter.unit}' if parameter.unit else ''}) under "
        f"'Parameter Set: {set_name}' in a parameter file beside the data (SIS 5.1.3)",
    )


PER_JOINT = (4,)
"""Size of a parameter with one number per joint."""
GROUPS = {
    "dig_trench.[depth width length]": ("dig_trench.depth", "dig_trench.width", "dig_trench.length"),
}
"""Parameters that the SIS prints on one line under one key."""
ROWS = "[op_code algo_code delta_via_code]"
"""Key of the rows of RA_TASK_ALGO and RA_ACT_ALGO, as printed; it is repeated on several lines."""


@dataclass(frozen=True)
class ArmParameter:
    """Definition of one parameter."""

    name: str  # as the SIS names it
    sizes: tuple[int, ...] = (1,)  # allowed numbers of values; (9,) is a 3 x 3 matrix in row-major order
    unit: str = ""  # unit in the file
    printed: str = ""  # the key in the file, where it differs from the name
    aliases: tuple[str, ...] = ()  # other spellings

    @property
    def scale(self) -> float:
        """SI value of one unit of the file."""
        return {"mA": 1e-3, "ms": 1e-3}.get(self.unit, 1.0)

    @property
    def si_unit(self) -> str:
        """Unit of the converted value."""
        return {"mA": "A", "ms": "s"}.get(self.unit, self.unit)

    @property
    def key(self) -> str:
        """The key in the file."""
        return self.printed or self.name


P = ArmParameter


def _each(names: str, sizes: tuple[int, ...] = (1,), unit: str = "") -> tuple[ArmParameter, ...]:
    return tuple(ArmParameter(name, sizes, unit) for name in names.split())


def _prefix(
    prefix: str, names: str, sizes: tuple[int, ...] = (1,), unit: str = ""
) -> tuple[ArmParameter, ...]:
    return tuple(ArmParameter(prefix + name, sizes, unit) for name in names.split())


_POSES = "x_blade_1 x_blade_2 x_rac x_scoop x_wrist x_grapple_attach"
_LINK = (
    P("mass", unit="kg"),
    *_each("cm_x cm_y cm_z", unit="m"),
    P("vCf", (9,), "m/N"),
    P("wCf", (9,), "rad/N"),
    P("vCm", (9,), "1/N"),
    P("wCm", (9,), "rad/(N m)"),
)


def _payload(name: str) -> tuple[ArmParameter, ...]:
    # Quaternions here are scalar last; `frame.q` of RA_LANDER_TO_RA is scalar first.
    return P(f"{name}_q", (4,), "", f"{name}_q_(i,j,k,r)"), P(f"{name}_t", (3,), "m", f"{name}_t_(x,y,z)")


SETS: dict[str, tuple[ArmParameter, ...]] = {
    "RA_ARM_PARAMS": (
        *_each("dh.a dh.d", PER_JOINT, "m"),
        P("dh.alpha", PER_JOINT, "rad"),
        *_each(_POSES, (4,), "m m m rad"),
        *_each("dist_grapple dist_seis dist_wts dist_hp3", (3, 4), "m"),
    ),
    "RA_JOINT_PARAMS": (
        *_each("q_min q_max", PER_JOINT, "rad"),
        P("pot.b", PER_JOINT, "LSB"),
        P("pot.m", PER_JOINT, "LSB/rad"),
        P("current.b", PER_JOINT, "LSB"),
        P("current.m", PER_JOINT, "A/LSB"),
        P("vref.b", (2,), "LSB"),
        P("vref.m", (2,), "V/LSB"),
        P("gear_ratio", PER_JOINT),
        P("rad_per_enc", PER_JOINT, "rad"),
        P("enc_offset", PER_JOINT),  # LSB in the SIS, but counts divided by the gear ratio
        P("htr_power", (4,), "W"),
        *_each("start_count nonstart_count", PER_JOINT),
        P("direction_crnt", PER_JOINT, "mA"),
        P("direction_delay", PER_JOINT, "ms"),
    ),
    "RA_CTRL_PARAMS": (
        *_each("mtr_volt_max mtr_volt_min mtr_volt_init", PER_JOINT, "V"),
        P("acc_max", PER_JOINT, "rad/s2"),
        *_each("vel_max vel_min", PER_JOINT, "rad/s"),
        P("eps_joint", PER_JOINT, "rad"),
        P("deadband_strt", PER_JOINT, "LSB"),
        P("deadband_final_via_only"),
        P("deadband_end", PER_JOINT),
        P("eps_time", unit="s"),
        P("p_gain", PER_JOINT, "V/rad"),
        P("i_gain", PER_JOINT, "V/s"),
        P("d_gain", PER_JOINT, "V s/rad"),
        *_each("filter_p_gain filter_i_gain"),
        *_each("loop_time loop_time_thermostat loop_time_cooldown", unit="s"),
        P("delta_via_period"),
        P("paci_timeout", unit="ms"),
        *_each("stop_to_no_op_time_delay power_on_time_delay", unit="s"),
        P("off_count"),
    ),
    "RA_LANDER_TO_RA": (P("frame.x", (3,), "m"), P("frame.q", (4,))),
    "RA_PATH_PARAMS": (
        P("path.cart.type"),
        *_prefix("path.cart.", "error delta", unit="m"),
        P("path.joint_delta", unit="rad"),
        P("path.time_delta", unit="s"),
    ),
    "RA_TASK_ALGO": (P(ROWS, (3,)),),
    "RA_ACT_ALGO": (P(ROWS, (3,)), P("delta_via_user", (3,)), P("dvia_thresh", unit="m")),
    "RA_TAU_PARAMS": (
        *_each("limit thresh_a thresh_c thresh_f thresh_d", PER_JOINT, "N m"),
        P("fit_nl", PER_JOINT),
        *_each("c_nl_0 c_nl_1 c_nl_2 c_nl_3 c_nl_4", PER_JOINT),
        P("temp.b", (5,), "LSB"),
        P("temp.m", (5,), "degC/LSB"),
        P("mtr_volt_max", PER_JOINT, "V"),
    ),
    "RA_TAU_PARAMS2": (
        P("current_limit", PER_JOINT, "mA"),
        P("torque_limit", PER_JOINT, "N m"),
        P("no_load_volt", PER_JOINT, "V"),
        P("current_delta", PER_JOINT, "LSB"),
        P("tau_detent", PER_JOINT, "N m"),
        P("speed_detent", PER_JOINT, "rad/s"),
        P("fit_ka", PER_JOINT),
        *_each("c_ka_0 c_ka_1 c_ka_2 c_ka_3 c_ka_4", PER_JOINT),
    ),
    "RA_SCIENCE_DATA_PERIOD": (P("science_data_period"),),
    "RA_FAULT_DETECT": (
        P("enc_pot_delta", PER_JOINT, "rad"),
        P("runaway_joint_delta", unit="rad"),
        P("runaway_pos_delta", unit="m"),
        P("runaway_ori_delta", unit="rad"),
        P("runaway_time_delta", unit="s"),
        P("joint_delta", PER_JOINT, "rad"),
        *_each("vref_nominal vref_delta", (2,), "V"),
        *_each("enc_delta pot_delta", unit="LSB"),
        P("tau", PER_JOINT, "N m"),
        P("motor_samples"),
        P("current_epsilon", unit="LSB"),
        P("heater_time", (4,), "s"),
        P("temp_delta", (4, 5), "LSB"),
        P("impeded_samples", PER_JOINT),
        *_each("pot_samples encoder_samples enc_pot_samples vref_samples runaway_samples"),
        *_each("kinematic_samples heater_rtd_samples"),
        P("htr_crnt", (4,), "LSB"),
        P("htr_crnt_offset", unit="LSB"),
        *_each("ace_cal_samples power_30v_samples stopped_samples stalled_samples"),
        P("deflection_limit", unit="rad"),
        P("subtrench_attempts"),
        P("dvia_mag_limit", unit="m"),
        *_each("default_cmd_token collision_mode"),
        P("lander_tol", unit="m"),
    ),
    "RA_TASK_C": (
        *_prefix("calibrate.", "home angle", PER_JOINT, "rad"),
        P("calibrate.current", PER_JOINT, "mA"),
        P("calibrate.time", PER_JOINT, "s"),
        P("calibrate.delta", PER_JOINT, "rad"),
    ),
    "RA_TASK_DT": (
        P("dig_trench.height", unit="m"),
        *_prefix("dig_trench.", "depth width length corner", unit="m"),
        *_prefix("dig_trench.", "scoop_angle carry_angle dump_angle return_angle", unit="rad"),
        P("dig_trench.way_point", (3,), "m"),
    ),
    "RA_TASK_SC": (
        P("scrape.guard_angle", unit="rad"),
        P("scrape.guard_depth", unit="m"),
        P("scrape.rake", (3,), "rad"),
        *_prefix("scrape.", "backoff height_initial", unit="m"),
    ),
    "RA_COMPRESS_PARAMS": _prefix("compress.", "wSyncInterval wBlockSize wSegmentSize type"),
    "RA_MAX_FAULTS": _prefix(
        "max_fault.", "ace_reset motion_impeded file_io paci tv_power stopped stalled overheat"
    ),
    "RA_FAULT_PARAMS": (
        *_prefix("fault_params.", "dt_backup scr_initial scr_delta scr_total", unit="m"),
        *_prefix(
            "fault_params.ignore_col_",
            "blade_1 blade_2 rac scoop wrist grapple_attach grapple seis wts hp3",
        ),
    ),
    "RA_POWER_STATES": (P("power_states.power", (3,), "W"), P("eps_switch")),
    "RA_GRAVITY": (P("gravity_params.acc_g", unit="m/s2"), P("gravity_params.grav_vect", (3,))),
    "RA_DEFL_GENERAL": (
        *_prefix("defl_params.", "enable_abs enable_rel enable_tool"),
        P("defl_params.enable_jnt_abs", aliases=("defl_params.enable_jint_abs",)),
        P("defl_params.enable_jnt_rel", aliases=("defl_params.enable_jint_rel",)),
        *_each("seis_mass wts_mass hp3_mass", unit="kg"),
        P("compliance_scale"),
    ),
    "RA_DEFL_LINK_0": _LINK,
    "RA_DEFL_LINK_1": _LINK,
    "RA_DEFL_LINK_2": _LINK,
    "RA_DEFL_LINK_3_STOWED": _LINK,
    "RA_DEFL_LINK_3_UNSTOWED": _LINK,
    "RA_DEFL_LINK_4_STOWED": _LINK,
    "RA_DEFL_LINK_4_UNSTOWED": _LINK,
    "RA_DEFL_LINK_5": _LINK,
    "RA_THERMAL": (
        *_each("temp_min temp_delta", (5,), "degC"),
        *_each("temp_max_rotor temp_max_case temp_cooldown", PER_JOINT, "degC"),
        P("CM_r", PER_JOINT, "degC/J"),  # printed as J/degC; as used in 5.1.5 only the reciprocal makes sense
        P("R_rtc", PER_JOINT, "W/degC"),
        P("I_nl", PER_JOINT, "A", aliases=("l_nl",)),
        P("R_cal", PER_JOINT, "ohm"),
        P("T_cal", PER_JOINT, "degC"),
        P("alpha", PER_JOINT, "1/degC"),  # printed as ohm/degC
        P("filter_alpha"),
        P("filter_dt", unit="s"),
        *_each("filter_c_0 filter_c_1 filter_c_2 filter_c_3 filter_c_4"),
    ),
    "RA_GRAPPLE_PARAMS": (
        P("grapple_heater"),
        P("max_temperature", unit="degC"),
        *_each("overheat_persistence limit_switch_persistence"),
    ),
    "RA_ACTIVE_HOLD_PARAMS": (P("active_hold"), P("hold_time", unit="s"), P("move_time_multiple")),
    "PAYLOAD_COL_PARAMS": (*_payload("seis"), *_payload("wts"), *_payload("hp3")),
}


def fold(key: str) -> str:
    """Normalise a key: spaces become underscores, case and a trailing dot are ignored."""
    return "_".join(key.split()).strip("._").lower()


def known_keys(set_name: str) -> dict[str, ArmParameter]:
    """Return the parameters of a set by all spellings of their folded keys; empty for an unknown set."""
    parameters = SETS.get(set_name, ())
    return {fold(key): p for p in parameters for key in (p.key, p.name, *p.aliases)}


def units(set_name: str) -> dict[str, str]:
    """Return the SI units of the parameters of a set, by name."""
    return {parameter.name: parameter.si_unit for parameter in SETS.get(set_name, ())}

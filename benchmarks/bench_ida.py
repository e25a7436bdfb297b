"""InSight's arm: a million rows of telemetry through the whole model, beside the same equations row by row.

Kinematics, deflection, rotor temperature, torque and force, on the joint angles, currents and voltages of a
made-up million rows at 10 Hz (28 hours of motion). The peer is plain numpy on one row at a time, as one would
write it first; it runs on a sample only.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from benchmarks._harness import compare, duration
from transect.datasets.insight.robot.arm import ArmTool, DeploymentArm
from transect.datasets.insight.robot.kinematics import tool_pose
from transect.datasets.insight.robot.motor import Motors, Rotors, rotor_temperature, torque
from transect.datasets.insight.robot.parameters import Parameters
from transect.datasets.insight.robot.statics import (
    FRAME_OF_BODY,
    LinkProperties,
    deflection,
    end_effector_forces,
    moments,
)

ROW_COUNT, SAMPLE_ROWS, CHUNK_ROWS = 1_000_000, 1_000, 20_000
"""A chunk's link frames take 13 MB; those of all rows would take 640 MB."""
THREAD_COUNT = min(2, os.cpu_count() or 1)


@dataclass(frozen=True)
class Telemetry:
    """Joint angles (rad), currents (A), voltages (V), case temperatures (degC), motor power and times."""

    q: np.ndarray
    current: np.ndarray
    volt: np.ndarray
    case: np.ndarray
    power: np.ndarray
    times_ns: np.ndarray

    def first(self, rows: int) -> "Telemetry":
        return Telemetry(*(column[:rows] for column in vars(self).values()))


@dataclass(frozen=True)
class Model:
    """The arm and all that it is made of."""

    arm: DeploymentArm
    links: LinkProperties
    motors: Motors
    rotors: Rotors
    tool: ArmTool

    @classmethod
    def printed(cls) -> "Model":
        parameters = Parameters.printed()
        arm = DeploymentArm.of(parameters)
        return cls(
            arm, LinkProperties.of(arm), Motors.of(parameters), Rotors.of(parameters), arm.tool("Blade 1")
        )


def telemetry(arm: DeploymentArm) -> Telemetry:
    rng = np.random.default_rng(2018)
    phase = np.arange(ROW_COUNT)[:, None] / [4000.0, 3100.0, 2300.0, 1700.0]
    middle, swing = (arm.chain.upper + arm.chain.lower) / 2, (arm.chain.upper - arm.chain.lower) / 2
    return Telemetry(
        q=middle + swing * np.sin(phase),
        current=0.1 * np.cos(phase) + rng.normal(scale=0.01, size=(ROW_COUNT, 4)),
        volt=rng.uniform(1.0, 30.0, (ROW_COUNT, 4)),
        case=-50.0 + 20.0 * np.sin(phase / 30.0),
        power=np.ones((ROW_COUNT, 4)),
        times_ns=np.arange(ROW_COUNT) * 100_000_000,
    )


def arm_rows(model: Model, data: Telemetry, rotor: np.ndarray) -> np.ndarray:
    """Pose, deflected pose and forces (n, 11) of some rows."""
    tau = torque(model.motors, data.current, rotor, data.volt)
    moment = moments(model.arm, data.q, tau, model.links)
    return np.concatenate(
        [
            tool_pose(model.arm, data.q, model.tool),
            deflection(model.arm, data.q, model.tool, model.links).pose,
            end_effector_forces(model.arm, data.q, moment, model.tool, data.power).values,
        ],
        axis=1,
    )


def ours(model: Model, data: Telemetry) -> tuple[np.ndarray, np.ndarray]:
    """All rows: (n, 11) as above, and the rotor temperatures (n, 4)."""
    rotor = rotor_temperature(model.rotors, data.current, data.volt, data.case, times_ns=data.times_ns)
    result = np.empty((len(data.q), 11))

    def work(begin: int) -> None:
        rows = slice(begin, begin + CHUNK_ROWS)
        part = Telemetry(*(column[rows] for column in vars(data).values()))
        result[rows] = arm_rows(model, part, rotor[rows])

    with ThreadPoolExecutor(THREAD_COUNT) as pool:
        list(pool.map(work, range(0, len(data.q), CHUNK_ROWS)))
    return result, rotor


def row_by_row(model: Model, data: Telemetry) -> tuple[np.ndarray, np.ndarray]:
    """The same numbers, one row after the other; all motors have power."""
    rotors, rows = list(rotors_one_by_one(model.rotors, data)), []
    for q, current, volt, rotor in zip(data.q, data.current, data.volt, rotors, strict=True):
        frames = [np.eye(4)]
        for step in model.arm.chain.steps(q):
            frames.append(frames[-1] @ step)
        tip = frames[4] @ [*model.tool.offset[:3], 1.0]
        pose = np.array([*tip[:3], q[1:].sum() - np.pi / 2 + model.tool.offset[3]])
        rows.append(
            [*pose, *sagged(model.links, frames, pose), *forces(model, frames, q, current, volt, rotor)]
        )
    return np.array(rows), np.array(rotors)


def rotors_one_by_one(rotors: Rotors, data: Telemetry) -> Iterator[np.ndarray]:
    temperature = data.case[0]
    yield temperature
    for current, volt, case in zip(data.current[1:], data.volt[1:], data.case[1:], strict=True):
        resistance = rotors.R_cal * (1.0 + rotors.alpha * (temperature - rotors.T_cal))
        flow = current**2 * resistance + rotors.I_nl * volt - (temperature - case) * rotors.R_rtc
        temperature = temperature + flow * 0.1 * rotors.CM_r
        yield temperature


def weights_beyond(
    links: LinkProperties, frames: list[np.ndarray], first: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Place and weight of each body from `first` outwards."""
    return [
        ((frames[FRAME_OF_BODY[j]] @ [*links.centre[j], 1.0])[:3], links.mass[j] * links.gravity)
        for j in range(first, len(FRAME_OF_BODY))
    ]


def sagged(links: LinkProperties, frames: list[np.ndarray], pose: np.ndarray) -> np.ndarray:
    moved = pose.copy()
    for body, frame in enumerate(FRAME_OF_BODY):
        R, origin = frames[frame][:3, :3], frames[frame][:3, 3]
        load = np.zeros(6)
        for place, weight in weights_beyond(links, frames, body):
            load += np.concatenate([R.T @ weight, R.T @ np.cross(place - origin, weight)])
        given = links.compliance[body] @ load
        v, w = R @ given[:3], R @ given[3:]
        moved[:3] += v + np.cross(w, pose[:3] - origin)
        moved[3] += w @ frames[1][:3, 2]
    return moved


def forces(
    model: Model,
    frames: list[np.ndarray],
    q: np.ndarray,
    current: np.ndarray,
    volt: np.ndarray,
    rotor: np.ndarray,
) -> tuple[float, float, float]:
    motors, (a0, a1, a2, _), (tx, ty, tz, _) = model.motors, model.arm.chain.a, model.tool.offset
    c = motors.no_load.coefficients
    unloaded = c[0] + c[1] * np.exp(-c[2] * rotor) + c[3] * volt / motors.volt_max
    m = motors.sign * (current - unloaded) * motors.torque_constant.coefficients[0]
    m[np.rint(np.abs(current) / motors.ampere_per_count) <= motors.dead_band] = 0.0
    for i in range(4):
        axis, origin = frames[i][:3, 2], frames[i][:3, 3]
        m[i] += sum(
            axis @ np.cross(place - origin, weight)
            for place, weight in weights_beyond(model.links, frames, i + 1)
        )
    one, two, three = np.cumsum(q[1:])
    S3, C3 = tx * np.sin(three) - tz * np.cos(three), tx * np.cos(three) + tz * np.sin(three)
    S = np.array([S3 + a2 * np.sin(two) + a1 * np.sin(one), S3 + a2 * np.sin(two), S3])
    C = np.array([C3 + a2 * np.cos(two) + a1 * np.cos(one), C3 + a2 * np.cos(two), C3])
    A, b = np.array([[S @ S, -S @ C], [-S @ C, C @ C]]), np.array([-m[1:] @ S, m[1:] @ C])
    radial, vertical = np.linalg.solve(A, b)
    return radial, (m[0] + radial * (model.arm.chain.d[1] + ty)) / (a0 + C[0]), vertical


def main() -> None:
    model = Model.printed()
    data = telemetry(model.arm)
    sample = data.first(SAMPLE_ROWS)
    for mine, theirs in zip(ours(model, sample), row_by_row(model, sample), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6)
    whole = duration(
        f"{ROW_COUNT:,} rows, {THREAD_COUNT} threads", lambda: ours(model, data), target=10.0, repeat=3
    )
    print(f"  {ROW_COUNT / whole.ours:,.0f} rows/s")
    duration(
        f"{ROW_COUNT:,} rows, rotor temperature alone",
        lambda: rotor_temperature(model.rotors, data.current, data.volt, data.case, times_ns=data.times_ns),
        target=1.0,
        repeat=3,
    )
    row = compare(
        f"{SAMPLE_ROWS:,} rows / row by row",
        lambda: ours(model, sample),
        lambda: row_by_row(model, sample),
        repeat=3,
    )
    expected_s = (row.peer or 0.0) * ROW_COUNT / SAMPLE_ROWS
    print(f"  row by row, {ROW_COUNT:,} rows would take {expected_s:,.0f} s (from the sample)")


if __name__ == "__main__":
    main()

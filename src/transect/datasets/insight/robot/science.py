"""The rows of a SciHi or SciLo table (SIS Table 12) as arrays, their resolution, and deployment phases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS
from transect.errors import StreamError
from transect.geometry.array_checks import floats, same_length
from transect.recording import Recording, Stream

from .codes import DIGGING_TOOLS, GrapplePhase, ToolCode

DEVICES = ("Arm/SciHi", "Arm/SciLo")
POSES = ("enc", "pot", "enc_defl", "pot_defl")
FORCES = ("Fr", "Ft", "Fz")
CODES = ("stat", "tool", "grapple_phase")
MOTOR_BITS = 0b1111
"""Bits of `stat` for the power of the motors, SIS Table 13."""
MAX_DECIMALS = 9
_JOINTS = ("tcase", "trotor", "cur", "volt")


def devices(recording: Recording) -> tuple[str, ...]:
    """Return those of `Arm/SciHi` and `Arm/SciLo` that a recording has.

    Raises
    ------
    StreamError
        If it has neither.
    """
    found = tuple(name for name in DEVICES if name in recording)
    if not found:
        raise StreamError(
            f"{recording.name} has no SciHi or SciLo data",
            hint="it needs a table named A0087_..._eu.csv or A0088_..._eu.csv (SIS Table 8)",
        )
    return found


@dataclass(frozen=True, eq=False)
class ScienceRows:
    """The rows of a SciHi or SciLo table, SI; the names are those of SIS Table 12."""

    # t_ns, file, stat, tool, phase: (n,), time, number of the file, status word, and codes of tool and
    # grapple phase
    t_ns: Ints
    file: Ints
    stat: Ints
    tool: Ints
    phase: Ints
    elapsed: Floats  # (n,), s; NaN in a table of 57 columns
    # enc, pot, case, rotor, current, volt, velocity, torque: (n, 4)
    enc: Floats
    pot: Floats
    case: Floats
    rotor: Floats
    current: Floats
    volt: Floats
    velocity: Floats
    torque: Floats
    poses: Mapping[str, Floats]  # x, y, z, th by the names of `POSES`
    forces: Floats  # (n, 3)

    @classmethod
    def of(cls, recording: Recording, device: str) -> ScienceRows:
        """Gather the columns of `Arm/SciHi` or `Arm/SciLo` and the streams below it."""
        main, encoders = recording[device], recording[f"{device}/Encoders"]
        tool_poses, forces = recording[f"{device}/Tool"], recording[f"{device}/Forces"]
        if missing := [name for name in CODES if name not in main.columns]:
            raise StreamError(
                f"{device} has no column {' and no '.join(missing)}",
                where=", ".join(sorted(set(main.column("file")))) if "file" in main.columns else device,
                why="without the status word and the codes of SIS Table 12 nothing can be recomputed",
            )
        joints = {name: _stack_columns(main, [f"{name}{j}" for j in (1, 2, 3, 4)]) for name in _JOINTS}
        files: list[str] = main.column("file") if "file" in main.columns else [""] * len(main)
        numbers = {name: i for i, name in enumerate(dict.fromkeys(files))}
        return cls(
            t_ns=main.t_ns,
            file=np.array([numbers[name] for name in files], dtype=np.int64),
            stat=np.asarray(main.column("stat"), dtype=np.int64),
            tool=main.column("tool"),
            phase=main.column("grapple_phase"),
            elapsed=_stack_columns(main, ["elapsed_time"])[:, 0],
            enc=encoders.column("position"),
            pot=recording[f"{device}/Potentiometers"].column("position"),
            case=joints["tcase"],
            rotor=joints["trotor"],
            current=joints["cur"],
            volt=joints["volt"],
            velocity=encoders.column("velocity"),
            torque=encoders.column("effort"),
            poses={s: _stack_columns(tool_poses, [f"{x}_{s}" for x in ("x", "y", "z", "th")]) for s in POSES},
            forces=_stack_columns(forces, FORCES),
        )

    def only(self, keep: Mask) -> ScienceRows:
        """Return the rows where `keep` (n,) is true."""
        arrays = {name: value[keep] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return replace(self, **arrays, poses={name: pose[keep] for name, pose in self.poses.items()})

    @cached_property
    def half(self) -> float:
        """Half of the last printed digit, in the units of the table (currents are mA there).

        It is estimated from all columns together, since a nearly constant column shows only some of its
        digits.
        """
        printed = (self.enc, self.pot, self.case, self.rotor, self.current * 1e3, self.volt, self.velocity)
        numbers = np.concatenate(
            [a.ravel() for a in (*printed, self.torque, *self.poses.values(), self.forces)]
        )
        numbers = numbers[np.isfinite(numbers)]
        for decimals in range(MAX_DECIMALS):
            shifted = numbers * 10.0**decimals
            if (np.abs(shifted - np.rint(shifted)) < 1e-6).all():
                return 0.5 * 10.0**-decimals
        return 0.5 * 10.0**-MAX_DECIMALS

    @cached_property
    def half_time(self) -> float:
        """Half of the last digit of the printed times, s."""
        digits = next(d for d in range(10) if not (self.t_ns % 10 ** (9 - d)).any())
        return 0.5 * 10.0**-digits

    @property
    def power(self) -> Floats:
        """1 where a joint's motor has power, else 0, (n, 4)."""
        return ((self.stat[:, None] >> np.arange(4)) & 1).astype(np.float64)

    def adjacent(self, period: float) -> Mask:
        """Whether each row (n,) follows the previous row of its file within 1.5 periods (s)."""
        steps = np.diff(self.t_ns, prepend=self.t_ns[:1])
        same = np.diff(self.file, prepend=-1) == 0
        return same & (steps > 0) & (steps <= 1.5 * period * NS)


def _stack_columns(stream: Stream, names: Sequence[str]) -> Floats:
    nothing = np.full(len(stream), np.nan)
    columns = [stream.column(name) if name in stream.columns else nothing for name in names]
    return np.column_stack(columns).astype(np.float64, copy=False)


GRAPPLED: dict[int, str] = {
    GrapplePhase.SEIS_GRAPPLED: "SEIS",
    GrapplePhase.WTS_GRAPPLED: "WTS",
    GrapplePhase.HP3_GRAPPLED: "HP3",
}
"""Payloads by grapple phase, SIS Table 15."""


@dataclass(frozen=True)
class DeploymentHeights:
    """Heights of a deployment (SIS 2.6.2.2)."""

    teach_m: float = 0.05  # teach point above the hook of the stowed payload
    descent_m: float = 0.04  # from the teach point down to the capture
    tolerance_m: float = 0.01


HEIGHTS = DeploymentHeights()
MEANINGS = {
    "part 1": "the unstowed grapple moves to the teach point, 5 cm above the hook of the stowed payload",
    "part 2": "the fingers open and go 4 cm down to capture the payload",
    "part 3": "the captured payload is lifted and placed on the ground",
    "part 4": "the grapple opens and moves up and away from the hook",
    "imaging": "the camera is the tool: workspace imaging (SIS 2.6.2.1)",
    "soil mechanics": "a blade or the scoop is the tool (SIS 2.6.2.3)",
    "stowed": "the grapple is stowed, and neither camera nor scoop is the tool",
    "unstowed": "the grapple hangs free, and no deployment is under way",
}


@dataclass(frozen=True)
class DeploymentPhase:
    """Consecutive rows of one activity."""

    name: str  # one of `MEANINGS`
    payload: str  # SEIS, WTS or HP3, "" outside deployments
    # start, stop: first row, and the row after the last
    start: int
    stop: int
    why: str  # its meaning, and the evidence in the data


def deployment_phases(
    tool: ArrayLike, grapple_phase: ArrayLike, moving: ArrayLike, z: ArrayLike
) -> tuple[DeploymentPhase, ...]:
    """Segment a recording into phases; each row belongs to one.

    Parameters
    ----------
    tool, grapple_phase : (n,) int
        Codes of SIS Tables 14 and 15.
    moving : (n,) bool
        Whether any motor has power.
    z : (n,)
        Of the tool in the IDA frame (down), m.
    """
    tools, codes = np.asarray(tool, dtype=np.int64), np.asarray(grapple_phase, dtype=np.int64)
    on, height = np.asarray(moving, dtype=np.bool_), floats("z", z, ("n",))
    same_length(tool=tools, grapple_phase=codes, moving=on, z=height)
    blocks = list(_blocks(codes))
    found: list[DeploymentPhase] = []
    for i, (start, stop) in enumerate(blocks):
        code = int(codes[start])
        if code in GRAPPLED:
            found.append(_carry_phase(GRAPPLED[code], height, start, stop))
            continue
        opening = code == GrapplePhase.OK_TO_OPEN
        before = GRAPPLED.get(int(codes[start - 1]), "") if opening and i else ""
        after = GRAPPLED.get(int(codes[stop]), "") if opening and i + 1 < len(blocks) else ""
        release = _release_phase(before, on, height, start, stop) if before else []
        begin = release[0].stop if release else start
        capture = _capture_phases(after, tools, on, height, begin, stop) if after else []
        end = capture[0].start if capture else stop
        found += [*release, *_other_phases(tools, codes, begin, end), *capture]
    return tuple(found)


def _blocks(codes: Ints) -> Iterator[tuple[int, int]]:
    """Rows (start, stop) of equal codes."""
    if len(codes):
        edges = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
        yield from pairwise(edges)


def _carry_phase(payload: str, z: Floats, start: int, stop: int) -> DeploymentPhase:
    highest = np.min(z[start:stop], where=np.isfinite(z[start:stop]), initial=z[start])
    rise, drop = z[start] - highest, z[stop - 1] - z[start]
    why = f"{payload} is grappled; lifted {rise:.2f} m, at the end {drop:+.2f} m below where it stood"
    return _phase("part 3", payload, start, stop, why)


def _release_phase(payload: str, on: Mask, z: Floats, start: int, stop: int) -> list[DeploymentPhase]:
    """Part 4: from the release until the arm rests above the teach height."""
    resting = ~on[start:stop] & (z[start:stop] <= z[start] - HEIGHTS.teach_m + HEIGHTS.tolerance_m)
    end = start + int(resting.argmax()) if resting.any() else stop
    why = f"{payload} is not grappled any more; rises {z[start] - z[end - 1]:.2f} m"
    return [_phase("part 4", payload, start, end, why)]


def _capture_phases(
    payload: str, tools: Ints, on: Mask, z: Floats, start: int, stop: int
) -> list[DeploymentPhase]:
    """Parts 1 and 2; the second ends with the capture in row `stop`."""
    other = np.flatnonzero(tools[start:stop] != ToolCode.GRAPPLE)
    start += int(other[-1]) + 1 if len(other) else 0
    if start == stop:
        return []
    teach = _find_teach_point(on, z, start, stop)
    seen = "" if teach > start else "; the move to the teach point is not in the data"
    down = f"goes {z[stop - 1] - z[teach]:.2f} m down before {payload} is grappled{seen}"
    parts = [_phase("part 2", payload, teach, stop, down)]
    if teach > start:
        why = f"the last moves of the grapple before it opens over {payload}"
        parts.insert(0, _phase("part 1", payload, start, teach, why))
    return parts


def _find_teach_point(on: Mask, z: Floats, start: int, stop: int) -> int:
    """First row of the pause before the descent that ends in row `stop` - 1; default: `start`."""
    teach, tolerance = z[stop - 1] - HEIGHTS.descent_m, HEIGHTS.tolerance_m
    above = np.flatnonzero(z[start:stop] <= teach + tolerance)
    if not len(above):
        return start
    row = start + int(above[-1])
    descent = _run_start(on, row, start) if on[row] else row + 1
    if z[descent] < teach - 2 * tolerance:  # a descent from far above without a pause
        return descent + int((z[descent:stop] >= teach - tolerance).argmax())
    return _run_start(~on, descent - 1, start) if descent > start else start


def _run_start(mask: Mask, row: int, first: int) -> int:
    """Start of the run of True that contains `row`, not before row `first`."""
    gaps = np.flatnonzero(~mask[first : row + 1])
    return first + int(gaps[-1]) + 1 if len(gaps) else first


def _other_phases(tools: Ints, codes: Ints, start: int, stop: int) -> Iterator[DeploymentPhase]:
    """Phases outside deployments, by the selected tool."""
    kinds = np.select([tools == ToolCode.CAMERA, np.isin(tools, DIGGING_TOOLS)], [1, 2], 0)[start:stop]
    for a, b in _blocks(kinds):
        idle = "stowed" if codes[start + a] <= GrapplePhase.STOWED else "unstowed"
        name = (idle, "imaging", "soil mechanics")[int(kinds[a])]
        yield _phase(name, "", start + a, start + b, "")


def _phase(name: str, payload: str, start: int, stop: int, why: str) -> DeploymentPhase:
    return DeploymentPhase(name, payload, start, stop, f"{MEANINGS[name]}: {why}" if why else MEANINGS[name])


def phases_of(recording: Recording) -> tuple[DeploymentPhase, ...]:
    """Segment the SciHi (else SciLo) rows of a recording into phases, by the height from the encoders."""
    device = devices(recording)[0]
    main = recording[device]
    moving = np.asarray(main.column("stat"), dtype=np.int64) & MOTOR_BITS != 0
    z = recording[f"{device}/Tool"].column("z_enc")
    return deployment_phases(main.column("tool"), main.column("grapple_phase"), moving, z)

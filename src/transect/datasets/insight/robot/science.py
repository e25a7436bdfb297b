"""The rows of a SciHi or SciLo table (SIS Table 12) as arrays, and how finely they are printed."""

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

DEVICES = ("Arm/SciHi", "Arm/SciLo")
POSES = ("enc", "pot", "enc_defl", "pot_defl")
FORCES = ("Fr", "Ft", "Fz")
CODES = ("stat", "tool", "grapple_phase")
MOTORS = 0b1111
"""Bits of `stat` that say which motors have power, SIS Table 13."""
MOST_DECIMALS = 9
_JOINTS = ("tcase", "trotor", "cur", "volt")


def devices(recording: Recording) -> tuple[str, ...]:
    """Which of `Arm/SciHi` and `Arm/SciLo` a recording has.

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
class Science:
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
    def of(cls, recording: Recording, device: str) -> Science:
        """Gather the columns of `Arm/SciHi` or `Arm/SciLo` and the streams below it."""
        main, encoders = recording[device], recording[f"{device}/Encoders"]
        place, forces = recording[f"{device}/Tool"], recording[f"{device}/Forces"]
        if missing := [name for name in CODES if name not in main.columns]:
            raise StreamError(
                f"{device} has no column {' and no '.join(missing)}",
                where=", ".join(sorted(set(main.column("file")))) if "file" in main.columns else device,
                why="without the status word and the codes of SIS Table 12 nothing can be recomputed",
            )
        joints = {name: _side_by_side(main, [f"{name}{j}" for j in (1, 2, 3, 4)]) for name in _JOINTS}
        files: list[str] = main.column("file") if "file" in main.columns else [""] * len(main)
        numbers = {name: i for i, name in enumerate(dict.fromkeys(files))}
        return cls(
            t_ns=main.t_ns,
            file=np.array([numbers[name] for name in files], dtype=np.int64),
            stat=np.asarray(main.column("stat"), dtype=np.int64),
            tool=main.column("tool"),
            phase=main.column("grapple_phase"),
            elapsed=_side_by_side(main, ["elapsed_time"])[:, 0],
            enc=encoders.column("position"),
            pot=recording[f"{device}/Potentiometers"].column("position"),
            case=joints["tcase"],
            rotor=joints["trotor"],
            current=joints["cur"],
            volt=joints["volt"],
            velocity=encoders.column("velocity"),
            torque=encoders.column("effort"),
            poses={s: _side_by_side(place, [f"{x}_{s}" for x in ("x", "y", "z", "th")]) for s in POSES},
            forces=_side_by_side(forces, FORCES),
        )

    def only(self, keep: Mask) -> Science:
        """Return the rows where `keep` (n,) is true."""
        arrays = {name: value[keep] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return replace(self, **arrays, poses={name: pose[keep] for name, pose in self.poses.items()})

    @cached_property
    def half(self) -> float:
        """Half of the last digit that the table prints, in its own units (currents are mA there).

        The fewest decimals that hold all numbers count: of all columns together, since one that hardly
        changes shows only some of its digits.
        """
        printed = (self.enc, self.pot, self.case, self.rotor, self.current * 1e3, self.volt, self.velocity)
        numbers = np.concatenate(
            [a.ravel() for a in (*printed, self.torque, *self.poses.values(), self.forces)]
        )
        numbers = numbers[np.isfinite(numbers)]
        for decimals in range(MOST_DECIMALS):
            shifted = numbers * 10.0**decimals
            if (np.abs(shifted - np.rint(shifted)) < 1e-6).all():
                return 0.5 * 10.0**-decimals
        return 0.5 * 10.0**-MOST_DECIMALS

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
        """Tell of each row (n,) whether it follows the one before it within `period` s, in the same file."""
        steps = np.diff(self.t_ns, prepend=self.t_ns[:1])
        same = np.diff(self.file, prepend=-1) == 0
        return same & (steps > 0) & (steps <= 1.5 * period * NS)


def _side_by_side(stream: Stream, names: Sequence[str]) -> Floats:
    nothing = np.full(len(stream), np.nan)
    columns = [stream.column(name) if name in stream.columns else nothing for name in names]
    return np.column_stack(columns).astype(np.float64, copy=False)


STOWED, OK_TO_OPEN = 1, 2
GRAPPLED = {3: "SEIS", 4: "WTS", 5: "HP3"}
"""Payloads by grapple phase, SIS Table 15."""
GRAPPLE, CAMERA, DIGGERS = 5, 3, (0, 1, 2)
"""Tools of SIS Table 14."""
TEACH_HEIGHT, DESCENT, SLACK = 0.05, 0.04, 0.01
"""m above the stowed hook; m down from there to capture; m by which a height may miss."""
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
class Phase:
    """Rows in which the arm did one thing."""

    name: str  # one of `MEANINGS`
    payload: str  # SEIS, WTS or HP3, "" where none is deployed
    # start, stop: first row, and the one after the last
    start: int
    stop: int
    why: str  # what it is, and what in the data says so


def deployment_phases(
    tool: ArrayLike, grapple_phase: ArrayLike, moving: ArrayLike, z: ArrayLike
) -> tuple[Phase, ...]:
    """Divide a record into phases; each row is in one.

    Parameters
    ----------
    tool, grapple_phase : (n,) int
        Codes of SIS Tables 14 and 15.
    moving : (n,) bool
        Whether any motor has power.
    z : (n,)
        Of the tool in the IDA frame, m, down.
    """
    tools, codes = np.asarray(tool, dtype=np.int64), np.asarray(grapple_phase, dtype=np.int64)
    on, height = np.asarray(moving, dtype=np.bool_), floats("z", z, ("n",))
    same_length(tool=tools, grapple_phase=codes, moving=on, z=height)
    blocks = list(_blocks(codes))
    found: list[Phase] = []
    for i, (start, stop) in enumerate(blocks):
        code = int(codes[start])
        if code in GRAPPLED:
            found.append(_carrying(GRAPPLED[code], height, start, stop))
            continue
        opening = code == OK_TO_OPEN
        before = GRAPPLED.get(int(codes[start - 1]), "") if opening and i else ""
        after = GRAPPLED.get(int(codes[stop]), "") if opening and i + 1 < len(blocks) else ""
        release = _release(before, on, height, start, stop) if before else []
        begin = release[0].stop if release else start
        capture = _capture(after, tools, on, height, begin, stop) if after else []
        end = capture[0].start if capture else stop
        found += [*release, *_between(tools, codes, begin, end), *capture]
    return tuple(found)


def _blocks(codes: Ints) -> Iterator[tuple[int, int]]:
    """Rows (start, stop) of equal codes."""
    if len(codes):
        edges = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
        yield from pairwise(edges)


def _carrying(payload: str, z: Floats, start: int, stop: int) -> Phase:
    highest = np.min(z[start:stop], where=np.isfinite(z[start:stop]), initial=z[start])
    rise, drop = z[start] - highest, z[stop - 1] - z[start]
    why = f"{payload} is grappled; lifted {rise:.2f} m, at the end {drop:+.2f} m below where it stood"
    return _phase("part 3", payload, start, stop, why)


def _release(payload: str, on: Mask, z: Floats, start: int, stop: int) -> list[Phase]:
    """Part 4: from the release until the arm rests again, having risen by the height of a teach point."""
    away = ~on[start:stop] & (z[start:stop] <= z[start] - TEACH_HEIGHT + SLACK)
    end = start + int(away.argmax()) if away.any() else stop
    why = f"{payload} is not grappled any more; rises {z[start] - z[end - 1]:.2f} m"
    return [_phase("part 4", payload, start, end, why)]


def _capture(payload: str, tools: Ints, on: Mask, z: Floats, start: int, stop: int) -> list[Phase]:
    """Parts 1 and 2, of which the second ends with the capture in row `stop`."""
    other = np.flatnonzero(tools[start:stop] != GRAPPLE)
    start += int(other[-1]) + 1 if len(other) else 0
    if start == stop:
        return []
    teach = _at_teach_point(on, z, start, stop)
    seen = "" if teach > start else "; the way to the teach point is not in the data"
    down = f"goes {z[stop - 1] - z[teach]:.2f} m down before {payload} is grappled{seen}"
    parts = [_phase("part 2", payload, teach, stop, down)]
    if teach > start:
        why = f"the last moves of the grapple before it opens over {payload}"
        parts.insert(0, _phase("part 1", payload, start, teach, why))
    return parts


def _at_teach_point(on: Mask, z: Floats, start: int, stop: int) -> int:
    """First row of the pause before the descent that ends in row `stop` - 1; `start` if there is none."""
    above = np.flatnonzero(z[start:stop] <= z[stop - 1] - DESCENT + SLACK)
    if not len(above):
        return start
    row = start + int(above[-1])
    descent = _run_start(on, row, start) if on[row] else row + 1
    if z[descent] < z[stop - 1] - DESCENT - 2 * SLACK:  # came down from far above without a pause
        return descent + int((z[descent:stop] >= z[stop - 1] - DESCENT - SLACK).argmax())
    return _run_start(~on, descent - 1, start) if descent > start else start


def _run_start(mask: Mask, row: int, least: int) -> int:
    """First row, `least` or later, of the unbroken stretch of True that ends in `row`."""
    gaps = np.flatnonzero(~mask[least : row + 1])
    return least + int(gaps[-1]) + 1 if len(gaps) else least


def _between(tools: Ints, codes: Ints, start: int, stop: int) -> Iterator[Phase]:
    """Rows that are part of no deployment, by the tool in use."""
    kinds = np.select([tools == CAMERA, np.isin(tools, DIGGERS)], [1, 2], 0)[start:stop]
    for a, b in _blocks(kinds):
        idle = "stowed" if codes[start + a] <= STOWED else "unstowed"
        name = (idle, "imaging", "soil mechanics")[int(kinds[a])]
        yield _phase(name, "", start + a, start + b, "")


def _phase(name: str, payload: str, start: int, stop: int, why: str) -> Phase:
    return Phase(name, payload, start, stop, f"{MEANINGS[name]}: {why}" if why else MEANINGS[name])


def phases_of(recording: Recording) -> tuple[Phase, ...]:
    """Divide a recording's SciHi (else SciLo) rows into phases; the height is that by the encoders."""
    device = devices(recording)[0]
    main = recording[device]
    moving = np.asarray(main.column("stat"), dtype=np.int64) & MOTORS != 0
    z = recording[f"{device}/Tool"].column("z_enc")
    return deployment_phases(main.column("tool"), main.column("grapple_phase"), moving, z)

"""The rows of a SciHi or SciLo table (SIS Table 12) as arrays, and how finely they are printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS
from transect.errors import StreamError
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

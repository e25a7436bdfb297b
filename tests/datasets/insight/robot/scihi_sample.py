"""A small SciHi table whose derived columns are worked out here, with nothing but `math`.

Denavit and Hartenberg's matrices are multiplied out (SIS 5.1.3.1, appendix B), rotors warmed loop by loop
(5.1.5), torques and forces solved from appendix D. All mass is a point in the wrist, and all compliance is in
the upper arm's turn about the elbow axis, so that gravity and sag can be written down.
"""

import math
from pathlib import Path

NAME = "A0087_0209_615088547_615088547_190629192905_eu.csv"  # SIS appendix E
PARAMETER_NAME = "A0086_0209_615088547_615088547_190629192905_012.txt"

DH_A = (0.029609, 0.976664007, 0.857989013, 0.0)  # dh.a
DH_D = (-0.056456, -0.140837997, 0.0, 0.0)  # dh.d
DH_ALPHA = (math.pi / 2, 0.0, 0.0, math.pi / 2)  # dh.alpha is printed to single precision
X_SCOOP = (0.05, 0.01, 0.12, 0.1)  # made up: the SIS lost x_scoop
X_GRAPPLE_ATTACH = (0.0, -0.0383, 0.005, 0.0)  # x_grapple_attach
DIST_GRAPPLE = 0.3  # dist_grapple
GRAVITY, DOWN = 3.711, (0.046825, -0.051123, 0.997594)  # RA_GRAVITY
LINK_MASS, LINK_COMPLIANCE, COMPLIANCE_SCALE = 2.0, 4e-5, 1.5  # kg; rad/(N m); compliance_scale
TORQUE_SIGN = (-1.0, 1.0, 1.0, 1.0)  # mtr_torq_sign, appendix D
C_KA = (468.72, 574.79, 371.6, 116.53)  # c_ka_0
C_NL = (
    (0.014134, 0.016033, 0.014041, 0.0054075),
    (0.0021647, 0.0008571, 0.0007949, 0.0078765),
    (0.028697, 0.052189, 0.052205, 0.0078644),
    (0.0081567, 0.0115545, 0.009798, 0.0041967),
)
AMPERE_PER_COUNT = 0.00032143  # current.m

_ZERO = "[ 0 0 0 0 0 0 0 0 0 ]"
_LINK = (
    "mass = {mass}\ncm_x = 0\ncm_y = 0\ncm_z = 0\nvCf = {zero}\nwCf = {zero}\nvCm = {zero}\nwCm = {turn}\n"
)
_TURN = f"[ 0 0 0 0 0 0 0 0 {LINK_COMPLIANCE} ]"


def _link(name: str) -> str:
    mass, turn = (LINK_MASS if "4" in name else 0.0), (_TURN if name.endswith("2") else _ZERO)
    return f"Parameter Set: RA_DEFL_LINK_{name}\n" + _LINK.format(mass=mass, zero=_ZERO, turn=turn)


LINKS = "\n".join(
    _link(name) for name in ("0", "1", "2", "3_STOWED", "3_UNSTOWED", "4_STOWED", "4_UNSTOWED", "5")
)
PLACES = f"""\
Parameter Set: RA_ARM_PARAMS
x_scoop = [ {X_SCOOP[0]} {X_SCOOP[1]} {X_SCOOP[2]} {X_SCOOP[3]} ]
x_grapple_attach = [ {X_GRAPPLE_ATTACH[0]} {X_GRAPPLE_ATTACH[1]} {X_GRAPPLE_ATTACH[2]} {X_GRAPPLE_ATTACH[3]} ]
dist_grapple = [ 0 0 {DIST_GRAPPLE} ]
"""
_DEFLECTION = f"Parameter Set: RA_DEFL_GENERAL\ncompliance_scale = {COMPLIANCE_SCALE}"
PARAMETERS = f"SCLK = 615088000.0\n\n{PLACES}\n{_DEFLECTION}\n\n{LINKS}"

Vector = tuple[float, ...]


def dot(a: Vector, b: Vector) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def cross(a: Vector, b: Vector) -> Vector:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def add(a: Vector, b: Vector, factor: float = 1.0) -> Vector:
    return tuple(x + factor * y for x, y in zip(a, b, strict=True))


def product(a: list[list[float]], b: list[list[float]]) -> list[list[float]]:
    return [[sum(a[i][k] * b[k][j] for k in range(4)) for j in range(4)] for i in range(4)]


def frames(q: Vector) -> list[list[list[float]]]:
    """Base and the four link frames: A_i = Rz(q) Tz(d) Tx(a) Rx(alpha)."""
    found = [[[float(i == j) for j in range(4)] for i in range(4)]]
    for angle, a, d, alpha in zip(q, DH_A, DH_D, DH_ALPHA, strict=True):
        c, s, ca, sa = math.cos(angle), math.sin(angle), math.cos(alpha), math.sin(alpha)
        step = [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]]
        found.append(product(found[-1], step))
    return found


def column(frame: list[list[float]], j: int) -> Vector:
    return tuple(frame[i][j] for i in range(3))


def poses(q: Vector, tool: int) -> tuple[Vector, Vector]:
    """Stiff and sagging x, y, z, th of scoop (2) or grapple (5)."""
    T = frames(q)
    offset = X_SCOOP if tool == 2 else X_GRAPPLE_ATTACH
    held = tuple(dot(tuple(T[4][i]), (*offset[:3], 1.0)) for i in range(3))
    elbow, axis = column(T[2], 3), column(T[2], 2)
    moment = cross(add(column(T[4], 3), elbow, -1.0), weight())
    turn = COMPLIANCE_SCALE * LINK_COMPLIANCE * dot(axis, moment)
    sagged = add(held, cross(axis, add(held, elbow, -1.0)), turn)
    if tool == 5:
        down = unit(DOWN)
        th = math.asin(down[2])
        return (*add(held, down, DIST_GRAPPLE), th), (*add(sagged, down, DIST_GRAPPLE), th)
    th = q[1] + q[2] + q[3] - math.pi / 2 + offset[3]
    return (*held, th), (*sagged, th + turn)


def unit(v: Vector) -> Vector:
    length = math.sqrt(dot(v, v))
    return tuple(x / length for x in v)


def weight() -> Vector:
    return tuple(LINK_MASS * GRAVITY * x for x in unit(DOWN))


def forces(q: Vector, tau: Vector, power: Vector, tool: int) -> Vector:
    """F_R, F_T, F_Z by appendix D: least squares of m_i = C_i F_Z - S_i F_R over the joints with power."""
    T = frames(q)
    offset = X_SCOOP if tool == 2 else X_GRAPPLE_ATTACH
    held = tuple(dot(tuple(T[4][i]), (*offset[:3], 1.0)) for i in range(3))
    outwards = (math.cos(q[0]), math.sin(q[0]), 0.0)
    m = [
        tau[i] + dot(column(T[i], 2), cross(add(column(T[4], 3), column(T[i], 3), -1.0), weight()))
        for i in range(4)
    ]
    ss = sc = cc = sm = cm = 0.0
    for i in (1, 2, 3):
        arm = add(held, column(T[i], 3), -1.0)
        C, S = dot(arm, outwards), arm[2]
        ss, sc, cc = ss + power[i] * S * S, sc + power[i] * S * C, cc + power[i] * C * C
        sm, cm = sm + power[i] * S * m[i], cm + power[i] * C * m[i]
    if sum(power[1:]) < 2:
        return (-99999.0, -99999.0, -99999.0)
    det = ss * cc - sc * sc
    fr, fz = (-cc * sm + sc * cm) / det, (ss * cm - sc * sm) / det
    return fr, (m[0] + fr * (DH_D[1] + offset[1])) / dot(held, outwards), fz


def torques(current: Vector, rotor: Vector, volt: Vector) -> Vector:
    """tau = sign (I - I_nl) Ka, zero within one count of zero (current_delta)."""
    c0, c1, c2, c3 = C_NL
    out: list[float] = []
    for j in range(4):
        unloaded = c0[j] + c1[j] * math.exp(-c2[j] * rotor[j]) + c3[j] * volt[j] / 30.0
        idle = abs(current[j]) < 1.5 * AMPERE_PER_COUNT
        out.append(0.0 if idle else TORQUE_SIGN[j] * (current[j] - unloaded) * C_KA[j])
    return tuple(out)


def warmer(rotor: Vector, current: Vector, volt: Vector, case: Vector) -> Vector:
    """One loop of 0.1 s of SIS 5.1.5, with the values of RA_THERMAL."""
    out: list[float] = []
    for t, i, v, c in zip(rotor, current, volt, case, strict=True):
        heat = i * i * 42.0 * (1 + 0.00393 * (t - 20.0)) + 0.008 * v - (t - c) * 0.0885
        out.append(t + heat * 0.1 * 0.1014)
    return tuple(out)


HEADINGS = (
    "#time(s)",
    "elapsed_time(hr)",
    *(f"enc{j}(rad)" for j in (1, 2, 3, 4)),
    *(f"pot{j}(rad)" for j in (1, 2, 3, 4)),
    *(f"tcase{j}(C)" for j in (1, 2, 3, 4)),
    *(f"trotor{j}(C)" for j in (1, 2, 3, 4)),
    "tgrapple(C)",
    *(f"cur{j}(mA)" for j in (1, 2, 3, 4)),
    *(f"volt{j}(V)" for j in (1, 2, 3, 4)),
    "stat",
    "tool",
    *(f"{x}_{s}(m)" for s in ("enc", "pot", "enc_defl", "pot_defl") for x in ("x", "y", "z", "th")),
    *(f"v{j}(rad/s)" for j in (1, 2, 3, 4)),
    *(f"tau{j}(N-m)" for j in (1, 2, 3, 4)),
    "Fr(N)",
    "Ft(N)",
    "Fz(N)",
    "htr_cur(mA)",
    "grapple_phase",
)
"""Of SIS Table 12, and `elapsed_time` of appendix E."""


START_SCLK = (0.3, -1.2, 1.9, 0.4)


def angles(t: float, start: Vector = START_SCLK) -> Vector:
    """A closed-form motion."""
    return (
        start[0] + 0.02 * math.sin(0.5 * t),
        start[1] + 0.02 * math.sin(0.7 * t),
        start[2] - 0.02 * math.sin(0.6 * t),
        start[3] + 0.03 * math.sin(0.9 * t),
    )


def rows(count: int = 40, start: Vector = START_SCLK) -> list[dict[str, float]]:
    """Rows at 10 Hz: the first half with the scoop, the second with the grapple."""
    volt, rotor = (12.0, 20.0, 15.0, 8.0), (-54.0, -53.5, -52.0, -51.0)
    found: list[dict[str, float]] = []
    for k in range(count):
        t, tool = 0.1 * k, 2 if k < count // 2 else 5
        case = tuple(-55.0 + 0.01 * k + j for j in range(4))
        current = tuple(AMPERE_PER_COUNT * (100 + 40 * j + k) for j in range(4)) if k % 7 else (0.0,) * 4
        power = (1.0, 1.0, 1.0, 1.0) if k % 5 else (1.0, 0.0, 0.0, 1.0)
        q, before = angles(t, start), angles(t - 0.1, start)
        pot = tuple(angle + 0.003 for angle in q)
        rotor = warmer(rotor, current, volt, case) if k else rotor
        tau = torques(current, rotor, volt)
        place = [x for sag in (0, 1) for s in (q, pot) for x in poses(s, tool)[sag]]
        speed = [(now - then) / 0.1 for now, then in zip(q, before, strict=True)]
        stat = sum(int(on) << j for j, on in enumerate(power))
        numbers = [t / 3600 + 0.5, *q, *pot, *case, *rotor, -26.9, *(i * 1e3 for i in current), *volt]
        tail = [*place, *speed, *tau, *forces(q, tau, power, tool), 0.0015]
        values = [615088547.0 + t, *numbers, stat, tool, *tail, 2]
        found.append(dict(zip(HEADINGS, values, strict=True)))
    return found


def text(table: list[dict[str, float]], decimals: int = 4) -> str:
    """The table as the archive prints it: time to a tenth, all else to four decimals."""
    forms = {"#time(s)": ".1f", "stat": "d", "tool": "d", "grapple_phase": "d"}
    names = [name for name in HEADINGS if name in table[0]]
    lines = [",".join(format(row[name], forms.get(name, f".{decimals}f")) for name in names) for row in table]
    return "\r\n".join([",".join(names), *lines]) + "\r\n"


def write(
    folder: Path, table: list[dict[str, float]] | None = None, parameters: str | None = PARAMETERS
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NAME).write_bytes(text(rows() if table is None else table).encode())
    if parameters is not None:
        (folder / PARAMETER_NAME).write_text(parameters)
    return folder

"""Names of units and their conversion to SI, for all readers and writers.

Case matters where necessary: `g` is standard gravity and `G` is gauss, `mg` and `mG` a thousandth of each.
"""

from __future__ import annotations

import math
import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from transect.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from .arrays import Floats

Number = TypeVar("Number", float, "Floats")

G0 = 9.80665
"""Standard gravity, m/s2."""


class Unit(NamedTuple):
    """A unit: ``SI value = value * times / per + offset``, and the SI unit's name.

    Decimal submultiples such as mm (times 1, per 1000) use a division, so that 1234 mm is exactly 1.234 m.
    """

    si: str
    times: float = 1.0
    per: float = 1.0
    offset: float = 0.0

    @property
    def scale(self) -> float:
        """The value of one unit in SI."""
        return self.times / self.per

    @property
    def is_si(self) -> bool:
        """Whether it is the SI unit."""
        return self.times == self.per and self.offset == 0.0

    def to_si(self, values: Number) -> Number:
        """Return numbers in this unit as numbers in SI."""
        if self.is_si:
            return values
        scaled = values / self.per if self.times == 1.0 else values * self.scale
        return scaled + self.offset if self.offset else scaled

    def from_si(self, values: Number) -> Number:
        """Return numbers in SI as numbers in this unit."""
        if self.is_si:
            return values
        bare = values - self.offset if self.offset else values
        return bare * self.per if self.times == 1.0 else bare * (self.per / self.times)


def to_si(values: Number, unit: str) -> Number:
    """Return numbers (float or array) in SI, given in a unit by its name: ``to_si(90.0, "deg")``."""
    return unit_of(unit).to_si(values)


def from_si(values: Number, unit: str) -> Number:
    """Return numbers in SI (float or array) in a unit by its name."""
    return unit_of(unit).from_si(values)


_TABLE: dict[str, Unit] = {
    name: Unit(si, times, per, offset)
    for si, times, per, offset, names in (
        ("", 1, 1, 0.0, "1 none - counts ticks tick"),
        ("", 1, 100, 0.0, "% percent"),
        ("m", 1, 1, 0.0, "m metre metres meter meters"),
        ("m", 1, 1e3, 0.0, "mm"),
        ("m", 1, 1e2, 0.0, "cm"),
        ("m", 1, 1e6, 0.0, "um"),
        ("m", 1e3, 1, 0.0, "km"),
        ("m", 0.0254, 1, 0.0, "in inch"),
        ("m", 0.3048, 1, 0.0, "ft feet"),
        ("rad", 1, 1, 0.0, "rad radian radians"),
        ("rad", 1, 1e3, 0.0, "mrad"),
        ("rad", math.pi, 180, 0.0, "deg degree degrees °"),
        ("rad", 2 * math.pi, 1, 0.0, "rev turn"),
        ("m/s", 1, 1, 0.0, "m/s mps"),
        ("m/s", 1, 1e3, 0.0, "mm/s"),
        ("m/s", 1, 1e2, 0.0, "cm/s"),
        ("m/s", 1, 3.6, 0.0, "km/h kmh kph"),
        ("m/s", 1852, 3600, 0.0, "kn knot knots kt"),
        ("m/s", 0.44704, 1, 0.0, "mph"),
        ("rad/s", 1, 1, 0.0, "rad/s radps"),
        ("rad/s", 1, 1e3, 0.0, "mrad/s"),
        ("rad/s", math.pi, 180, 0.0, "deg/s dps °/s"),
        ("rad/s", math.pi, 180e3, 0.0, "mdeg/s mdps"),
        ("rad/s", math.pi, 180 * 3600, 0.0, "deg/h"),
        ("rad/s", 2 * math.pi, 60, 0.0, "rpm"),
        ("m/s2", 1, 1, 0.0, "m/s2 mps2"),
        ("m/s2", G0, 1, 0.0, "g g0"),
        ("m/s2", G0, 1e3, 0.0, "mg milli-g millig"),
        ("m/s2", 1, 1e2, 0.0, "cm/s2 gal"),
        ("T", 1, 1, 0.0, "T tesla"),
        ("T", 1, 1e3, 0.0, "mT"),
        ("T", 1, 1e6, 0.0, "uT"),
        ("T", 1, 1e9, 0.0, "nT"),
        ("T", 1, 1e4, 0.0, "G gauss Gs"),
        ("T", 1, 1e7, 0.0, "mG mgauss milligauss"),
        ("degC", 1, 1, 0.0, "degC C °C celsius"),
        ("degC", 1, 1, -273.15, "K kelvin"),
        ("degC", 5, 9, -160 / 9, "degF F °F"),
        ("Pa", 1, 1, 0.0, "Pa"),
        ("Pa", 1e2, 1, 0.0, "hPa mbar"),
        ("Pa", 1e3, 1, 0.0, "kPa"),
        ("Pa", 1e5, 1, 0.0, "bar"),
        ("V", 1, 1, 0.0, "V volt volts"),
        ("V", 1, 1e3, 0.0, "mV"),
        ("A", 1, 1, 0.0, "A amp amps ampere"),
        ("A", 1, 1e3, 0.0, "mA"),
        ("W", 1, 1, 0.0, "W"),
        ("J", 1, 1, 0.0, "J"),
        ("J", 3600, 1, 0.0, "Wh"),
        ("N", 1, 1, 0.0, "N"),
        ("N", 1e3, 1, 0.0, "kN"),
        ("N m", 1, 1, 0.0, "Nm N.m N*m N·m"),
        ("N m", 1, 1e3, 0.0, "mNm"),
        ("s", 1, 1, 0.0, "s"),
        ("s", 1, 1e3, 0.0, "ms"),
        ("s", 1, 1e6, 0.0, "us"),
        ("s", 1, 1e9, 0.0, "ns"),
        ("s", 3600, 1, 0.0, "h hr hour hours"),
        ("Hz", 1, 1, 0.0, "Hz"),
        ("Hz", 1e3, 1, 0.0, "kHz"),
        ("kg", 1, 1, 0.0, "kg"),
    )
    for name in names.split()
}
_SIGNS = str.maketrans({"²": "2", "µ": "u", "μ": "u", "^": ""})
_SPELLINGS = (
    (r"\bsec(ond)?s?\b", "s"),
    (r"\*\*2", "2"),
    (r"\s*(\bper\b|/)\s*", "/"),
    (r"/s/s\b", "/s2"),
    (r"^degrees?/", "deg/"),
    (r"^radians?/", "rad/"),
    (r"^N\s*m$", "Nm"),
)
_LOWER: dict[str, list[str]] = {}
for _name in _TABLE:
    _LOWER.setdefault(_name.lower(), []).append(_name)


@cache
def unit_of(text: str) -> Unit:
    """Return a unit by its name (`deg/s`, `km/h`, `milli-g`, `m/s²`); raise UsageError for others."""
    name = _plain(text)
    if not name:
        return Unit("")
    if name in _TABLE:
        return _TABLE[name]
    alike = _LOWER.get(name.lower(), [])
    if len(alike) == 1:
        return _TABLE[alike[0]]
    if alike:
        raise UsageError(f"the unit {text!r} is ambiguous", hint=f"write {' or '.join(alike)}")
    raise UsageError(f"there is no unit {text!r}", hint=did_you_mean(name, _TABLE))


def known_units() -> tuple[str, ...]:
    """Return the names of all units."""
    return tuple(_TABLE)


def is_unit(text: str) -> bool:
    """Return whether a text is the name of a unit."""
    name = _plain(text)
    return name in _TABLE or len(_LOWER.get(name.lower(), [])) == 1


def _plain(text: str) -> str:
    """Normalise the spelling of exponents, micro signs, blanks and long names."""
    text = text.strip().translate(_SIGNS)
    for pattern, plain in _SPELLINGS:
        text = re.sub(pattern, plain, text)
    return text


DEGREES = unit_of("deg")

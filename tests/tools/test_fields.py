"""What the reference and the tables of the docs say of fields comes from their comments or the docstring."""

from __future__ import annotations

from dataclasses import dataclass, field

from tools.fields import attributes_of


@dataclass(frozen=True)
class Commented:
    """Comments beside fields."""

    scale: float = 1.0  # metres per cell
    # (n, 3) positions,
    # in the body frame
    points: tuple[float, ...] = field(
        default=(),
    )
    plain: int = 0
    ignored: int = 0  # pyright: ignore[reportSomething]


@dataclass(frozen=True)
class Sectioned:
    """A section of a docstring.

    Attributes
    ----------
    low, high : float
        Limits, ``low < high``.
    """

    low: float = 0.0
    high: float = 1.0


def test_a_comment_beside_or_above_a_field_describes_it():
    assert attributes_of(Commented) == {
        "scale": ("float", "Metres per cell."),
        "points": ("tuple[float, ...]", "(n, 3) positions, in the body frame."),
    }


def test_an_attributes_section_describes_several_fields_at_once():
    assert attributes_of(Sectioned) == dict.fromkeys(("low", "high"), ("float", "Limits, `low < high`."))


def test_a_class_without_source_has_no_descriptions():
    assert attributes_of(type("Made", (), {})) == {}

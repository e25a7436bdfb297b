"""Files that are damaged: bits that flipped, an end that is missing."""

from __future__ import annotations

import math

import numpy as np

from ._model import Fault

FLIPS = 1e-4
"""Part of the bytes that have a wrong bit at severity 1."""
CUT = 0.5
"""Part of the file that is missing at severity 1."""


def flip_bits(
    content: bytes, severity: float, draw: np.random.Generator
) -> tuple[bytes, list[tuple[int, float]]]:
    """Flip one bit in some bytes, at least in one; more severity flips those of less, and others."""
    order = draw.permutation(len(content))
    bits = draw.integers(0, 8, len(content))
    count = min(len(content), math.ceil(severity * FLIPS * len(content)))
    damaged = np.frombuffer(content, np.uint8).copy()
    chosen = np.sort(order[:count])
    damaged[chosen] ^= (1 << bits[chosen]).astype(np.uint8)
    return damaged.tobytes(), [(int(at), 1.0 / len(content)) for at in chosen]


def truncate(
    content: bytes, severity: float, draw: np.random.Generator
) -> tuple[bytes, list[tuple[int, float]]]:
    """Leave the end of a file out."""
    gone = math.ceil(severity * CUT * len(content))
    return content[: len(content) - gone], [(len(content) - gone, gone / len(content))] if gone else []


FAULTS = (
    Fault(
        "bit_flip",
        "bits of a written file flip",
        "in one byte of ten thousand",
        damage=flip_bits,
        unit="share of the bytes",
    ),
    Fault(
        "truncation",
        "the end of a written file is missing",
        "half of it",
        damage=truncate,
        unit="share of the file",
        reasons=("EARLY_STOP", "NO_DATA"),
    ),
)

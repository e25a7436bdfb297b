"""Random numbers that depend only on the seed and their purpose, not on the order of the calls."""

from __future__ import annotations

import hashlib

import numpy as np


def generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """Return the generator for a purpose, such as ``("MainCam", "noise", 17)``.

    The same seed and purpose give the same numbers, independently of what else is simulated and in which
    order.
    """
    text = "\x1f".join([str(seed), *(str(part) for part in purpose)])
    digest = hashlib.sha256(text.encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))

"""Two streams of images as one stream of pairs."""

from __future__ import annotations

from typing import Annotated

from transect.engine import Node, Synced
from transect.types import Image, StereoPair


class StereoPairing(Node):
    """The left and the right image that were taken at once, as a pair at the time of the left one."""

    out_name = "stereoPair"

    def process(self, left: Image, right: Annotated[Image, Synced(0.005)]) -> StereoPair:
        return StereoPair(left, right, left.t_ns)

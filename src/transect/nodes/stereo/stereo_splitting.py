"""The two images of a pair."""

from __future__ import annotations

from transect.engine import Node, outputs
from transect.types import Image, StereoPair


@outputs
class Images:
    """Of one pair."""

    left: Image
    right: Image


class StereoSplitting(Node):
    """The images of a pair on a port each, for nodes that take them so."""

    def process(self, stereoPair: StereoPair) -> Images:
        return Images(stereoPair.left, stereoPair.right)

"""X09: is the left camera of a stereo pair the left one."""

from __future__ import annotations

from collections.abc import Sequence

from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.stereo_pairs import find_pair, glance
from transect.integrity.windows import Window
from transect.types import Image

LEAST = 20
"""Matches that lie before the cameras in one of the two ways."""
MEND = "the left and the right camera are exchanged; exchange their streams or their tags"
TURNED = "one of the cameras has turned towards the other; check their mounts and calibrate again"


class Sides(Check, id="X09", group="cross"):
    """Part of the matches of a stereo pair that lie before the cameras only if these are exchanged.

    ORB features are matched between both images. Matches on their epipolar lines whose rays meet before the
    cameras are counted as they are, and with the images exchanged: ``n_exchanged / (n + n_exchanged)``. In
    rectified images exchanged cameras have negative disparities. Cameras that were right at first are not
    exchanged later: then one of them has turned.

    Motive: Mistakes of descriptions: topics or folders of the two cameras are confused.
    """

    exchanged = Limit(0.5, 0.8, "EXTRINSIC", "", "part of the matches that need exchanged cameras")

    def reset(self) -> None:
        """No pair was seen yet."""
        self._was_right = False

    def look(self, camera: Window[Image], others: Sequence[Window[Image]] = ()) -> Finding | Unknown:
        """Try both ways on the last pair of a window."""
        pair = find_pair(camera, others)
        if pair is None or not len(pair[0]):
            return Unknown("NO_PEER", "it is not one of a stereo pair", len(camera))
        seen = glance(*pair, self.about)
        if isinstance(seen, Unknown):
            return seen
        if max(seen.ahead, seen.exchanged) < LEAST:
            return Unknown("TOO_FEW", "too few features are in both images", len(camera))
        share = seen.exchanged / (seen.ahead + seen.exchanged)
        peers = tuple(each.stream.name for each in pair if each.stream is not camera.stream)
        evidence = {"ahead": float(seen.ahead), "ahead_exchanged": float(seen.exchanged)}
        self._was_right |= share <= self.exchanged.warn
        note = "" if share <= self.exchanged.warn else TURNED if self._was_right else MEND
        return Finding({"exchanged": share}, 1, evidence, note=note, peers=peers)

"""X02: does a camera lose contrast that an infrared camera keeps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transect.integrity.image_statistics import CameraCheck, Clear, Picture, middle
from transect.integrity.model import Finding, Limit, Unknown
from transect.integrity.motion import Moving, is_moving
from transect.integrity.windows import Window
from transect.types import Image

BOTH = 0.03
"""Loss of the infrared contrast from which on it fell, too."""
CLEAR = 0.1
"""Loss of contrast up to which a window tells what is usual."""


class VisualInfrared(CameraCheck, id="X02", group="cross"):
    """By how much more of its contrast a camera lost than the infrared camera beside it.

    ``difference = c_visual - c_infrared``, c = 1 - std(I) / std(I_ref) of the reduced images, I_ref of the
    last clear windows. Where both fell it is an obscurant; where only the visual one fell it is the light,
    and nothing is said here. Only for a robot that is known to stand: another scene has another contrast.

    Motive: Document 004, 5.3: the "effect is lower on the infra-red data".
    """

    difference = Limit(0.2, 0.4, "OBSCURANT", "", "contrast lost in the visual image and not in infrared")

    learns_baseline = True

    def reset(self) -> None:
        """Nothing is usual yet."""
        self._clear = Clear()

    def look(
        self, camera: Window[Image], others: Sequence[Window[Image]], moving: Sequence[Window[Moving]] = ()
    ) -> Finding | Unknown:
        """Compare the two losses."""
        pictures = self.see(camera)
        if isinstance(pictures, Unknown):
            return pictures
        if _is_infrared(camera, pictures):
            return Unknown("NO_PEER", "it is the infrared camera", len(pictures))
        seen = [(each.stream.name, self.see(each), each) for each in others]
        peer = next(
            ((name, p) for name, p, w in seen if not isinstance(p, Unknown) and _is_infrared(w, p)), None
        )
        if peer is None:
            return Unknown("NO_PEER", "there is no infrared image", len(pictures))
        if is_moving(moving) is not False:
            self._clear.forget()
            return Unknown("MOVING", "no stream tells that the robot stands", len(pictures))
        now = np.sqrt([middle(pictures, "variance"), middle(peer[1], "variance")])
        if (usual := self._clear.usual) is None:
            self._clear.learn(now)
            return Unknown("LEARNING", n=len(pictures))
        visual, infrared = (1.0 - now / np.maximum(usual, 1e-3)).tolist()
        found = {"visual": visual, "infrared": infrared}
        if max(visual, infrared) <= CLEAR:
            self._clear.learn(now)
        both = infrared > BOTH
        note = "" if both or visual < self.difference.warn else "only the visual image changed: the light did"
        difference = max(visual - infrared, 0.0) if both else 0.0
        return Finding({"difference": difference}, len(pictures), found, note=note, peers=(peer[0],))


def _is_infrared(window: Window[Image], pictures: Sequence[Picture]) -> bool:
    return window.stream.tag == "infrared" or pictures[0].thermal

"""Self-calibration of a rectified pair: what its own drive tells about its offset and its lens."""

from .evidence import Evidence, Pull, StereoTracks, frame_evidence
from .lens import LENS_KNOWN, LensEstimate, describe_lens, estimate_lens
from .offset import OffsetEstimate, combine, disparity_offset, shrink, vertical_offset

__all__ = [
    "LENS_KNOWN",
    "Evidence",
    "LensEstimate",
    "OffsetEstimate",
    "Pull",
    "StereoTracks",
    "combine",
    "describe_lens",
    "disparity_offset",
    "estimate_lens",
    "frame_evidence",
    "shrink",
    "vertical_offset",
]

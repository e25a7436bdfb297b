"""Self-calibration of a rectified pair: what its own drive tells about its offset and its lens."""

from .evidence import LENS, Evidence, Pull, StereoTracks, faults_of, frame_evidence
from .lens import LENS_KNOWN, LensEstimate, describe_lens, estimate_lens, straighten_pair
from .offset import OffsetEstimate, combine, disparity_offset, estimate_offset, shrink, vertical_offset

__all__ = [
    "LENS",
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
    "estimate_offset",
    "faults_of",
    "frame_evidence",
    "shrink",
    "straighten_pair",
    "vertical_offset",
]

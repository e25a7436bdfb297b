"""What the codes of verdicts mean, in words, and what to do about them."""

from __future__ import annotations

from typing import NamedTuple


class Reason(NamedTuple):
    """What is wrong, as the end of a sentence about a sensor, and what to try.

    `mend` may name {paths} of the recording and the {stream}, as they are typed in a shell, and {after}: a
    time, when the problem was over.
    """

    words: str
    mend: str


REASONS: dict[str, Reason] = {
    "NO_DATA": Reason("gave no samples", "look for a crashed driver, a loose cable, a full disk"),
    "LATE_START": Reason("started late", "leave the beginning out (--from), or do without it there"),
    "EARLY_STOP": Reason("stopped early", "leave the end out (--to), or do without it there"),
    "GAP": Reason("lost samples", "look for full queues, a slow disk, a loose cable"),
    "RATE": Reason("came at another rate", "check the driver; state the nominal rate in --config"),
    "JITTER": Reason("was stamped unevenly", "stamp at the sensor, not when the message is read"),
    "BACKWARD": Reason("has stamps that go back", "sort it, or find out which clock was set back"),
    "DUPLICATE": Reason("has stamps that repeat", "it is logged twice, or faster than it measures"),
    "CLOCK_JUMP": Reason(
        "has a clock that jumped",
        "use what comes after it: transect check {paths} --from {after}; run and export take it, too",
    ),
    "CLOCK_DRIFT": Reason("has a clock that drifts", "synchronise it (PTP, NTP)"),
    "LATENCY": Reason(
        "is stamped later or earlier than a peer",
        "find out which is late; transect run takes --offset {stream}=auto",
    ),
    "META_TIME": Reason("has times that contradict others", "compare the loggers' time zones and epochs"),
    "STUCK": Reason("repeated one sample", "restart the sensor; leave that stretch out"),
    "SATURATED": Reason("was at the end of its range", "set a larger range, or damp the mount"),
    "RANGE_LIMIT": Reason("was at the end of its range", "set a larger range"),
    "NAN": Reason("has values that are none", "find out what the driver writes where it measures nothing"),
    "NOISE": Reason(
        "was noisier than usual", "check its mount, cable and power; give it less weight when it is fused"
    ),
    "SPIKES": Reason("has single values that are far off", "leave the masked samples out"),
    "BIAS": Reason("has a bias that moved", "calibrate at rest; check its temperature"),
    "UNIT": Reason("has numbers that cannot be in their unit", "correct the unit in the robot's description"),
    "DUST": Reason("saw a cloud", "drop the masked beams; a radar sees through it"),
    "SMOKE": Reason("saw a cloud", "drop the masked beams; a radar sees through it"),
    "OBSCURANT": Reason("saw a cloud", "drop the masked beams; a radar sees through it"),
    "NO_BASELINE": Reason(
        "may see dust or smoke, or bushes in the wind: nothing shows what it sees in clear air",
        "transect check {paths} --reference CLEAR, a recording at the same place in clear air",
    ),
    "UNREADABLE": Reason(
        "has samples that cannot be read",
        "copy its files again; transect export {paths} -o {copy} leaves them out and names them",
    ),
    "RAIN": Reason("saw rain", "drop the masked beams; it stays usable"),
    "BLOCKED": Reason("is blocked in a sector", "clean or clear it; drop the masked beams"),
    "MULTIPATH": Reason("saw echoes of echoes", "leave out what lies behind reflectors"),
    "BLUR": Reason("is blurred", "shorten the exposure; check the focus"),
    "DARK": Reason("is too dark", "lengthen the exposure; use light, or infrared"),
    "OVEREXPOSED": Reason("is overexposed", "shorten the exposure"),
    "HAZE": Reason("sees through haze", "use infrared or radar there"),
    "FROZEN_IMAGE": Reason("repeated one image", "restart the camera; leave that stretch out"),
    "POSITION_JUMP": Reason(
        "has positions that jump", "leave those out; look for multipath and for changes of the fix"
    ),
    "DISAGREE": Reason("disagrees with a peer", "find out which of them is right; a third sensor decides"),
    "OBJECT_CONFIRMED": Reason("saw something that a peer sees, too", "nothing: it is there"),
    "EXTRINSIC": Reason("has moved on the robot", "calibrate again; check its mount"),
    "FIX_LOST": Reason("lost its fix", "go by its declared deviations; bridge it by odometry"),
    "SLIP": Reason("slipped", "use visual odometry there"),
    "NIS": Reason("does not fit its covariance", "correct the covariances"),
    "NEES": Reason("does not fit its covariance", "correct the covariances"),
    "GATE_INERT": Reason("has a gate that rejects nothing", "tighten the gate"),
    "COV_INVALID": Reason("has covariances that are none", "repair them before it is fused"),
    "DIVERGED": Reason("diverged", "start it again with a better guess"),
    "INLIERS": Reason("matched too few features", "do not trust its motion there"),
    "MATCH": Reason("matched features badly", "do not trust its motion there"),
    "ROUNDNESS": Reason("saw points from too narrow an angle", "widen the baseline"),
}
"""By code; a check of one's own may have codes of its own."""


def reason_of(code: str) -> Reason:
    """Return what a code means; one that is not known stands for itself."""
    return REASONS.get(code, Reason(f"has {code}", "read what the check says"))

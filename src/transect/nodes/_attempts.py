"""How often a node failed to find what it is there for; most of the time is a failed result."""

from __future__ import annotations

from transect.engine.context import Context

SIGNIFICANCE = 0.01
"""Probability that a ratio as large is seen by chance where the bound on it holds."""


def lower_bound(count: int, total: int) -> float:
    """Return the one-sided 99 % Clopper-Pearson bound from below on a ratio, by `count` of `total` trials."""
    from scipy.stats import beta

    return float(beta.ppf(SIGNIFICANCE, count, total - count + 1)) if count else 0.0


class Attempts:
    """Counts attempts, and failures among them.

    Parameters
    ----------
    max_failed_ratio : float
        Failures of all attempts, above which a result is bad.
    """

    def __init__(self, max_failed_ratio: float) -> None:
        self.max_failed_ratio = max_failed_ratio
        self.count = self.failed = 0

    def add(self, succeeded: bool) -> None:
        """Count one attempt."""
        self.count += 1
        self.failed += not succeeded

    def add_many(self, count: int, failed: int) -> None:
        """Count several attempts."""
        self.count += count
        self.failed += failed

    @property
    def are_too_many(self) -> bool:
        """Whether too many attempts failed."""
        return self.failed > self.max_failed_ratio * self.count

    def report(self, ctx: Context, failure: str, consequence: str) -> None:
        """Log the failures; if they are too many of the attempts, conclude that the result is bad.

        Parameters
        ----------
        failure : str
            What failed: "scans did not match those before them".
        consequence : str
            What must not be trusted: "the map and the path".
        """
        if not self.failed:
            return
        said = f"{self.failed} of {self.count} {failure}"
        if self.are_too_many:
            ctx.conclude(f"{said}: do not trust {consequence}", bad=True)
        else:
            ctx.log(said)

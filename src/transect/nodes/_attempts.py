"""Counts of attempts of a node and of its failures, from which a result is judged as good or bad."""

from __future__ import annotations

from transect.engine.context import Context


def lower_bound(count: int, total: int, significance: float = 0.01) -> float:
    """Return the one-sided Clopper-Pearson lower bound of the ratio of `count` to `total` trials."""
    from scipy.stats import beta

    return float(beta.ppf(significance, count, total - count + 1)) if count else 0.0


class Attempts:
    """Counts attempts and failures.

    Parameters
    ----------
    max_failed_ratio : float
        Ratio of failures to attempts above which a result is bad.
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
        """Log the failures; if their ratio is too large, conclude that the result is bad.

        Parameters
        ----------
        failure : str
            What failed, e.g. "scans did not match those before them".
        consequence : str
            What must not be trusted, e.g. "the map and the path".
        """
        if not self.failed:
            return
        message = f"{self.failed} of {self.count} {failure}"
        if self.are_too_many:
            ctx.conclude(f"{message}: do not trust {consequence}", bad=True)
        else:
            ctx.log(message)

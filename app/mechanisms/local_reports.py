"""What the service concludes of local reports. Public constants of the randomizers: no entropy here."""

from bisect import bisect_left
from functools import lru_cache

from dither.device.choices import ChoiceRandomizer
from dither.device.numbers import SIGNIFICANT, significant
from dither.device.randomizers import Randomizer, ReportNoise, randomizer

from app.core.study import LocalMechanism


@lru_cache(maxsize=65_536)
def report_noise(mechanism: LocalMechanism, epsilon: int) -> ReportNoise:
    """How noisy a report is that was randomized with an epsilon [micro-epsilon; Gaussian: 1e-6 of mu^2].

    Raises:
        ValueError: epsilon is not positive.
    """
    return randomizer(mechanism).noise(epsilon)


def drawn_at_most(device: Randomizer | ChoiceRandomizer, report: int, epsilon: int) -> int:
    """The largest epsilon, up to a given one, with which an honest device can have drawn a report.

    A device draws with what its owner has left in the study, which may be less than is offered. The range
    of a bounded mechanism, Gaussian noise among them, belongs to the whole epsilon; the others' grows as
    epsilon falls. Of those only epsilons of three digits are tried: a forger gains a hundredth at most.

    Args:
        device: The randomizer.
        report: The report [grid steps].
        epsilon: What is offered, at least 1 [micro-epsilon; Gaussian: 1e-6 of mu^2].

    Returns:
        At most `epsilon`; 0 where no device draws such a report [micro-epsilon].

    Privacy: depends on the report only, which is private already.
    """
    if report in device.range(epsilon):
        return epsilon
    if device.is_bounded:
        return 0

    def excluded(rank: int) -> bool:
        smaller = significant(rank)
        return smaller >= epsilon or report not in device.range(smaller)

    return min(significant(1 + bisect_left(range(1, SIGNIFICANT), 1, key=excluded)), epsilon) - 1

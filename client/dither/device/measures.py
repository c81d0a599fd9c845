r"""What a device reports in a study of several measures: some of them, each with a part of the epsilon.

Of d measures it reports :math:`k = \max(1, \min(d, \lfloor \epsilon / 2.5 \rfloor))`, a set of them chosen
uniformly, each randomized with :math:`\epsilon / k`, rounded down to three significant digits.

*Privacy.* The set depends on epsilon and d alone, not on the values. Given the set, the reports are drawn
independently, each of them eps / k differentially private. So for any two lists of values and any reports of
any set the probabilities, which have the same factor for the set, differ by at most
:math:`e^{k \lfloor \epsilon / k \rfloor} \le e^\epsilon`: reporting costs at most epsilon.
tests/unit/mechanisms/test_measure_reports.py looks at all pairs of lists, sets and reports.

*Estimation.* Those who report a measure are a uniform sample of all with the same epsilon, whatever their
values are, so their mean is unbiased for that of all.

References:
    Wang et al., "Collecting and Analyzing Multidimensional Data with Local Differential Privacy", ICDE 2019,
    arXiv:1907.00782, section IV (sampling, and k). The integers are ours.
"""

import secrets
from collections.abc import Sequence

from dither.device.choices import ChoiceRandomizer
from dither.device.exact import RandomBits, below
from dither.device.numbers import MICRO, round_down_to_significant
from dither.device.randomizers import Randomizer

EACH_WORTH = 5 * MICRO // 2
"""One measure more is reported for each time that epsilon holds this [micro-epsilon]."""


def reported(epsilon: int, measures: int) -> int:
    """k, how many measures of a study a device reports.

    Args:
        epsilon: The whole offer [micro-epsilon].
        measures: d, those of the study.

    >>> [reported(epsilon * MICRO // 10, 3) for epsilon in (1, 49, 50, 75, 100)]
    [1, 1, 2, 3, 3]
    """
    return max(1, min(measures, epsilon // EACH_WORTH))


def epsilon_of_each(epsilon: int, measures: int) -> int:
    """What each report is randomized with, for the same arguments [micro-epsilon].

    >>> epsilon_of_each(10 * MICRO, 3), epsilon_of_each(4_990_000, 3)
    (3330000, 4990000)
    """
    return round_down_to_significant(epsilon // reported(epsilon, measures))


def reports(
    devices: Sequence[Randomizer | ChoiceRandomizer],
    points: Sequence[int],
    epsilon: int,
    bits: RandomBits = secrets.randbits,
) -> dict[int, int]:
    """Reports of some measures, together epsilon-differentially private for their owner.

    Args:
        devices: The randomizer of each measure; what it can report belongs to a whole epsilon.
        points: The grid point of each measure on its own grid.
        epsilon: What the reports cost together, above 0 [micro-epsilon].
        bits: Source of random bits. The default is the operating system's.

    Returns:
        The report of each measure that was chosen, by its place in the study, ascending.
    """
    left = list(range(len(points)))
    chosen = [left.pop(below(len(left), bits)) for _ in range(reported(epsilon, len(points)))]
    each = epsilon_of_each(epsilon, len(points))
    return {place: devices[place].report(points[place], each, bits) for place in sorted(chosen)}

r"""How far a search can be off: what can be said without knowing anything about the people.

Each round compares a count of yes with the least count k that is believed. Two things can go wrong.

- No one says yes truly, and it is believed all the same: the count is Binomial(n, 1 - q), so this has
  probability P(Binomial(n, 1 - q) >= k), computed exactly.
- Some do, and it is not believed. With a fraction phi of true yes the expected count is
  :math:`n (1 - q + \phi (2 q - 1))`, and by Hoeffding's inequality it stays below k with probability at most
  beta where :math:`n (1 - q + \phi (2 q - 1)) \ge k - 1 + \sqrt{n \ln(1 / \beta) / 2}`. The smallest such phi
  is the fraction that the round can miss.

The interval of a minimum may begin below what is left, at a threshold that was not believed either: less of
the people are below that than below what is left, and the statement holds for it.

For a quantile whose interval is halved both mistakes are of the second kind: a fraction further than phi from
the quantile is taken for one on the other side. One that is read off all rounds has its own statement
(`app.sessions.quantile`).

References:
    Hoeffding, JASA 1963, doi:10.1080/01621459.1963.10500830, Theorems 1 and 4 (people of a round are drawn
    without replacement).
    arXiv:1905.11067, Theorem 4: the error of the minimum is that of a quantile between 0 and what can be
    missed, which the shape of the data turns into units.
"""

import math
from dataclasses import dataclass

from app.sessions.quantile import FAILURE
from app.sessions.response import at_least_probability, truth_probability
from app.sessions.search import Rules, Search, decisive, least_positives


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """The error statement of a search.

    Attributes:
        resolution: Width of the interval [grid steps].
        missed_fraction: At most this fraction of the people lies beyond the interval at the side that is
            looked for; for a quantile, how far its rank can be off. 1 where no round decided anything.
        failure_probability: The statement is wrong with at most this probability.
        undecided_rounds: Rounds that had too few answers to decide anything.
    """

    resolution: int
    missed_fraction: float
    failure_probability: float
    undecided_rounds: int


def accuracy(search: Search) -> Accuracy:
    """The error statement of a search, of as many rounds as it has closed.

    Privacy: post-processing of local answers.
    """
    rules, reading = search.rules, search.rules.reading
    low, high = search.interval
    if reading is not None:
        return Accuracy(
            resolution=high - low,
            missed_fraction=reading.rank_error(search.steps, search.estimate),
            failure_probability=FAILURE,
            undecided_rounds=sum(not step.answers for step in search.steps),
        )
    allowed = min(math.exp(-rules.failure_exponent), 1.0) / rules.rounds
    decided = [step for step in search.steps if decisive(rules, step.answers)]
    failures = [_failure(rules, step.answers, allowed) for step in decided]
    missed = [missed_fraction(rules, step.answers, allowed) for step in decided]
    return Accuracy(
        resolution=high - low,
        missed_fraction=max(missed, default=1.0),
        failure_probability=min(1.0, sum(failures)),
        undecided_rounds=len(search.steps) - len(decided),
    )


def missed_fraction(rules: Rules, answers: int, failure: float) -> float:
    """The smallest fraction of true yes that a round detects, except with probability `failure`.

    For a quantile, how far beyond the quantile it must be.
    """
    lie = 1 - truth_probability(rules.epsilon_per_answer)
    contrast = 1 - 2 * lie
    margin = math.sqrt(answers * math.log(1 / failure) / 2)
    needed = (least_positives(rules, answers) - 1 + margin - answers * lie) / (answers * contrast)
    return min(1.0, max(0.0, needed - (rules.quantile or 0.0)))


def _failure(rules: Rules, answers: int, missed: float) -> float:
    """Probability that a round goes wrong: the truth leaves only one of the two mistakes open."""
    if rules.quantile is not None:
        return missed
    lie = 1 - truth_probability(rules.epsilon_per_answer)
    believed = at_least_probability(least_positives(rules, answers), answers, lie)
    return max(missed, believed)

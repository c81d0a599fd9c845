r"""All that is published of a mean where it is secret who is there, read as one answer at no price.

A question of an add_remove_one study that leaves the estimator and its parameters to the service is answered
from the noisy sums of all means of all people, those of descriptions too, of one measure where there are
several, as `app.estimators.combined_ratio` weighs them. What is kept of an answer
(`app.services.statistics.kept_sums`) are its two noisy sums, not clipped, and in the `noise` of its release
what a person can weigh in them: no cohorts, no numbers of people, no exact sum.

Privacy: post-processing of what was charged when it was drawn. Kept sums, weights and what follows from them
are outputs of the mechanism and public numbers. So

- the digest of the sums, which the hash chain has through the release's `noise`, is one of an output of the
  mechanism: who tries sums until the digest fits learns the noisy sums, which were paid for as if published;
- whether there is a combination, which answers it has, what they count in it and when it is made depend on
  questions and on releases alone, not on cohorts, of which none is read. It charges no one, so the price of
  no other answer depends on it either;
- when a person withdraws, the exact sums lose the value and the kept ones do not. Their difference is the
  person's part, a x and a (1 - x), and the noise of that answer, which is stored nowhere: it tells what the
  person was charged for and no more, also together with all that was published. No noise is ever drawn given
  a kept sum.

Which answers: those about the same people as the newest mean, or the newest description where there is no
mean, who offered at least the same. Where all people weigh the same in that, its interval holds whatever
people give, and an answer under which they weigh differently could make it wider: then only answers of the
first kind are combined. Any other answer makes the interval about the same people narrower, by the noise
alone: see the estimator. The choice is made from what answers say of themselves.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.core.noise import APART, OF_MEAN, from_document
from app.core.study import StudyDefinition
from app.estimators import registry
from app.estimators.combined_ratio import RatioSums, combined_ratio, pivot_of
from app.estimators.interface import Question
from app.estimators.transformed import Transformed
from app.services.statistics.combining import Combination
from app.services.statistics.crowds import Crowd
from app.services.statistics.levels import Level
from app.store.combined import Sources


def chosen(study: StudyDefinition, sources: Sources) -> tuple[Sources, Level]:
    """The answers that are combined, see the module, and whom they are about. `newest` stays."""
    weights = [_weighs(noise) for noise in sources.noises]
    of_whom = [_least(study, noise) for noise in sources.noises]
    means = [place for place, noise in enumerate(sources.noises) if OF_MEAN not in noise]
    newest = means[-1] if means else -1
    alike, least = weights[newest][0] == weights[newest][1], of_whom[newest]
    kept = [
        own == least and (most == low or not alike) for own, (most, low) in zip(of_whom, weights, strict=True)
    ]
    columns = (sources.releases, sources.pieces, sources.noises, sources.charged)
    rows = [row for row, one in zip(zip(*columns, strict=True), kept, strict=True) if one]
    releases, pieces, noises, charged = zip(*rows, strict=True)
    sources = replace(sources, releases=releases, pieces=pieces, noises=noises, charged=charged)
    return sources, Level.of(study, least, least if alike else None)


def combine(study: StudyDefinition, question: Question, sources: Sources) -> Combination:
    """Read the combination of all these sums.

    Args:
        study: An add_remove_one study.
        question: What is asked.
        sources: The sums, see `chosen`.
    """
    estimator = registry.ESTIMATORS[Transformed.name]
    asked = registry.for_estimator(estimator, question)
    sums = []
    for piece, noise in zip(sources.pieces, sources.noises, strict=True):
        most, least = _weighs(noise)
        pivot = pivot_of(from_document(noise.get(OF_MEAN, noise)))
        sums.append(RatioSums(most=most, least=least, pivot=pivot, first=piece.first, second=piece.second))
    plan, conclusion = combined_ratio(asked, sums)
    return Combination(
        estimator=estimator,
        question=asked,
        plan=plan,
        conclusion=conclusion,
        used=(),
        crowd=Crowd.joined([]),
        # No person is charged more than they offer, whatever the answers come to.
        most_in_all=min(sum(sources.charged), study.amount(study.epsilon_max)),
    )


def _weighs(noise: Mapping[str, Any]) -> tuple[float, float]:
    (kept,) = noise[APART]
    most, least = map(float, kept["weighs"])
    return most, least


def _least(study: StudyDefinition, noise: Mapping[str, Any]) -> int:
    (kept,) = noise[APART]
    return int(kept.get("least", Level.of(study).least))

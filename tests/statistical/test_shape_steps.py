"""Steps by bin and by coordinate, through the code that plans and takes them: their noise, and coverage.

Verdicts: the mean of (noise / scale)^2 over `CHAINS` chains of four counts or sums is 2 for Laplace noise of
it, and 1 for Gaussian noise, with a fourth moment of 24 and 3. Coverage is a binomial test at five standard
deviations.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from app.core.attributes import Attributes
from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE, square
from app.core.study import Currency, Relation, StudyDefinition, Trust
from app.services.shapes import coordinates, steps
from app.services.statistics.questions import Ask
from app.services.statistics.whole_plans import planned_share
from tests.statistical import Z
from tests.support.shape_chains import ShapeChain

pytestmark = pytest.mark.statistical

CHAINS = 150
STUDIES = {
    currency: StudyDefinition(
        slug="minutes",
        title="Minutes",
        lower=Decimal(0),
        upper=Decimal(1),
        relation=Relation.REPLACE_ONE,
        trust=frozenset(Trust),
        epsilon_min=MICRO // 100,
        epsilon_max=4 * MICRO,
        default_share=MICRO // 10,
        delta=delta,
    )
    for currency, delta in ((Currency.LAPLACE, 0), (Currency.GAUSSIAN, 1_000_000))
}
TENTHS = tuple(MICRO * tenth // 10 for tenth in range(1, 11))
Counts = dict[int, list[int]]


def cohort(number: int, epsilon: int, people: int, trust: Trust = Trust.CENTRAL, segment: int = 0) -> Cohort:
    return Cohort(
        id=number,
        trust=trust,
        epsilon=epsilon,
        carried=0,
        spent=0,
        count=people,
        total=0,
        total_squares=0,
        segment=segment,
    )


class Asked(ShapeChain):
    """A histogram, or the mean of several coordinates."""

    def __init__(
        self, currency: Currency, tilt: float = 0.0, dimension: int = 1, by: Sequence[str] = ()
    ) -> None:
        attributes = Attributes.of({"region": list(by)} if by else {})
        study = replace(STUDIES[currency], dimension=dimension, attributes=attributes)
        ask = Ask(statistic="histogram", tilt=round(tilt * MICRO), parameters={"bins": "4"})
        if dimension > 1:
            ask = replace(ask, statistic="mean", parameters={})
        super().__init__(study, replace(ask, by="region" if by else ""))


COHORTS = [cohort(number, epsilon, 40) for number, epsilon in enumerate((MICRO // 10, MICRO // 3, MICRO), 1)]
COUNTS: Counts = {1: [10, 10, 10, 10], 2: [40, 0, 0, 0], 3: [0, 1, 2, 37]}


SUMS: Counts = {number: [40, *(GRID_SIZE * number * at for at in range(1, 5))] for number in COUNTS}
"""People, the sums of two coordinates, and of their squares."""

KINDS = pytest.mark.parametrize("dimension", [1, 2], ids=["histogram", "coordinates"])


def noises(currency: Currency, shares: tuple[int, ...], dimension: int) -> list[float]:
    """What one chain leaves in its counts or sums, in units of the noise at share 1."""
    asked, counts = Asked(currency, dimension=dimension), COUNTS if dimension == 1 else SUMS
    for share in shares:
        step = asked.step(share, COHORTS, counts)
    (piece,) = asked.pieces.values()
    times = step.noise.counted(piece.share)
    exact = [
        sum(one.weight * counts[one.cohort_id][-4:][place] for one in piece.members) for place in range(4)
    ]
    # Under Gaussian noise that on squares has a third of the deviation.
    times_finer = (1, 1, 3, 3) if dimension > 1 and currency is Currency.GAUSSIAN else (1,) * 4
    return [
        finer * (noisy / times - value) / piece.unit
        for noisy, value, finer in zip(piece.sums, exact, times_finer, strict=True)
    ]


def fewest(tries: int, deviations: int) -> float:
    """How many intervals at 95 % hold where that is this many standard deviations below the mean."""
    return tries * 0.95 - deviations * math.sqrt(tries * 0.95 * 0.05)


def verdict(samples: list[float], currency: Currency) -> bool:
    """Whether noise has the variance of one answer at share 1: all of it, and both halves of the sums.

    Those of squares are the second half: beside the others too small a noise of theirs would pass.
    """
    squares, gaussian = np.square(samples).reshape(-1, 4), currency is Currency.GAUSSIAN
    mean, variance = (1, 2) if gaussian else (2, 20)
    return all(
        abs(float(part.mean()) - mean) <= Z * math.sqrt(variance / part.size)
        for part in (squares, squares[:, :2], squares[:, 2:])
    )


@pytest.mark.parametrize("currency", Currency)
@KINDS
def test_ten_tenths_charge_what_one_does_and_leave_its_noise(currency: Currency, dimension: int) -> None:
    tenths, whole = (Asked(currency, dimension=dimension) for _ in range(2))
    counts = COUNTS if dimension == 1 else SUMS
    for share in TENTHS:
        tenths.step(share, COHORTS, counts)
    # With the same weights: those of the first step.
    with pytest.MonkeyPatch.context() as patch:
        for module in (coordinates, steps):
            patch.setattr(module, "planned_share", lambda _, *nearer: planned_share(TENTHS[0], *nearer))
        whole.step(MICRO, COHORTS, counts)
    assert tenths.spent == whole.spent
    assert verdict([left for _ in range(CHAINS) for left in noises(currency, TENTHS, dimension)], currency)


@pytest.mark.parametrize("currency", Currency)
@KINDS
def test_control_ten_independent_answers_at_a_tenth_are_caught(currency: Currency, dimension: int) -> None:
    means = []
    for _ in range(CHAINS // 5):
        answers = [noises(currency, TENTHS[:1], dimension) for _ in range(10)]
        means += [sum(column) / 10 for column in zip(*answers, strict=True)]
    # Under Gaussian noise independent draws are what steps are made of: there ten tenths are as good.
    assert verdict(means, currency) is (currency is Currency.GAUSSIAN)


@pytest.mark.parametrize("currency", Currency)
@KINDS
def test_control_a_chain_that_ends_half_way_is_caught(currency: Currency, dimension: int) -> None:
    half_way = [left for _ in range(CHAINS) for left in noises(currency, TENTHS[:5], dimension)]
    assert not verdict(half_way, currency)


def test_control_squares_with_half_of_the_deviation_are_caught() -> None:
    """As if they had a half, where they have a third: the pooled `CHAINS` of above miss it in most runs."""
    samples = [left for _ in range(2 * CHAINS) for left in noises(Currency.GAUSSIAN, TENTHS, 2)]
    taken_for = np.reshape(samples, (-1, 4)) * (1, 1, 2 / 3, 2 / 3)
    assert verdict(samples, Currency.GAUSSIAN)
    assert not verdict(taken_for.ravel().tolist(), Currency.GAUSSIAN)


TIERS = (100_000, 250_000, 500_000, MICRO, 2 * MICRO, 4 * MICRO)


def squares(share: int, *, fresh: bool, raised: bool = False) -> tuple[float, float]:
    """The mean square error of bins, and the predicted one, of people of six epsilons, alike in values.

    Args:
        share: Of the answer.
        fresh: With noise of its own, and weights for this share alone.
        raised: A step from a tenth to this share.
    """
    rng, true = np.random.default_rng(), (0.4, 0.3, 0.2, 0.1)
    found, predicted = [], 0.0
    for _ in range(2 * CHAINS):
        people = [cohort(number, epsilon, 60) for number, epsilon in enumerate(TIERS, 1)]
        counts = {one.id: rng.multinomial(one.count, true).tolist() for one in people}
        asked = Asked(Currency.LAPLACE, tilt=0.1)
        if fresh:
            # What is asked at a share is what is asked at all of that share's offers.
            people = [replace(one, epsilon=one.epsilon * share // MICRO) for one in people]
        elif raised:
            asked.step(TENTHS[0], people, counts)
        step = asked.step(MICRO if fresh else share, people, counts)
        predicted = step.predicted_error**2
        exact = np.sum([counts[one.id] for one in people], axis=0) / (60 * len(TIERS))
        shares = [one["share"] for one in asked.last["bins"]]
        found.append(float(np.mean((np.array(shares) - exact) ** 2)))
    return float(np.mean(found)), predicted


def test_a_first_answer_of_tiers_errs_little_more_than_a_fresh_one() -> None:
    """At a tenth, and raised to share 1, where equal weights are better; planned and seen."""
    (first, planned), (fresh, planned_fresh) = (squares(TENTHS[0], fresh=one) for one in (False, True))
    assert planned <= 1.2**2 * planned_fresh
    assert first <= 1.6**2 * fresh
    last, planned = squares(MICRO, fresh=False, raised=True)
    whole, planned_whole = squares(MICRO, fresh=True)
    assert planned_whole <= planned <= 1.4**2 * planned_whole
    assert last <= 1.4**2 * whole


def test_control_weights_for_share_1_err_more_at_a_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "planned_share", lambda *_: MICRO)
    (first, planned), (fresh, planned_fresh) = (squares(TENTHS[0], fresh=one) for one in (False, True))
    assert planned > 1.2**2 * planned_fresh
    assert first > 1.6**2 * fresh


@pytest.mark.parametrize("currency", Currency)
def test_intervals_cover_after_newcomers_and_leavers(currency: Currency) -> None:
    """Values of people of all epsilons are drawn alike; public people count exactly."""
    rng, runs = np.random.default_rng(), 120
    true, tries = np.array([0.02, 0.4, 0.25, 0.33]), 0
    covered = dict.fromkeys(("interval", "population_interval", "narrow"), 0)
    for _ in range(runs):
        asked = Asked(currency)
        first = [cohort(1, MICRO // 5, 200), cohort(2, MICRO, 300), cohort(3, 0, 20, Trust.PUBLIC)]
        counts = {one.id: rng.multinomial(one.count, true).tolist() for one in first}
        asked.step(MICRO // 4, first, counts)
        then = [*first, cohort(4, MICRO // 2, 150), cohort(5, 2 * MICRO, 100)]
        counts |= {one.id: rng.multinomial(one.count, true).tolist() for one in then[3:]}
        asked.step(MICRO // 4, then, counts)
        # One person leaves: the first piece is closed, and those who stay join another one.
        then[0] = replace(then[0], count=199)
        counts[1] = [count - (place == 1) for place, count in enumerate(counts[1])]
        step = asked.step(MICRO // 2, then, counts)
        assert len(asked.pieces) == 3
        dataset = np.sum([counts[one.id] for one in then], axis=0) / step.crowd.people
        bins = asked.last["bins"]
        assert isinstance(bins, list)
        for bin_, here, everywhere in zip(bins, dataset, true, strict=True):
            tries += 1
            for name, truth in (("interval", here), ("population_interval", everywhere)):
                covered[name] += bin_[name]["lower"] <= truth <= bin_[name]["upper"]
            ends = bin_["interval"]["lower"], bin_["interval"]["upper"]
            covered["narrow"] += abs(here - sum(ends) / 2) <= 0.4 * (ends[1] - ends[0]) / 2
    for name in ("interval", "population_interval"):
        assert covered[name] >= fewest(tries, 5), name
    assert covered["narrow"] < fewest(tries, 5)


@pytest.mark.parametrize("currency", Currency)
def test_intervals_by_label_cover_after_newcomers_and_leavers(currency: Currency) -> None:
    """Labels differ in their values. Those of people of all epsilons of a label are drawn alike."""
    rng, runs = np.random.default_rng(), 120
    true = {0: (0.02, 0.4, 0.25, 0.33), 1: (0.5, 0.3, 0.1, 0.1)}
    tries, covered = dict.fromkeys(range(3), 0), {place: [0, 0] for place in range(3)}
    for _ in range(runs):
        asked = Asked(currency, by=("north", "south"))
        first = [cohort(1, MICRO // 5, 200), cohort(2, MICRO, 300, segment=1)]
        counts = {one.id: rng.multinomial(one.count, true[one.segment]).tolist() for one in first}
        asked.step(MICRO // 4, first, counts)
        then = [*first, cohort(4, MICRO // 2, 150), cohort(5, 2 * MICRO, 100, segment=1)]
        counts |= {one.id: rng.multinomial(one.count, true[one.segment]).tolist() for one in then[2:]}
        then[0] = replace(then[0], count=199)
        counts[1] = [count - (place == 1) for place, count in enumerate(counts[1])]
        asked.step(MICRO // 2, then, counts)
        groups = asked.last["groups"]
        assert isinstance(groups, list)
        for place, answer in enumerate((*groups, asked.last)):
            own = [counts[one.id] for one in then if place in (one.segment, 2)]
            dataset = np.sum(own, axis=0) / np.sum(own)
            for bin_, here in zip(answer["bins"], dataset, strict=True):
                lower, upper = bin_["interval"]["lower"], bin_["interval"]["upper"]
                tries[place] += 1
                covered[place][0] += lower <= here <= upper
                covered[place][1] += abs(here - (lower + upper) / 2) <= 0.4 * (upper - lower) / 2
    for place, (held, narrow) in covered.items():
        assert held >= fewest(tries[place], 5), place
        assert narrow < fewest(tries[place], 5), place


@pytest.mark.parametrize("currency", Currency)
def test_intervals_by_coordinate_cover_after_newcomers_and_leavers(currency: Currency) -> None:
    """Fixed values of two coordinates, alike for people of all epsilons; public people count exactly.

    Of 200 intervals at 95 % so few hold that it is six standard deviations with a probability below 1e-6.
    """
    runs, tries = 100, 0
    covered = dict.fromkeys(("interval", "simultaneous", "narrow"), 0)
    pattern = [(GRID_SIZE * (n % 10) // 10, GRID_SIZE * (9 - n % 5) // 10) for n in range(10)]

    def sums(values: list[tuple[int, int]]) -> list[int]:
        columns = list(zip(*values, strict=True))
        return [len(values), *map(sum, columns), *(sum(map(square, column)) for column in columns)]

    # A small mu^2 is much noise: of an epsilon of 1 it is about a thirtieth.
    times = 10 if currency is Currency.GAUSSIAN else 1
    for _ in range(runs):
        asked = Asked(currency, dimension=2)
        first = [cohort(1, MICRO // 5, 200 * times), cohort(2, MICRO, 300 * times)]
        first.append(cohort(3, 0, 20, Trust.PUBLIC))
        values = {one.id: pattern * (one.count // 10) for one in first}
        asked.step(MICRO // 4, first, {at: sums(of) for at, of in values.items()})
        then = [*first, cohort(4, MICRO // 2, 150 * times), cohort(5, 2 * MICRO, 100 * times)]
        values |= {one.id: pattern * (one.count // 10) for one in then[3:]}
        # One person leaves: the first piece is closed. Those who stay go on in a piece, newcomers in another.
        then[0], values[1] = replace(then[0], count=first[0].count - 1), values[1][1:]
        asked.step(MICRO // 2, then, {at: sums(of) for at, of in values.items()})
        assert [(piece.base, piece.share) for piece in asked.pieces.values()] == [
            (0, MICRO // 4),
            (0, MICRO // 2),
            (MICRO // 4, MICRO // 4),
        ]
        dataset = np.mean([value for of in values.values() for value in of], axis=0) / GRID_SIZE
        shown = asked.last["coordinates"]
        assert isinstance(shown, list)
        for one, truth in zip(shown, dataset, strict=True):
            tries += 1
            for name in ("interval", "simultaneous"):
                covered[name] += one[name]["lower"] <= truth <= one[name]["upper"]
            ends = one["interval"]["lower"], one["interval"]["upper"]
            covered["narrow"] += abs(truth - sum(ends) / 2) <= 0.3 * (ends[1] - ends[0]) / 2
    for name in ("interval", "simultaneous"):
        assert covered[name] >= fewest(tries, 6), name
    assert covered["narrow"] < fewest(tries, 6)

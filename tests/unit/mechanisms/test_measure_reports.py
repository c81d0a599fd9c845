"""Reports of several measures: what they cost together, by brute force over values, sets and reports."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product

import pytest
from dither.device import measures
from dither.device.choices import ChoiceRandomizer
from dither.device.measures import epsilon_of_each, reported, reports
from dither.device.randomizers import randomizer
from dither.device.shapes import HALF, duchi_reach

from app.core.epsilon import MICRO, round_down_to_significant
from app.core.grid import GRID_SIZE
from tests.client.bits import Seeded

POINTS = (0, HALF, GRID_SIZE)
Reports = tuple[tuple[int, int], ...]
Law = dict[Reports, Fraction]


class Every:
    """Every way that random decisions can go, each with its probability."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.script: list[int] = []
        self.odds: list[Sequence[Fraction]] = []

    def run(self, draw: Callable[[], Reports]) -> Iterator[tuple[Reports, Fraction]]:
        script: list[int] = []
        while True:
            self.taken, self.script, self.odds = [], script, []
            found = draw()
            yield (
                found,
                math.prod(
                    (odds[way] for odds, way in zip(self.odds, self.taken, strict=True)), start=Fraction(1)
                ),
            )
            script = list(self.taken)
            while script and script[-1] + 1 == len(self.odds[len(script) - 1]):
                script.pop()
            if not script:
                return
            script[-1] += 1

    def decide(self, odds: Sequence[Fraction]) -> int:
        place = len(self.taken)
        self.taken.append(self.script[place] if place < len(self.script) else 0)
        self.odds.append(odds)
        return self.taken[-1]

    def below(self, bound: int, bits: object) -> int:
        return self.decide([Fraction(1, bound)] * bound)

    def report(self, point: int, epsilon: int, bits: object) -> int:
        """Duchi's report with its exact law."""
        reach = duchi_reach(epsilon)
        high = Fraction(reach + point - HALF, 2 * reach)
        return (-1, 1)[self.decide([1 - high, high])]


class Choice:
    """Randomized response to a choice of three with its exact law."""

    def __init__(self, every: Every) -> None:
        self.every = every

    def report(self, point: int, epsilon: int, bits: object) -> int:
        law = ChoiceRandomizer(3).range(epsilon)
        assert law.is_single
        kept = [law.kept if place == POINTS.index(point) else law.other for place in range(3)]
        return 1 << self.every.decide(kept)


def laws(
    monkeypatch: pytest.MonkeyPatch, count: int, epsilon: int, device=reports, choices: int = 0
) -> list[Law]:
    """The probability of all that a device may send, for each list of values on a small grid."""
    every = Every()
    devices = [Choice(every) if place < choices else every for place in range(count)]
    monkeypatch.setattr(measures, "below", every.below)
    found = []
    for points in product(POINTS, repeat=count):
        law: Law = {}

        def send(points: tuple[int, ...] = points) -> Reports:
            return tuple(device(devices, points, epsilon).items())

        for sent, chance in every.run(send):
            law[sent] = law.get(sent, Fraction(0)) + chance
        assert sum(law.values()) == 1
        found.append(law)
    return found


def loss(found: list[Law]) -> float:
    """The largest log-likelihood ratio between two lists."""
    worst = Fraction(1)
    for sent in {one for law in found for one in law}:
        chances = [law.get(sent, Fraction(0)) for law in found]
        if min(chances) == 0 < max(chances):
            return math.inf
        worst = max(worst, max(chances) / min(chances))
    return math.log(worst)


CASES = [(2, MICRO), (2, 5 * MICRO), (3, MICRO), (3, 5 * MICRO), (3, 8 * MICRO), (2, 7_770_000)]


@pytest.mark.parametrize(("count", "epsilon"), CASES)
def test_all_reports_of_a_person_together_cost_at_most_the_offer(monkeypatch, count: int, epsilon: int):
    found = loss(laws(monkeypatch, count, epsilon))
    assert found <= epsilon / MICRO * (1 + 1e-12)
    assert found > 0.995 * epsilon / MICRO, "and nearly that: what is lost is the rounding of eps / k"


MIXED = [(2, 1, MICRO), (2, 1, 5 * MICRO), (3, 2, 5 * MICRO)]


@pytest.mark.parametrize(("count", "choices", "epsilon"), MIXED)
def test_choices_among_them_cost_no_more(monkeypatch, count: int, choices: int, epsilon: int):
    found = loss(laws(monkeypatch, count, epsilon, choices=choices))
    assert 0.995 * epsilon / MICRO < found <= epsilon / MICRO * (1 + 1e-12)


def test_the_whole_epsilon_for_each_report_is_found_where_there_are_two(monkeypatch):
    monkeypatch.setattr(measures, "epsilon_of_each", lambda epsilon, count: epsilon)
    assert loss(laws(monkeypatch, 3, 5 * MICRO)) == pytest.approx(10)
    assert loss(laws(monkeypatch, 3, MICRO)) == pytest.approx(1), "one report shows nothing"


def test_a_set_that_is_chosen_by_the_values_is_found_where_it_is_not_all(monkeypatch):
    def largest(devices: Sequence[Every], points: Sequence[int], epsilon: int) -> dict[int, int]:
        number, each = reported(epsilon, len(points)), epsilon_of_each(epsilon, len(points))
        chosen = sorted(sorted(range(len(points)), key=lambda place: -points[place])[:number])
        return {place: devices[place].report(points[place], each, None) for place in chosen}

    assert loss(laws(monkeypatch, 3, 5 * MICRO, largest)) == math.inf
    assert loss(laws(monkeypatch, 2, MICRO, largest)) == math.inf
    assert loss(laws(monkeypatch, 2, 5 * MICRO, largest)) == pytest.approx(5), "all of them show nothing"


def test_parts_fit_the_offer_and_have_three_digits():
    for epsilon, count in product((1, 999, 2_490_000, 2_500_000, 7_490_000, 10**7, 10**12), range(1, 17)):
        number, each = reported(epsilon, count), epsilon_of_each(epsilon, count)
        assert number == max(1, min(count, math.floor(Fraction(epsilon, MICRO) / Fraction(5, 2))))
        assert 0 < each == round_down_to_significant(each)
        assert 0.99 * epsilon < number * each <= epsilon or epsilon < 1000


def test_every_set_is_as_likely():
    """6,000 draws of 2 of 4 measures: each pair within five standard deviations; a false alarm in 10^5."""
    bits, device = Seeded(7), randomizer("hybrid")
    draws = 6_000
    found = Counter(
        tuple(reports([device] * 4, [0, HALF, HALF, GRID_SIZE], 5 * MICRO, bits)) for _ in range(draws)
    )
    assert len(found) == 6
    assert all(abs(count - draws / 6) < 5 * math.sqrt(draws * 5 / 36) for count in found.values())

"""The search for an order explains what has one, and prints the shortest history of what has none.

Each control is a history that an honest service could have had, with what a fault would say in one place.
"""

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tests.storms.history import Call, anomalies, explanation, shortest
from tests.storms.models import Account, Person, Questions

START = Person(start=Account(total=2))
ANSWERS = Questions(known={"a": ("one", "x"), "b": ("one", "y")})
ASKS = ("ask", "one", 1, False, "k")


def told(does: tuple, *answer: object, at: tuple[float, float], who: str = "ann") -> Call:
    """A call that was answered."""
    return Call(who=who, does=does, told=answer, began=at[0], ended=at[1])


def unheard(does: tuple, began: float) -> Call:
    return Call(who="ann", does=does, told=None, began=began)


def shows(total: int, *lines: tuple[str, bool, int, int]) -> tuple[object, ...]:
    """A statement."""
    return ("shows", total, sum(line[2] for line in lines), sum(line[3] for line in lines), *lines)


GIVES = told(("contribute", "one", 5, 1), "created", at=(1, 2))
ALSO = told(("contribute", "two", 5, 1), "created", at=(1, 5))
CHARGE = Call(who="service", does=("charge", "one", (1,)), told=("charged",), began=3, ended=6)

HONEST = {
    "a read beside two writes": [
        GIVES,
        ALSO,
        told(("statement",), *shows(2, ("one", True, 1, 0)), at=(3, 4)),
        told(("statement",), *shows(2, ("one", True, 1, 0), ("two", True, 1, 0)), at=(6, 7)),
    ],
    "a lost request that happened later": [
        unheard(("contribute", "one", 5, 1), 1),
        told(("statement",), *shows(2), at=(2, 3)),
        told(("statement",), *shows(2, ("one", True, 1, 0)), at=(4, 5)),
    ],
    "a lost request that never happened": [
        unheard(("contribute", "one", 5, 2), 1),
        told(("contribute", "two", 5, 2), "created", at=(2, 3)),
    ],
    "a refusal while somebody else holds the budget": [
        told(("contribute", "one", 5, 2), "created", at=(1, 4)),
        told(("contribute", "two", 5, 1), "budget_exhausted", at=(2, 3)),
        told(("withdraw", "one"), "ok", at=(5, 6)),
    ],
    "a charge before a withdrawal": [
        GIVES,
        CHARGE,
        told(("withdraw", "one"), "ok", at=(4, 5)),
        told(("statement",), *shows(2, ("one", False, 1, 1)), at=(7, 8)),
    ],
    "a lost replacement that is sent again after the study has ended": [
        GIVES,
        unheard(("replace", "one", 7, 1), 3),
        told(("archive", "one"), "ok", at=(4, 5)),
        told(("replace", "one", 7, 1), "replaced", at=(6, 7)),
    ],
}

PLANTED: dict[str, tuple[list[Call], int]] = {
    "an acknowledged value is lost": (
        [GIVES, told(("statement",), *shows(2), at=(3, 4))],
        2,
    ),
    "an account is overspent": (
        [
            told(("contribute", "one", 5, 2), "created", at=(1, 2)),
            told(("contribute", "two", 5, 1), "created", at=(3, 4)),
        ],
        2,
    ),
    "a statement is torn": (
        [ALSO, told(("statement",), "shows", 2, 1, 0, at=(2, 3)), told(("budget", 3), "ok", at=(6, 7))],
        1,
    ),
    "a value is replaced after the study has ended": (
        [
            GIVES,
            told(("archive", "one"), "ok", at=(3, 4)),
            told(("replace", "one", 7, 1), "replaced", at=(5, 6)),
        ],
        2,
    ),
    "a charge is taken twice": (
        [GIVES, CHARGE, told(("statement",), *shows(2, ("one", True, 1, 2)), at=(7, 8))],
        1,
    ),
    "a read goes back": (
        [
            unheard(("contribute", "one", 5, 1), 1),
            told(("statement",), *shows(2, ("one", True, 1, 0)), at=(2, 3)),
            told(("statement",), *shows(2), at=(4, 5)),
        ],
        2,
    ),
    "a refund comes twice": (
        [
            GIVES,
            told(("contribute", "two", 5, 1), "created", at=(3, 4)),
            told(("withdraw", "one"), "ok", at=(5, 6)),
            told(("withdraw", "one"), "ok", at=(7, 8)),
            told(("contribute", "three", 5, 2), "created", at=(9, 10)),
        ],
        2,
    ),
}

PLANTED_ANSWERS: dict[str, list[Call]] = {
    "a key has two answers": [
        told(ASKS, "made", "a", "x", at=(1, 2)),
        told(ASKS, "made", "b", "y", at=(3, 4)),
    ],
    "an answer has other bytes": [
        told(ASKS, "made", "a", "x", at=(1, 2)),
        told(ASKS, "made", "a", "y", at=(3, 4)),
    ],
    "an answer is not listed": [
        told(ASKS, "made", "a", "x", at=(1, 2)),
        told(("list", "one"), "listed", at=(3, 4)),
    ],
    "an older answer stands": [
        told(ASKS, "made", "a", "x", at=(1, 2)),
        told(("ask", "one", 2, False, "l"), "made", "b", "y", at=(3, 4)),
        told(("ask", "one", 2, False, "m"), "stands", "a", "x", at=(5, 6)),
    ],
    "a study that has ended answers": [
        told(("archive", "one"), "ok", at=(1, 2)),
        told(ASKS, "made", "a", "x", at=(3, 4)),
    ],
    "a key is free for another question": [
        told(ASKS, "made", "a", "x", at=(1, 2)),
        told(("ask", "one", 2, False, "k"), "made", "b", "y", at=(3, 4)),
    ],
}


@pytest.mark.parametrize("name", HONEST)
def test_what_has_an_order_is_explained(name: str) -> None:
    order = explanation(START, HONEST[name])
    assert order is not None
    assert not any(later.ended < sooner.began for sooner, later in itertools.combinations(order, 2))


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_anomaly_is_found_and_is_short(name: str) -> None:
    calls, size = PLANTED[name]
    (anomaly,) = anomalies([("ann", START, [*calls, *later(START, calls)])])
    assert len(anomaly.calls) == size, str(anomaly)
    assert anomaly.calls[-1] in calls


@pytest.mark.parametrize("name", PLANTED_ANSWERS)
def test_a_planted_anomaly_of_answers_is_found(name: str) -> None:
    calls = PLANTED_ANSWERS[name]
    assert len(anomalies([("answers", ANSWERS, calls)])) == 1
    # Without the last call there is nothing wrong.
    assert explanation(ANSWERS, calls[:-1]) is not None


def later(model: Person, calls: Sequence[Call]) -> list[Call]:
    """What happens after an anomaly, which is no part of its history."""
    return [told(("budget", 9), "ok", at=(20 + n, 20.5 + n)) for n in range(3)]


def by_all_orders(model: Person, calls: Sequence[Call]) -> bool:
    """The same by trying every order of every choice of unheard calls: what the search is measured by."""
    answered = [call for call in calls if call.told is not None]
    lost = [call for call in calls if call.told is None]
    for chosen in itertools.product((False, True), repeat=len(lost)):
        some = [*answered, *itertools.compress(lost, chosen)]
        for order in itertools.permutations(some):
            if any(later.ended < sooner.began for sooner, later in itertools.combinations(order, 2)):
                continue
            states = [model.start]
            for call in order:
                states = [one for state in states for one in model.after(state, call)]
            if states:
                return True
    return False


def random_history(draw: random.Random) -> list[Call]:
    """Calls of two studies with answers that are often possible, and often not."""
    does: list[Callable[[], tuple]] = [
        lambda: ("contribute", draw.choice(("one", "two")), draw.randrange(2), draw.randrange(1, 3)),
        lambda: ("withdraw", draw.choice(("one", "two"))),
        lambda: ("replace", draw.choice(("one", "two")), 0, draw.randrange(1, 3)),
        lambda: ("charge", draw.choice(("one", "two")), (1,)),
        lambda: ("statement",),
    ]
    calls: list[Call] = []
    state = START.start
    for number in range(5):
        action = draw.choice(does)()
        began = number - draw.choice((0, 0.4, 1.4))
        call = Call(who="ann", does=action, told=None, began=began)
        if action[0] == "charge":
            call = replace(call, told=("charged",), ended=number + 0.5)
        elif draw.random() < 0.8:
            answer = START._done(state, *action)[0]
            call = replace(call, told=answer, ended=number + draw.choice((0.3, 1.3)))
        state = draw.choice([state, *START.after(state, call)][-2:])
        calls.append(call)
    return calls


def test_the_search_finds_an_order_wherever_there_is_one() -> None:
    """Against all orders, of small histories; both verdicts are frequent."""
    verdicts = []
    for seed in range(300):
        calls = random_history(random.Random(seed))
        found = explanation(START, calls) is not None
        assert found == by_all_orders(START, calls), "\n".join(map(str, calls))
        verdicts.append(found)
        if not found:
            assert explanation(START, shortest(START, calls)) is None
    assert 30 < verdicts.count(False) < 150

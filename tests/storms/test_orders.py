"""Every order of two requests is explained, and orders find the faults of former versions.

`DITHER_TEST_ORDERS=2 make test-slow` tries all orders with that many switches;
`python -m tests.storms --orders withdraw step --switches 2` those of two requests.
"""

import os
from dataclasses import dataclass
from itertools import pairwise, permutations, product
from pathlib import Path

import pytest

from tests.storms.faults import patched, run_storms
from tests.storms.fleet import Fleet
from tests.storms.orders import ACTS, CLIENTS, PAIRS, Explored, Order, Prescribed, explore
from tests.support.databases import Server

SWITCHES = int(os.environ.get("DITHER_TEST_ORDERS", "1"))


@dataclass(frozen=True, slots=True)
class Found:
    """The requests whose orders find a fault, and words of what is printed."""

    orders: tuple[str, ...]
    words: str


FOUND = {
    "forgotten_key": Found(("standing", "step", "--switches=0", "--free-attempts=0"), "-> stands"),
    "lost_tally": Found(("replace", "step", "--switches=0"), "no process answers"),
    "torn_statement": Found(("offer", "statement"), "statement -> shows"),
}


async def explored(
    server: Server, pair: tuple[str, ...], *, switches: int, struck_switches: int = -1
) -> Explored:
    """All orders of a pair, on a database of its own."""
    with server.database() as url:
        found = await explore(url, pair, switches=switches, struck_switches=struck_switches)
    assert not found.wrong, f"{found}\nagain: python -m tests.storms --orders {' '.join(pair)}"
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    ("pair", "told"),
    [
        (("offer", "other_offer"), ("created", "budget_exhausted")),
        (("step", "withdraw"), ("made", "ok")),
    ],
    ids="-".join,
)
async def test_every_order_of_two_requests_is_explained(
    postgres_server: Server, pair: tuple[str, ...], told: tuple[str, str]
) -> None:
    """Ann has 1 left, so that one of two offers of 1 is refused, whichever comes first."""
    found = await explored(postgres_server, pair, switches=1)
    assert found.said == dict.fromkeys(told, found.orders)


@pytest.mark.long
@pytest.mark.parametrize("struck_switches", [-1, pytest.param(0, marks=pytest.mark.slow)])
async def test_the_books_are_audited_once_all_orders_were_tried(
    postgres_server: Server, monkeypatch: pytest.MonkeyPatch, struck_switches: int
) -> None:
    """The control: what the audit finds counts as wrong, with strikes and without."""

    async def audited(_: Fleet) -> tuple[str, ...]:
        return ("a planted finding",)

    monkeypatch.setattr(Fleet, "audited", audited)
    with postgres_server.database() as url:
        found = await explore(url, ("list", "list"), switches=0, struck_switches=struck_switches)
    assert (found.struck > 0) == (struck_switches == 0)
    assert found.wrong == ["a planted finding"]


@pytest.mark.slow
async def test_every_order_of_all_pairs_is_explained(
    postgres_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    all_found = [await explored(postgres_server, pair, switches=SWITCHES) for pair in PAIRS]
    with capsys.disabled():
        orders, turns = sum(found.orders for found in all_found), sum(found.turns for found in all_found)
        print(f"\n{len(PAIRS)} pairs: {orders} orders with at most {SWITCHES} switches, {turns} turns")


@pytest.mark.slow
async def test_a_request_is_sent_twice_whatever_strikes(
    postgres_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each request, by two clients at once, with every strike at every statement."""
    all_found = [
        await explored(postgres_server, (does, does), switches=0, struck_switches=0) for does in ACTS
    ]
    assert all(found.struck for found in all_found)
    with capsys.disabled():
        print(f"\n{len(ACTS)} requests: {sum(found.struck for found in all_found)} strikes")


@pytest.mark.slow
@pytest.mark.parametrize("fault", FOUND)
def test_orders_find_a_fault_again(postgres_server: Server, fault: str, tmp_path: Path) -> None:
    """The control: orders of two requests find what a mend is for."""
    found = FOUND[fault]
    with postgres_server.database() as url:
        arguments = ["--database", url, "--struck-switches=-1", "--orders", *found.orders]
        done = run_storms(arguments, patched(fault, tmp_path))
    assert done.returncode == 1, done.stdout
    assert found.words in done.stdout


@pytest.mark.parametrize(("mine", "others", "switches"), [*product((1, 2, 4), (1, 3), (0, 1, 2, 3))])
def test_all_orders_are_tried_and_each_once(mine: int, others: int, switches: int) -> None:
    """Beside all ways to shuffle the turns of two clients who never wait, with as few switches."""
    turns = dict(zip(CLIENTS, (mine, others), strict=True))
    tried = []
    todo = [Order(client) for client in CLIENTS]
    while todo:
        course = Prescribed(todo.pop())
        left, order = dict(turns), ""
        while any(left.values()):
            name, _, _ = course.choose([(name, 0, 0) for name in CLIENTS if left[name]])
            left[name] -= 1
            order += name
        tried.append(order)
        todo += course.further(switches=switches, struck_switches=-1)
    shuffled = {"".join(order) for order in permutations("a" * mine + "b" * others)}
    few = {order for order in shuffled if _switches(order) <= switches}
    assert sorted(tried) == sorted(few)


def _switches(order: str) -> int:
    """How often a client goes on before the other one is done."""
    return sum(one != other and one in order[place:] for place, (one, other) in enumerate(pairwise(order), 1))

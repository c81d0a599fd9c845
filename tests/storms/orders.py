"""Every order of the statements of two requests, with few switches between them, and every strike.

Storms try some orders of many requests; here all are tried, of two at once. The request that had a turn has
the next one, too, until it is answered or waits for a lock, but for some turns at which the other one goes
on. Where a program can go wrong by the order of things, few switches mostly suffice (Musuvathi and Qadeer,
"Iterative context bounding for systematic testing of multithreaded programs", PLDI 2007).
https://doi.org/10.1145/1250734.1250785
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement

from tests.storms.fleet import Fleet, Told, fleet
from tests.storms.requests import (
    Request,
    archiving,
    asking,
    limiting,
    listing,
    offering,
    reading,
    replacing,
    withdrawing,
)
from tests.storms.weather import AFTER_COMMIT, DIED_BEFORE, LOST_BEFORE, Label, Parked, Turn

BUDGET = 3
"""Of each person; ann has offered 2."""

TRIES = 3
"""Of a client. One strike takes one answer."""

CLIENTS = ("a", "b")


PEOPLE = ("ann", "bob", "joe")
STUDIES = ("one", "two", "three")


@dataclass(frozen=True, slots=True)
class Scene:
    """People and studies of one run, in which two requests meet.

    Ann and bob were asked at a quarter of their epsilons; joe came later. Ann has 1 left.

    Attributes:
        run: Which one: all names are its own.
    """

    run: str

    def named(self, name: str) -> str:
        """A name of this run."""
        return f"{name}-{self.run}"

    def offer(self, person: str, study: str, epsilon: int) -> Request:
        """A contribution."""
        return offering(self.named(person), self.named(study), 10, epsilon)

    def ask(self, quarters: int, key: str, *, fresh: bool = False) -> Request:
        """A question for the mean of study one, at this many quarters of each epsilon."""
        return asking(self.named("one"), quarters, self.named(key), fresh=fresh)

    @property
    def before(self) -> Sequence[Request]:
        """What happens before the two, one after another."""
        return (
            self.offer("ann", "one", 2),
            self.offer("bob", "one", 1),
            self.ask(1, "first"),
            self.offer("joe", "one", 1),
        )

    @property
    def after(self) -> Request:
        """What happens after them: keys of before then stand for answers that are not the newest."""
        return self.ask(4, "after")


ACTS: dict[str, Callable[[Scene], Request]] = {
    "offer": lambda scene: scene.offer("ann", "two", 1),
    "other_offer": lambda scene: scene.offer("ann", "three", 1),
    "replace": lambda scene: replacing(scene.named("ann"), scene.named("one"), 20, 1),
    "withdraw": lambda scene: withdrawing(scene.named("ann"), scene.named("one")),
    "budget": lambda scene: limiting(scene.named("ann"), 2),
    "step": lambda scene: scene.ask(2, "step"),
    "last_step": lambda scene: scene.ask(4, "last"),
    "again": lambda scene: scene.ask(1, "first"),
    "standing": lambda scene: scene.ask(1, "standing"),
    "fresh": lambda scene: scene.ask(1, "fresh", fresh=True),
    "archive": lambda scene: archiving(scene.named("one")),
    "statement": lambda scene: reading(scene.named("ann")),
    "list": lambda scene: listing(scene.named("one")),
}
"""What a client may do."""

PAIRS = tuple(combinations_with_replacement(ACTS, 2))
"""All pairs. One with itself is a request that is sent twice, with one key."""


@dataclass(frozen=True, slots=True)
class Order:
    """One order of the statements of two requests.

    Attributes:
        first: The client that has the first turn.
        switches: The turns at which the other one goes on.
        strike: At which turn what strikes; None: nothing does.
    """

    first: str
    switches: tuple[int, ...] = ()
    strike: tuple[int, str] | None = None

    def __str__(self) -> str:
        """In one line."""
        struck = "" if self.strike is None else f", {self.strike[1]} {self.strike[0]}"
        return f"{self.first} first, switches {list(self.switches)}{struck}"


@dataclass
class Prescribed:
    """Does what an order says, and notes what else could have happened.

    Attributes:
        order: What is to happen.
        turns: So far.
        could_switch: The turns at which the other client could have gone on.
        could_strike: The turns at which something could have struck, and what.
    """

    order: Order
    turns: int = 0
    could_switch: list[int] = field(default_factory=list)
    could_strike: list[tuple[int, str]] = field(default_factory=list)
    _last: str = ""

    def choose(self, labels: Sequence[Label]) -> Label:
        """See `Course`."""
        last = self._last or self.order.first
        mine = [label for label in labels if label[0] == last]
        others = [label for label in labels if label[0] != last]
        if mine and others and self.turns:
            self.could_switch.append(self.turns)
        chosen = (others if not mine or (others and self.turns in self.order.switches) else mine)[0]
        self._last = chosen[0]
        self.turns += 1
        return chosen

    def fate(self, parked: Parked) -> str:
        """See `Course`."""
        turn = self.turns - 1
        strikes = (DIED_BEFORE, LOST_BEFORE, *(AFTER_COMMIT * parked.commits))
        self.could_strike += [(turn, strike) for strike in strikes]
        return self.order.strike[1] if self.order.strike and self.order.strike[0] == turn else ""

    def further(self, *, switches: int, struck_switches: int) -> Iterator[Order]:
        """The orders that differ from this one in one thing more, later than all that is in it.

        Args:
            switches: Most of an order without a strike.
            struck_switches: Most of one with a strike.
        """
        if self.order.strike is not None:
            return
        earlier = self.order.switches
        if len(earlier) < switches:
            later = (turn for turn in self.could_switch if not earlier or turn > earlier[-1])
            yield from (replace(self.order, switches=(*earlier, turn)) for turn in later)
        if len(earlier) <= struck_switches:
            yield from (replace(self.order, strike=strike) for strike in self.could_strike)


@dataclass
class Explored:
    """What all orders of two requests came to.

    Attributes:
        pair: What the two clients did.
        orders, turns: How many there were, and how many statements had their turn in them.
        struck: How many of the orders have a strike.
        said: How often what was answered to the two.
        wrong: Orders with what nothing explains.
    """

    pair: tuple[str, ...]
    orders: int = 0
    turns: int = 0
    struck: int = 0
    said: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """In one line, and more where something is wrong."""
        line = (
            f"{' beside '.join(self.pair)}: {self.orders} orders, {self.struck} with a strike, "
            f"{self.turns} turns, {dict(sorted(self.said.items()))}"
        )
        return "\n".join([line, *self.wrong])


async def explore(
    url: str,
    pair: tuple[str, ...],
    *,
    name: str = "",
    switches: int,
    struck_switches: int = -1,
    free_attempts: int = 1,
) -> Explored:
    """Try every order of two requests, each at a process of its own, and look for what nothing explains.

    Args:
        url: A migrated database.
        pair: What the two clients do.
        name: Of tokens, people and studies, where there are others on the database.
        switches: The most that an order without a strike has.
        struck_switches: The most that one with a strike has; negative: no strikes.
        free_attempts: How often a release is tried without a lock.
    """
    found = Explored(pair)
    todo = [Order(client) for client in CLIENTS]
    begin = Prescribed(todo[0])
    async with fleet(url, begin, name=name, processes=len(CLIENTS), free_attempts=free_attempts) as ships:
        while todo:
            order = todo.pop()
            course = await _run(ships, f"{name}-{found.orders}", order, found)
            todo += course.further(switches=switches, struck_switches=struck_switches)
        found.wrong += await ships.audited()
    return found


async def _run(ships: Fleet, run: str, order: Order, found: Explored) -> Prescribed:
    """One order, with people and studies of its own."""
    scene = Scene(run)
    people, studies = [scene.named(name) for name in PEOPLE], [scene.named(name) for name in STUDIES]
    told = Told(ships, people, studies, BUDGET)
    await told.begin()
    for request in scene.before:
        await told.call("before", 0, request)

    async def client(name: str, does: str, process: int) -> None:
        for attempt in range(TRIES):
            if await told.call(name, process, ACTS[does](scene), Turn(name, attempt, process)):
                return
            process = (process + 1) % len(CLIENTS)
        told.faults.append(f"no process answers {does}")

    earlier = told.said.copy()
    course = ships.weather.course = Prescribed(order)
    clients: list[Awaitable[None]] = [
        client(name, does, place) for place, (name, does) in enumerate(zip(CLIENTS, found.pair, strict=True))
    ]
    ships.weather.told.clear()
    await ships.weather.blow(clients)
    found.orders += 1
    found.struck += order.strike is not None
    found.turns += course.turns
    found.said += told.said - earlier
    story = list(ships.weather.told)
    await told.call("after", 0, scene.after)
    wrong = [*map(str, await told.unexplained()), *told.faults]
    if wrong:
        found.wrong.append("\n".join([f"{order}:", *wrong, *story]))
    return course

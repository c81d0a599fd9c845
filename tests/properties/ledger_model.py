"""The ledger as a plain model: people, what they hold, what they spent. No epochs, no cohorts, no database.

Every person is charged on their own here, so that the real ledger, which works on cohorts, is compared
with something that cannot share its mistakes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.accounting.costs import group_costs
from app.core.cohort import Group, Reports
from app.core.epsilon import MAX_EPSILON, MICRO
from app.core.study import Currency, LocalMechanism, Relation, StudyDefinition, Trust
from app.estimators import registry
from app.estimators.interface import NotApplicable, Plan
from app.services.questions import Ask, resolve

OK, CREATED, UNCHANGED, REPLACED = "ok", "created", "unchanged", "replaced"
EXISTS, EXHAUSTED, BELOW_SPENT = "contribution_exists", "budget_exhausted", "epsilon_below_spent"
NOT_FOUND, BELOW_RESERVED, KEY_REUSED = "not_found", "budget_below_reserved", "idempotency_key_reused"
NOT_APPLICABLE = "estimator_not_applicable"
NO_GAIN = "no_gain"
AFTER_SPENDING, FORGED = "report_after_spending", "invalid_request"

WHOLE_ONLY = (LocalMechanism.DUCHI, LocalMechanism.PIECEWISE, LocalMechanism.HYBRID)
"""Their reports have a range that belongs to a whole epsilon."""

Result = str | int | tuple[str, ...]
"""What comes of something: a word, the number of a release, or a word for each record of a batch."""


@dataclass(frozen=True)
class Contribute:
    """POST a contribution, or PUT it with `replace`.

    `explained` is the largest epsilon with which a device can have drawn it, if it is a report.
    """

    study: str
    name: str
    trust: Trust
    epsilon: int
    value: int
    replace: bool = False
    explained: int = 1_000 * MICRO


@dataclass(frozen=True)
class Batch:
    """POST a batch, in which somebody may occur more than once."""

    study: str
    records: tuple[Contribute, ...]


@dataclass(frozen=True)
class Withdraw:
    """DELETE a contribution."""

    study: str
    name: str


@dataclass(frozen=True)
class SetBudget:
    """PUT somebody's lifetime budget."""

    name: str
    epsilon: int


@dataclass(frozen=True)
class Question:
    """GET the answer to a question, or POST it with `new`, there perhaps under a key, or if it is no gain."""

    study: str
    ask: int
    new: bool
    key: str | None = None
    worse: bool = False


Operation = Contribute | Batch | Withdraw | SetBudget | Question


@dataclass
class Line:
    """What somebody holds in one study.

    Attributes:
        live, trust, epsilon, value: As it was contributed, `epsilon` in the study's currency; withdrawn, it
            is what was spent.
        spent: In this study, for ever.
        drawn_with: What a local report was randomized with.
    """

    live: bool
    trust: Trust
    epsilon: int
    spent: int
    value: int | None
    drawn_with: int = 0

    @property
    def remaining(self) -> int:
        """What is left to spend."""
        return self.epsilon - self.spent


@dataclass(frozen=True)
class Past:
    """A release as answers to its question are compared: its predicted width, and who was there."""

    number: int
    ask: Ask
    share: int
    width: float
    people: int

    def width_today(self, people: int, range_width: float) -> float:
        """How wide its interval is for the mean of other people."""
        apart = abs(1 / self.people - 1 / people)
        return min(range_width, self.width + 1.96 * range_width * apart**0.5)


@dataclass
class Model:
    """The whole ledger.

    Attributes:
        studies, asks: What there is to contribute to and to ask.
        lifetime: Budget of somebody new, in each currency.
        budgets: Budgets that were set.
        lines: By study and name.
        releases: How many there are; they are numbered from 0.
        latest: The newest release of each question, by study and number of the ask.
        past: By study and estimator the releases of replace_one studies, in their order.
        keys: What each key asked for, and its release.
    """

    studies: Mapping[str, StudyDefinition]
    asks: Mapping[str, tuple[Ask, ...]]
    lifetime: Mapping[Currency, int]
    budgets: dict[str, int] = field(default_factory=dict)
    lines: dict[tuple[str, str], Line] = field(default_factory=dict)
    releases: int = 0
    latest: dict[tuple[str, int], int] = field(default_factory=dict)
    past: dict[tuple[str, str | None], list[Past]] = field(default_factory=dict)
    keys: dict[str, tuple[tuple[str, int, bool], int]] = field(default_factory=dict)

    def apply(self, operation: Operation, *, away: str | None = None) -> Result:
        """Do something.

        Args:
            operation: What.
            away: Somebody who is not there at this moment, for a question.

        Returns:
            The number of the release that answers, or words for what came of it.
        """
        match operation:
            case Contribute(replace=True):
                return self._replace(operation)
            case Contribute():
                return self._contribute(operation)
            case Batch(records=records):
                return tuple(self._contribute(record) for record in records)
            case Withdraw():
                return self._withdraw(operation)
            case SetBudget(name=name, epsilon=epsilon):
                if self.reserved(name, Currency.LAPLACE) > epsilon:
                    return BELOW_RESERVED
                self.budgets[name] = epsilon
                return OK
            case Question():
                return self._answer(operation, away)

    # ------------------------------------------------------------------------------------ people

    def of(self, name: str) -> Iterator[tuple[str, Line]]:
        """Somebody's lines."""
        return ((study, line) for (study, owner), line in self.lines.items() if owner == name)

    def budget(self, name: str, currency: Currency) -> int:
        """Somebody's lifetime budget; only the one in epsilon is ever set."""
        if currency is Currency.GAUSSIAN:
            return self.lifetime[currency]
        return self.budgets.get(name, self.lifetime[currency])

    def reserved(self, name: str, currency: Currency) -> int:
        """What somebody reserves over all studies of a currency."""
        return sum(line.epsilon for study, line in self.of(name) if self.studies[study].noise is currency)

    def spent(self, name: str, currency: Currency) -> int:
        """What somebody has spent in them."""
        return sum(line.spent for study, line in self.of(name) if self.studies[study].noise is currency)

    def _contribute(self, new: Contribute) -> str:
        line = self.lines.get((new.study, new.name))
        if line is not None and line.live:
            return UNCHANGED if self._same(line, new) else EXISTS
        return self._enter(new, CREATED)

    def _replace(self, new: Contribute) -> str:
        line = self.lines.get((new.study, new.name))
        if line is None or not line.live:
            return NOT_FOUND
        if new.trust is Trust.LOCAL and self._same(line, new):
            return REPLACED
        return self._enter(new, REPLACED)

    def _enter(self, new: Contribute, done: str) -> str:
        """Put a value in somebody's line, where something may be spent already, if it fits."""
        old = self.lines.get((new.study, new.name))
        spent = old.spent if old else 0
        study = self.studies[new.study]
        epsilon = spent if new.trust is Trust.PUBLIC else study.amount(new.epsilon)
        whole = study.local_mechanism in WHOLE_ONLY or study.local_mechanism is LocalMechanism.GAUSSIAN
        if epsilon < spent:
            return BELOW_SPENT
        if new.trust is Trust.LOCAL:
            if epsilon == spent:
                return BELOW_SPENT
            if whole and spent:
                return AFTER_SPENDING
            if epsilon - spent > study.amount(new.explained):
                return FORGED
        reserved = self.reserved(new.name, study.noise) - (old.epsilon if old else 0)
        if reserved + epsilon > self.budget(new.name, study.noise):
            return EXHAUSTED
        self.lines[new.study, new.name] = Line(
            live=True,
            trust=new.trust,
            epsilon=epsilon,
            spent=epsilon if new.trust is Trust.LOCAL else spent,
            value=new.value,
            drawn_with=epsilon - spent,
        )
        return done

    def _same(self, line: Line, new: Contribute) -> bool:
        same = line.trust is new.trust and line.value == new.value
        amount = self.studies[new.study].amount(new.epsilon)
        return same and (new.trust is Trust.PUBLIC or line.epsilon == amount)

    def _withdraw(self, leaving: Withdraw) -> str:
        line = self.lines.get((leaving.study, leaving.name))
        if line is None:
            return NOT_FOUND
        line.live, line.value, line.epsilon = False, None, line.spent
        return OK

    # ---------------------------------------------------------------------------------- releases

    def _answer(self, question: Question, away: str | None) -> str | int:
        asked, request = (question.study, question.ask), (question.study, question.ask, question.worse)
        if question.key is not None and question.key in self.keys:
            known, number = self.keys[question.key]
            return number if known == request else KEY_REUSED
        if not question.new and (standing := self._standing(question)) is not None:
            return standing
        found = self._new_answer(question, away)
        if isinstance(found, str):
            best = None if question.new else self._standing(question, any_share=True)
            return found if best is None else best
        prices, past = found
        for name, price in prices.items():
            line = self.lines[question.study, name]
            line.spent += price
            assert line.spent <= line.epsilon
        number = self.latest[asked] = self.releases
        self.releases += 1
        if past is not None:
            self.past.setdefault((question.study, past.ask.estimator), []).append(past)
        if question.key is not None:
            self.keys[question.key] = request, number
        return number

    def _standing(self, question: Question, *, any_share: bool = False) -> int | None:
        """The release that answers who only reads."""
        study, ask = self.studies[question.study], self.asks[question.study][question.ask]
        if study.relation is Relation.ADD_REMOVE_ONE:
            return self.latest.get((question.study, question.ask))
        past = self.past.get((question.study, ask.estimator), [])
        if not past:
            return None
        share, cap = (study.default_share if ask.share is None else ask.share), ask.epsilon or MAX_EPSILON
        explicit = not any_share and (ask.share is not None or ask.epsilon is not None)
        if explicit and not any(
            one.share >= share and (one.ask.epsilon or MAX_EPSILON) >= cap for one in past
        ):
            return None
        people, span = past[-1].people, float(study.upper - study.lower)
        best = min(one.width_today(people, span) for one in past)
        return max(one.number for one in past if one.width_today(people, span) <= 1.05 * best)

    def _new_answer(self, question: Question, away: str | None) -> tuple[dict[str, int], Past | None] | str:
        """What each person pays for a new release and what it is compared by, or why there is none."""
        study, ask = self.studies[question.study], self.asks[question.study][question.ask]
        share = study.default_share if ask.share is None else ask.share
        there = {
            name: line
            for (of, name), line in self.lines.items()
            if of == question.study and line.live and name != away
        }
        cap = None if ask.epsilon is None else study.amount(ask.epsilon)
        offers = {
            name: min(line.epsilon * share // MICRO, line.epsilon if cap is None else cap)
            for name, line in there.items()
            if line.trust is Trust.CENTRAL
        }
        paying = {name: offer for name, offer in offers.items() if 0 < offer <= there[name].remaining}
        if ask.estimator == "transformed":
            return paying, None
        planned = self._planned(study, ask, there, offers, paying)
        if isinstance(planned, str):
            return planned
        prices, plan = planned
        if ask.estimator == "uniform":
            prices = dict.fromkeys(paying, min(paying.values(), default=0))
        if study.relation is Relation.ADD_REMOVE_ONE:
            return prices, None
        people, span = len(there), float(study.upper - study.lower)
        width = span if plan.interval_width is None else plan.interval_width()
        past = self.past.get((question.study, ask.estimator), [])
        best = min((one.width_today(people, span) for one in past), default=None)
        worse = best is not None and (width > 1.5 * best if question.new else width * 1.05 >= best)
        if not question.worse and (2 * (len(offers) - len(paying)) > people or worse):
            return NO_GAIN
        return prices, Past(number=self.releases, ask=ask, share=share, width=width, people=people)

    @staticmethod
    def _planned(
        study: StudyDefinition,
        ask: Ask,
        there: Mapping[str, Line],
        offers: Mapping[str, int],
        paying: Mapping[str, int],
    ) -> tuple[dict[str, int], Plan] | str:
        """Prices and plans of estimators, which are tested elsewhere."""
        alike: dict[tuple[Trust, int, bool], list[str]] = {}
        for name, line in there.items():
            epsilon = {Trust.CENTRAL: offers.get(name, 0), Trust.LOCAL: line.drawn_with}.get(line.trust, 0)
            participates = line.trust is not Trust.CENTRAL or name in paying
            alike.setdefault((line.trust, epsilon, participates), []).append(name)
        groups = [
            Group(
                trust=trust,
                epsilon=epsilon,
                count=len(names),
                participates=participates,
                reports=_reports(study, [there[name] for name in names]) if trust is Trust.LOCAL else None,
            )
            for (trust, epsilon, participates), names in alike.items()
        ]
        resolved = resolve(study, ask)
        secret = study.relation is Relation.ADD_REMOVE_ONE
        asked = resolved.question(study, people=None if secret else len(there), expected_size=None)
        try:
            if resolved.estimator == registry.AUTO:
                _, plan, _ = registry.choose(groups, asked)
            else:
                estimator = registry.get(resolved.estimator, study.relation, study.noise)
                plan = estimator.plan(groups, registry.for_estimator(estimator, asked))
        except NotApplicable:
            unpaid = offers.keys() - paying.keys()
            return EXHAUSTED if unpaid or not there else NOT_APPLICABLE
        costs = group_costs(plan.queries, plan.noise, study.relation, groups, study.noise)
        prices = {
            name: cost for names, cost in zip(alike.values(), costs, strict=True) for name in names if cost
        }
        return prices, plan


def _reports(study: StudyDefinition, lines: Sequence[Line]) -> Reports:
    values = [line.value or 0 for line in lines]
    return Reports(
        mechanism=study.local_mechanism,
        total=sum(values),
        total_squares=sum(value * value for value in values),
    )

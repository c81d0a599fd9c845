"""The ledger as a plain model: people, what they hold, what they spent. No epochs, no cohorts, no database.

Every person is charged on their own here, so that the real ledger, which works on cohorts, is compared
with something that cannot share its mistakes.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.accounting.costs import group_costs
from app.core.cohort import Group, Reports
from app.core.epsilon import MAX_EPSILON, MICRO
from app.core.study import Currency, LocalMechanism, Relation, StudyDefinition, Trust
from app.estimators import registry
from app.estimators.interface import NotApplicable
from app.services.statistics.questions import Ask, Resolved, resolve
from app.services.statistics.whole_plans import planned_share
from tests.properties.steps_model import Chain, Money, Planned, step

OK, CREATED, UNCHANGED, REPLACED = "ok", "created", "unchanged", "replaced"
EXISTS, EXHAUSTED, BELOW_SPENT = "contribution_exists", "budget_exhausted", "epsilon_below_spent"
NOT_FOUND, BELOW_RESERVED, KEY_REUSED = "not_found", "budget_below_reserved", "idempotency_key_reused"
NOT_APPLICABLE = "estimator_not_applicable"
NO_CONTRIBUTIONS = "no_contributions"
NO_GAIN = "no_gain"
AFTER_SPENDING, FORGED = "report_after_spending", "invalid_request"

WHOLE_ONLY = (
    LocalMechanism.DUCHI,
    LocalMechanism.PIECEWISE,
    LocalMechanism.HYBRID,
    LocalMechanism.OPTIMAL,
)
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
    """GET the answer to a question, or POST it with `new`, perhaps under a key, also if no gain, afresh."""

    study: str
    ask: int
    new: bool
    key: str | None = None
    worse: bool = False
    fresh: bool = False


Operation = Contribute | Batch | Withdraw | SetBudget | Question


@dataclass
class Line:
    """What somebody holds in one study.

    Attributes:
        live, trust, epsilon, value: As it was contributed, `epsilon` in the study's currency; withdrawn, it
            is what was spent.
        spent: In this study, for ever.
        drawn_with: What a local report was randomized with.
        stay: Which contribution to the study it is, of all that there were.
    """

    live: bool
    trust: Trust
    epsilon: int
    spent: int
    value: int | None
    drawn_with: int = 0
    stay: int = 0

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
    left_out: int = 0

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
        latest: The newest release of each question, by study, estimator, share and cap.
        past: By study and estimator the releases of replace_one studies, in their order.
        chains: By study and estimator what a question has by its steps.
        arrivals: How many contributions came to each study.
        said: Of each release of a replace_one study people, those left out, share, and share before.
        keys: What each key asked for, and its release.
    """

    studies: Mapping[str, StudyDefinition]
    asks: Mapping[str, tuple[Ask, ...]]
    lifetime: Mapping[Currency, int]
    budgets: dict[str, int] = field(default_factory=dict)
    lines: dict[tuple[str, str], Line] = field(default_factory=dict)
    releases: int = 0
    latest: dict[tuple[str, str | None, int, int | None], int] = field(default_factory=dict)
    past: dict[tuple[str, str | None], list[Past]] = field(default_factory=dict)
    chains: dict[tuple[str, str | None], Chain] = field(default_factory=dict)
    arrivals: Counter[str] = field(default_factory=Counter)
    said: dict[int, tuple[int, int, int, int]] = field(default_factory=dict)
    keys: dict[str, tuple[tuple[str, int, bool, bool], int]] = field(default_factory=dict)

    def apply(self, operation: Operation, *, away: str | None = None, began: "Model | None" = None) -> Result:
        """Do something.

        Args:
            operation: What.
            away: Somebody who is not there at this moment, for a question.
            began: When a question came in, if that is not now: what a question without a share raises is
                decided then, so that of many who ask at once one takes the step.

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
                return self._answer(operation, away, began or self)

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
        self.arrivals[new.study] += 1
        self.lines[new.study, new.name] = Line(
            live=True,
            trust=new.trust,
            epsilon=epsilon,
            spent=epsilon if new.trust is Trust.LOCAL else spent,
            value=new.value,
            drawn_with=epsilon - spent,
            stay=self.arrivals[new.study],
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

    def _answer(self, question: Question, away: str | None, began: "Model") -> str | int:
        request = question.study, question.ask, question.worse, question.fresh
        if question.key is not None and question.key in self.keys:
            known, number = self.keys[question.key]
            return number if known == request else KEY_REUSED
        if not question.new and (standing := self._standing(question)) is not None:
            return standing
        found = self._new_answer(question, away, began)
        if isinstance(found, str):
            best = None if question.new else self._standing(question, any_share=True)
            return found if best is None else best
        number = found if isinstance(found, int) else self._publish(question, *found)
        if question.key is not None:
            self.keys[question.key] = request, number
        return number

    def _publish(self, question: Question, prices: Mapping[str, int], past: Past, chain: Chain | None) -> int:
        for name, price in prices.items():
            line = self.lines[question.study, name]
            line.spent += price
            assert line.spent <= line.epsilon
        number, of = self.releases, (question.study, past.ask.estimator)
        self.latest[*of, past.share, past.ask.epsilon] = number
        self.releases += 1
        before = None
        if chain is not None:
            # An answer is never to a smaller share than the one that it sharpens.
            before = self.chains.get(of)
            past = replace(past, share=max(past.share, before.share if before else 0))
            self.chains[of] = replace(chain, share=past.share, number=number)
        if self.studies[question.study].relation is Relation.REPLACE_ONE:
            self.past.setdefault(of, []).append(past)
            self.said[number] = past.people, past.left_out, past.share, before.share if before else 0
        return number

    def _standing(self, question: Question, *, any_share: bool = False) -> int | None:
        """The release that answers who only reads."""
        study, ask = self.studies[question.study], self.asks[question.study][question.ask]
        share, cap = (study.default_share if ask.share is None else ask.share), ask.epsilon or MAX_EPSILON
        if study.relation is Relation.ADD_REMOVE_ONE:
            return self.latest.get((question.study, ask.estimator, share, ask.epsilon))
        past = self.past.get((question.study, ask.estimator), [])
        if not past:
            return None
        explicit = not any_share and (ask.share is not None or ask.epsilon is not None)
        if explicit and not any(
            one.share >= share and (one.ask.epsilon or MAX_EPSILON) >= cap for one in past
        ):
            return None
        people, span = past[-1].people, float(study.upper - study.lower)
        best = min(one.width_today(people, span) for one in past)
        return max(one.number for one in past if one.width_today(people, span) <= 1.05 * best)

    def _new_answer(
        self, question: Question, away: str | None, began: "Model"
    ) -> tuple[Mapping[str, int], Past, Chain | None] | int | str:
        """What each person pays, and what is kept; or the release that stands, or why there is none."""
        study, ask = self.studies[question.study], self.asks[question.study][question.ask]
        there = {
            name: line
            for (of, name), line in self.lines.items()
            if of == question.study and line.live and name != away
        }
        public, span = study.relation is Relation.REPLACE_ONE, float(study.upper - study.lower)
        resolved = resolve(study, ask)
        if public and not there:
            return NO_CONTRIBUTIONS
        if public and not question.fresh:
            former = self.chains.get((question.study, ask.estimator))
            raised = began.chains.get((question.study, ask.estimator))
            if raised is not None and ask.share is None:
                resolved = replace(resolved, share=min(MICRO, raised.share + study.default_share))

            def plan(whole: Resolved, offers: Mapping[str, int], paying: set[str]) -> Planned | str:
                return self._planned(study, whole, there, offers, paying, planned_share(resolved.share))

            taken = step(Money(study.noise), resolved, there, former, plan, span, (EXHAUSTED, NOT_APPLICABLE))
            if isinstance(taken, str):
                return taken
            arrivals = self.arrivals[question.study]
            if taken is not None:
                if former is not None and not taken.drawn and former.arrivals == arrivals:
                    return former.number
                past = Past(self.releases, ask, resolved.share, taken.width, len(there), taken.left_out)
                chain = Chain(
                    parts=taken.parts, share=resolved.share, number=self.releases, arrivals=arrivals
                )
                return (taken.prices, past, chain) if self._is_gain(question, past) else NO_GAIN
        cap = resolved.cap
        # In secret studies who offers less than the level pays nothing, and no one more than for it. No noisy
        # number chooses it: the questions state a number of people.
        resolved = resolved.leveled(study, ())
        level = resolved.level
        offers = {
            name: min(
                (line.epsilon if level is None else min(line.epsilon, level.top)) * resolved.share // MICRO,
                line.epsilon if cap is None else cap,
            )
            for name, line in there.items()
            if line.trust is Trust.CENTRAL and (level is None or line.epsilon >= level.floor)
        }
        paying = {name: offer for name, offer in offers.items() if 0 < offer <= there[name].remaining}
        past = Past(self.releases, ask, resolved.share, span, len(there), left_out=len(offers) - len(paying))
        if ask.estimator == "transformed":
            return paying, past, None
        planned = self._planned(study, resolved, there, offers, set(paying))
        if isinstance(planned, str):
            return planned
        costs = group_costs(
            planned.plan.queries, planned.plan.noise, study.relation, planned.groups, study.noise
        )
        named = zip(planned.names, costs, strict=True)
        prices = {name: cost for names, cost in named for name in names if cost}
        if ask.estimator == "uniform":
            prices = dict.fromkeys(paying, min(paying.values(), default=0))
        if not public:
            return prices, past, None
        if planned.plan.interval_width is not None:
            past = replace(past, width=planned.plan.interval_width())
        return (prices, past, None) if self._is_gain(question, past) else NO_GAIN

    def _is_gain(self, question: Question, new: Past) -> bool:
        study = self.studies[question.study]
        span = float(study.upper - study.lower)
        former = self.past.get((question.study, new.ask.estimator), [])
        best = min((one.width_today(new.people, span) for one in former), default=None)
        worse = best is not None and (new.width > 1.5 * best if question.new else new.width * 1.05 >= best)
        return question.worse or not (2 * new.left_out > new.people or worse)

    @staticmethod
    def _planned(
        study: StudyDefinition,
        resolved: Resolved,
        there: Mapping[str, Line],
        offers: Mapping[str, int],
        paying: set[str],
        share: int = MICRO,
    ) -> Planned | str:
        """Plans of estimators, which are tested elsewhere, with weights for a share."""
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
        secret = study.relation is Relation.ADD_REMOVE_ONE
        asked = resolved.question(study, people=None if secret else len(there), expected_size=None)
        asked = replace(asked, share=share)
        try:
            if resolved.estimator == registry.AUTO:
                estimator, plan, asked = registry.choose(groups, asked)
            else:
                estimator = registry.get(resolved.estimator, study.relation, study.noise)
                asked = registry.for_estimator(estimator, asked)
                plan = estimator.plan(groups, asked)
        except NotApplicable:
            return EXHAUSTED if offers.keys() - paying or not there else NOT_APPLICABLE
        return Planned(
            names=list(alike.values()), groups=groups, estimator=estimator, plan=plan, question=asked
        )


def _reports(study: StudyDefinition, lines: Sequence[Line]) -> Reports:
    values = [line.value or 0 for line in lines]
    return Reports(
        mechanism=study.local_mechanism,
        total=sum(values),
        total_squares=sum(value * value for value in values),
    )

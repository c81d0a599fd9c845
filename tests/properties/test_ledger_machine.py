"""The whole ledger against a plain model: any order of events, any crash, any pair at once.

`DITHER_TEST_MACHINE_EXAMPLES=2000` runs that many new random histories; by default a few fixed ones.
"""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, TypeVar

import pytest
from dither.device.gaussian import micro_mu2
from dither.device.randomizers import randomizer
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from app.core.contribution import ANY_EPSILON, Offer
from app.core.epsilon import MICRO
from app.core.errors import ServiceError
from app.core.grid import GRID_SIZE
from app.core.records import Statement
from app.core.release import StoredRelease
from app.core.study import Currency, LocalMechanism, Relation, Study, Trust
from app.services import Services
from app.services.statistics.questions import Ask, resolve
from tests.properties import ledger_model as model
from tests.properties.ledger_model import (
    WHOLE_ONLY,
    Batch,
    Contribute,
    Model,
    Operation,
    Question,
    Result,
    SetBudget,
    Withdraw,
)
from tests.store.faults import Crash, InterceptedDatabase, Interception, crash
from tests.store.workbench import (
    ADMIN,
    KEY,
    LIFETIME_DELTA,
    LIFETIME_EPSILON,
    TOKEN,
    Workbench,
    batch,
    definition,
    key,
    workbench,
)
from tests.support.databases import Server

pytestmark = pytest.mark.long

EXAMPLES = int(os.environ.get("DITHER_TEST_MACHINE_EXAMPLES", "0"))

STUDIES = {
    "first": definition(slug="first", default_share=MICRO // 5),
    **{
        slug: definition(
            slug=slug,
            delta=LIFETIME_DELTA // 10,
            local_mechanism=LocalMechanism.GAUSSIAN,
            default_share=MICRO // 5,
        )
        for slug in ("second", "third")
    },
    **{
        mechanism.value: definition(slug=mechanism.value, local_mechanism=mechanism)
        for mechanism in sorted(WHOLE_ONLY)
    },
    **{
        slug: definition(
            slug=slug, relation=Relation.ADD_REMOVE_ONE, trust=frozenset({Trust.CENTRAL, Trust.PUBLIC})
        )
        for slug in ("secret", "hidden")
    },
}
"""Two of them have Gaussian noise, and share an account in mu^2. In `hidden` noisy numbers choose whom an
answer is about, so the model is told what it charges."""

MEAN_ASKS = (
    Ask(estimator="uniform"),
    Ask(estimator="uniform", share=MICRO // 2),
    Ask(estimator="uniform", share=MICRO // 3),
    Ask(estimator="uniform", epsilon=MICRO // 20),
    Ask(estimator="adpm", share=MICRO // 4),
    Ask(estimator="adpm", share=MICRO * 3 // 4),
    Ask(estimator="threshold", share=MICRO // 4),
    Ask(share=MICRO // 7),
)


def chosen(ask: Ask) -> Ask:
    """A question to the secret study that says whom it is about: then no noisy number chooses them."""
    return replace(ask, least_epsilon=MICRO // 2, expected_size=4)


ASKS = {
    **dict.fromkeys(STUDIES, MEAN_ASKS),
    "hidden": (),
    "secret": tuple(
        chosen(ask)
        for ask in (
            *(Ask(estimator="transformed", share=MICRO // part) for part in (1, 2, 3, 4)),
            Ask(estimator="transformed", epsilon=MICRO // 20),
            Ask(share=MICRO // 5),
            Ask(estimator="hourglass", share=MICRO // 5),
        )
    ),
}

NAMES = ("alice", "bob", "carol", "dave")
EPSILONS = tuple(round(epsilon * MICRO) for epsilon in (0.5, 1, 2, 3.33, 4))

TRANSACTIONS: dict[type[Operation], str] = {
    Contribute: "contribution.accept",
    Batch: "contribution.accept",
    Withdraw: "contribution.withdraw",
    SetBudget: "budget.set",
    Question: "release.publish",
}

HISTOGRAMS, EDGES = ("first", "second"), "0.3,0.6"
"""Studies that are asked for a histogram beside means, and its edges."""

MOMENTS = ("release.seal", "release.fold", "release.cohorts", "release.publish")
"""Transactions before which somebody else may be quicker."""

budgets = st.builds(
    SetBudget, name=st.sampled_from(NAMES), epsilon=st.sampled_from((MICRO, 5 * MICRO, 20 * MICRO))
)


def questions_to(study: str) -> st.SearchStrategy[Operation]:
    """Anything that an analyst may ask of a study."""
    of, asks = st.just(study), st.integers(0, len(ASKS[study]) - 1)
    keys = st.sampled_from(("k0", "k1", "k2"))
    return st.one_of(
        st.builds(Question, study=of, ask=asks, new=st.booleans()),
        st.builds(Question, study=of, ask=asks, new=st.just(True), worse=st.booleans(), fresh=st.booleans()),
        st.builds(
            Question, study=of, ask=st.integers(0, 2), new=st.just(True), key=keys, worse=st.booleans()
        ),
    )


def changes_in(study: str, *, replacing: bool = True) -> st.SearchStrategy[Operation]:
    """Anything that people may do in a study."""
    of, names = st.just(study), st.sampled_from(NAMES)
    tags = (
        (Trust.CENTRAL,)
        if STUDIES[study].hides_people
        else (Trust.CENTRAL, Trust.CENTRAL, Trust.LOCAL, Trust.PUBLIC)
    )
    contributions = partial(
        st.builds,
        Contribute,
        study=of,
        name=names,
        trust=st.sampled_from(tags),
        epsilon=st.sampled_from(EPSILONS),
        value=st.sampled_from((0, GRID_SIZE // 3, GRID_SIZE)),
        explained=st.sampled_from((2 * MICRO, 4 * MICRO, 1_000 * MICRO)),
    )
    records = st.lists(contributions(), min_size=1, max_size=5).map(tuple)
    return st.one_of(
        contributions(replace=st.booleans() if replacing else st.just(False)),
        st.builds(Batch, study=of, records=records),
        st.builds(Withdraw, study=of, name=names),
    )


def anything_in(study: str) -> st.SearchStrategy[Operation]:
    return st.one_of(questions_to(study), changes_in(study), budgets)


studies = st.sampled_from(("first", "second", "secret", *sorted(STUDIES.keys() - {"hidden"})))
operations = studies.flatmap(anything_in) | changes_in("hidden")
encounters = studies.flatmap(lambda study: st.tuples(anything_in(study), anything_in(study)))
"""Two things in one study, so that they meet."""

overtakings = studies.flatmap(lambda study: st.tuples(questions_to(study), anything_in(study)))

RELEASES = """
    SELECT id, body, question, study_id, EXISTS (
        SELECT FROM contribution WHERE contribution.study_id = release.study_id
                                   AND contribution.epoch > release.epoch
    ) AS news
    FROM release ORDER BY number
"""

firsts = st.sampled_from(
    [
        Ask(statistic=statistic, parameters=parameters, share=share)
        for statistic, parameters in (
            ("mean", {}),
            ("median", {}),
            ("histogram", {"edges": EDGES}),
            ("sd", {}),
        )
        for share in (MICRO // 10, MICRO // 3, MICRO)
    ]
)
"""Questions to `hidden` that do not say whom they are about."""

DIES = {"before": Interception(before_commit=crash), "after": Interception(after_commit=crash)}

sharpenings = st.sampled_from(("first", "second")).flatmap(
    lambda study: st.tuples(st.just(study), st.none() | changes_in(study))
)
RISING = ((2, 1), (4, 5), (3, 0))
"""Of `MEAN_ASKS`."""

T = TypeVar("T")
Answer = str | tuple[str, ...] | StoredRelease
"""What the services say: a release for its number in the model."""


class LedgerMachine(RuleBasedStateMachine):
    """Does to the real services and to the model the same things, and compares."""

    server: ClassVar[Server]

    def __init__(self) -> None:
        super().__init__()
        self._database = self.server.database()
        url = self._database.__enter__()
        self._runner = asyncio.Runner()
        self._model = Model(
            studies=STUDIES,
            asks=ASKS,
            lifetime={
                Currency.LAPLACE: LIFETIME_EPSILON,
                Currency.GAUSSIAN: micro_mu2(LIFETIME_EPSILON, LIFETIME_DELTA),
            },
        )
        self._bodies: dict[int, StoredRelease] = {}
        self.counted: Counter[tuple[str, str, int]] = Counter()
        self._times: Counter[tuple[str, str, int]] = Counter()
        self._raised: dict[str, int] = {}
        self._firsts = 0
        self.asked_first = 0
        self._run(self._open(url))

    async def _open(self, url: str) -> None:
        self._first = InterceptedDatabase.open(url, pool_size=3)
        self._open_bench = workbench(url, replicas=2, pool_size=3, databases=[self._first])
        self._bench: Workbench = await self._open_bench.__aenter__()
        self._studies: dict[str, Study] = {
            slug: (await self._bench.services.studies.create(study, ADMIN))[0]
            for slug, study in STUDIES.items()
        }

    def teardown(self) -> None:
        self._run(self._open_bench.__aexit__(None, None, None))
        self._runner.close()
        self._database.__exit__(None, None, None)

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)

    # ------------------------------------------------------------------------------------- doing

    @initialize(epsilons=st.lists(st.sampled_from(EPSILONS), min_size=3, max_size=3))
    def crowd(self, epsilons: list[int]) -> None:
        """Several arrive together: one group commit."""
        arrivals = [
            Contribute(study, name, Trust.CENTRAL, min(epsilon, most), GRID_SIZE // 2)
            for study, most in (
                ("first", 4 * MICRO),
                ("second", 4 * MICRO),
                ("secret", 4 * MICRO),
                ("hidden", MICRO),
            )
            for name, epsilon in zip(NAMES, epsilons, strict=False)
        ]

        async def together() -> list[Answer]:
            return await asyncio.gather(*(self._do(self._bench.services, one) for one in arrivals))

        for arrival, result in zip(arrivals, self._run(together()), strict=True):
            self._agree(self._model.apply(arrival), result)

    @rule(operation=operations)
    def one(self, operation: Operation) -> None:
        """Something happens."""
        result = self._run(self._do(self._bench.services, operation))
        self._agree(self._model.apply(operation), result)

    @rule(
        study=st.sampled_from([slug for slug, study in STUDIES.items() if not study.hides_people]),
        name=st.sampled_from(NAMES),
        epsilons=st.tuples(*[st.sampled_from(EPSILONS)] * 2),
    )
    def comes_back(self, study: str, name: str, epsilons: tuple[int, int]) -> None:
        """Somebody's report comes in a batch, is withdrawn, and another one comes in a batch."""
        first, second = (
            Batch(study, (Contribute(study, name, Trust.LOCAL, epsilon, GRID_SIZE),)) for epsilon in epsilons
        )
        for operation in (first, Withdraw(study, name), second):
            self.one(operation)

    @rule(step=sharpenings, shares=st.sampled_from(RISING))
    def sharpened(self, step: tuple[str, Operation | None], shares: tuple[int, int]) -> None:
        """A question is asked for some share and then for more; people may come or go in between."""
        study, change = step
        less, more = (Question(study, ask, new=True, worse=True) for ask in shares)
        for operation in (less, change, more):
            if operation is not None:
                self.one(operation)

    @rule(
        study=st.sampled_from(HISTOGRAMS),
        share=st.sampled_from((MICRO // 5, MICRO // 2, MICRO)),
        dies=st.sampled_from(("", "", "before", "after")),
    )
    def histogram(self, study: str, share: int, dies: str) -> None:
        """A histogram takes a step, and the process may die by it: who pays, pays once and what they offer.

        The model is told what was charged, and what may be is checked here: weights of people are for other
        tests.
        """
        if dies:
            self._first.interceptions["release.publish"] = replace(DIES[dies])
        answers = []
        try:
            answers.append(self._run(self._ask_histogram(study, share)))
        except Crash:
            assert dies
        finally:
            self._first.interceptions.clear()
        charged = self._run(self._steps_charge(study, share))
        assert not (charged and dies == "before")
        assert not (charged and answers and isinstance(answers[0], str)), "a refusal charges no one"
        # Asked again, by another process: it is the same answer, or the first one.
        answers.append(self._run(self._ask_histogram(study, share, replica=1)))
        renewed = self._run(self._steps_charge(study, share))
        if charged:
            assert not renewed, "a step is charged once"
            assert isinstance(answers[-1], StoredRelease), answers
        if len(answers) == 2 and isinstance(answers[0], StoredRelease):
            assert isinstance(answers[1], StoredRelease)
            assert answers[0].id == answers[1].id

    async def _ask_histogram(self, study: str, share: int, replica: int = 0) -> Answer:
        ask = Ask(statistic="histogram", share=share, parameters={"edges": EDGES})
        try:
            return await self._bench.replicas[replica].shapes.release(
                self._studies[study], ask, None, allow_worse=True
            )
        except ServiceError as refusal:
            return refusal.code

    async def _steps_charge(self, study: str, share: int) -> dict[str, int]:
        """What a step charged each person: all steps together charge what they offer to the largest share."""
        charged = await self._told_of_charges(study)
        most = max(share, self._raised.get(study, 0))
        for name, due in charged.items():
            line = self._model.lines[study, name]
            stay = study, name, line.stay
            self.counted[stay] += due
            self._times[stay] += 1
            # What a noisy sum costs is rounded up; a person is in one more at each charge at most.
            owed = Fraction(line.epsilon * most, MICRO) + self._times[stay]
            assert self.counted[stay] < owed, f"{name} pays more than the share"
        if charged:
            self._raised[study] = most
        return charged

    @rule(
        question=firsts,
        quick=st.none() | changes_in("hidden", replacing=False),
        moment=st.sampled_from(MOMENTS),
        dies=st.sampled_from(("", "", "before", "after")),
    )
    def measured_first(self, question: Ask, quick: Operation | None, moment: str, dies: str) -> None:
        """A question that does not say whom it is about measures first who offers how much, for a part.

        Another process may change something in the middle of it, and the process may die. The levels depend
        on noise, so the model is told what was charged: never more than the share of what a person offers.
        """
        idempotency = key(f"first {self._firsts}", f"{question}")
        self._firsts += 1
        results: list[Answer] = []

        async def ask(services: Services) -> Answer:
            try:
                of = services.answering(self._studies["hidden"], question)
                return await of.release(self._studies["hidden"], question, idempotency)
            except ServiceError as refusal:
                return refusal.code

        async def overtake() -> None:
            if quick is not None and not results:
                results.append(await self._do(self._bench.replicas[1], quick))

        answers: list[Answer] = []
        self._first.interceptions[moment] = Interception(first=overtake)
        if dies:
            self._first.interceptions["release.publish"] = replace(
                DIES[dies], first=overtake if moment == "release.publish" else None
            )
        try:
            answers.append(self._run(ask(self._bench.services)))
        except Crash:
            assert dies
        finally:
            self._first.interceptions.clear()
        self._run(overtake())
        # Who came in the middle may have been asked, and so may who left: what is charged of whom depends on
        # neither result.
        if isinstance(quick, Contribute | Batch):
            self._agree(self._model.apply(quick), results.pop())
        most = self._shares_of_hidden(question)
        charged = self._run(self._told_of_charges("hidden"))
        assert all(due <= most[name] for name, due in charged.items()), (charged, most)
        if results and quick is not None:
            self._agree(self._model.apply(quick), results.pop())
        # A draft that is overtaken comes to no commit: the next one is published, by a process that lives.
        assert not (charged and dies == "before" and not answers)
        assert not (charged and answers and isinstance(answers[0], str)), "a refusal charges no one"
        # Under its key the answer is the same one, from another process, and charges no one again.
        answers.append(self._run(ask(self._bench.replicas[1])))
        most = self._shares_of_hidden(question)
        renewed = self._run(self._told_of_charges("hidden"))
        assert all(due <= most[name] for name, due in renewed.items()), (renewed, most)
        assert not (charged and renewed), "an answer is charged once"
        given = [answer for answer in answers if isinstance(answer, StoredRelease)]
        assert len({answer.body for answer in given}) <= 1
        if charged:
            assert isinstance(answers[-1], StoredRelease), answers
            self.asked_first += "offered" in json.loads(given[-1].body)

    def _shares_of_hidden(self, question: Ask) -> dict[str, int]:
        """The most that each person may pay for a question."""
        assert question.share is not None
        lines = {name: line for (study, name), line in self._model.lines.items() if study == "hidden"}
        return {name: line.epsilon * question.share // MICRO for name, line in lines.items()}

    async def _told_of_charges(self, study: str) -> dict[str, int]:
        """What each person was charged since, which the model is told, after a look whether it may be."""
        charged: dict[str, int] = {}
        for name in NAMES:
            statement = await self._bench.services.budgets.statement(KEY.digest(name))
            spent = {line.study: line.amount_spent for line in statement.studies}
            for of, line in self._model.of(name):
                due = spent[of] - line.spent
                if not due:
                    continue
                assert (of, line.trust, line.live) == (study, Trust.CENTRAL, True), f"{name} pays in {of}"
                assert 0 < due <= line.remaining, f"{name} pays {due} of {line.remaining}"
                line.spent += due
                charged[name] = due
        kept = int(await self._bench.value("SELECT count(*)::int FROM release"))
        assert kept - self._model.releases in ((1,) if charged else (0, 1))
        self._model.releases = kept
        return charged

    @rule(operation=operations)
    def again(self, operation: Operation) -> None:
        """Something happens twice, as when a response is lost and the client tries again elsewhere."""
        for services in self._bench.replicas:
            result = self._run(self._do(services, operation))
            self._agree(self._model.apply(operation), result)

    @rule(operation=operations, when=st.sampled_from(("before", "after")))
    def interrupted(self, operation: Operation, when: str) -> None:
        """The process dies just before or just after a commit; nobody hears of it."""
        name = TRANSACTIONS[type(operation)]
        if isinstance(operation, Contribute) and operation.replace:
            name = "contribution.replace"
        self._first.interceptions[name] = (
            Interception(before_commit=crash) if when == "before" else Interception(after_commit=crash)
        )
        try:
            result = self._run(self._do(self._bench.services, operation))
        except Crash:
            if when == "after":
                self._model.apply(operation)
        else:
            self._agree(self._model.apply(operation), result)
        finally:
            self._first.interceptions.clear()

    @rule(pair=encounters, processes=st.sampled_from((1, 2)))
    def at_once(self, pair: tuple[Operation, Operation], processes: int) -> None:
        """Two things happen at once in one process or two: as if one of them had come first."""
        left, right = pair
        one, other = self._bench.replicas[0], self._bench.replicas[processes - 1]

        async def both() -> Sequence[Answer]:
            return await asyncio.gather(self._do(one, left), self._do(other, right))

        self._agree_in_some_order(left, right, self._run(both()))

    @rule(pair=overtakings, moment=st.sampled_from(MOMENTS))
    def overtaken(self, pair: tuple[Operation, Operation], moment: str) -> None:
        """All of something happens in another process between two transactions of a release."""
        slow, quick = pair
        results: list[Answer] = []

        async def overtake() -> None:
            results.append(await self._do(self._bench.replicas[1], quick))

        async def both() -> Sequence[Answer]:
            self._first.interceptions[moment] = Interception(first=overtake)
            slow_result = await self._do(self._bench.services, slow)
            self._first.interceptions.clear()
            if not results:
                await overtake()
            return slow_result, *results

        self._agree_in_some_order(slow, quick, self._run(both()))

    def _agree_in_some_order(self, left: Operation, right: Operation, results: Sequence[Answer]) -> None:
        for expected, after in possible_orders(self._model, left, right):
            bound = self._matching(expected, results)
            if bound is not None and self._run(self._differences(after, bound)) == []:
                self._model, self._bodies = after, bound
                return
        raise AssertionError(f"no order of {left} and {right} gives {results}")

    async def _do(self, services: Services, operation: Operation) -> Answer:
        try:
            return await self._perform(services, operation)
        except ServiceError as refusal:
            return refusal.code

    async def _perform(self, services: Services, operation: Operation) -> Answer:
        match operation:
            case Contribute():
                study, offer = self._studies[operation.study], offer_of(operation)
                if operation.replace:
                    await services.contributions.replace(study, offer)
                    return model.REPLACED
                accepted = await services.contributions.contribute(study, offer)
                return model.CREATED if accepted.created else model.UNCHANGED
            case Batch(study=slug, records=records):
                document = batch([offer_of(record) for record in records])
                done = await services.contributions.apply_batch(self._studies[slug], document)
                kinds = [done.kinds[code] for code in done.codes]
                return tuple(str(kind.get("code", kind["status"])) for kind in kinds)
            case Withdraw(study=slug, name=name):
                await services.contributions.withdraw(self._studies[slug], KEY.digest(name))
                return model.OK
            case SetBudget(name=name, epsilon=epsilon):
                await services.budgets.set_lifetime(
                    KEY.digest(name), epsilon=epsilon, gaussian=None, reason="test", principal=ADMIN
                )
                return model.OK
            case Question(study=slug, ask=number):
                study, ask = self._studies[slug], ASKS[slug][number]
                if not operation.new:
                    return (await services.releases.current(study, ask)).release
                request = f"{slug} {number} {operation.worse} {operation.fresh}"
                idempotency = key(operation.key, request) if operation.key else None
                return await services.releases.release(
                    study, ask, idempotency, allow_worse=operation.worse, fresh=operation.fresh
                )

    # --------------------------------------------------------------------------------- comparing

    def _agree(self, expected: Result, result: Answer) -> None:
        """One result is the expected one; a release is the one that has this number for good."""
        bound = self._matching([expected], [result])
        assert bound is not None, f"expected {expected}, got {result}"
        self._bodies = bound

    def _matching(
        self, expected: Sequence[Result], results: Sequence[Answer]
    ) -> dict[int, StoredRelease] | None:
        """Which release has which number, if the results are the expected ones."""
        bound = dict(self._bodies)
        for word, result in zip(expected, results, strict=True):
            if isinstance(word, int) and isinstance(result, StoredRelease):
                known = bound.setdefault(word, result)
                if (known.id, known.body) != (result.id, result.body):
                    return None
            elif word != result:
                return None
        return bound if len({release.id for release in bound.values()}) == len(bound) else None

    @invariant()
    def the_ledger_is_the_model(self) -> None:
        """Every balance, every stored answer, and the audit."""
        assert self._run(self._differences(self._model, self._bodies)) == []
        assert self._run(self._bench.findings()) == []

    def united(self) -> int:
        """How many epochs' people have been in another cohort before."""
        return self._run(self._bench.value("SELECT count(*)::int FROM lineage WHERE former <> '{}'"))

    async def _differences(self, expected: Model, bodies: dict[int, StoredRelease]) -> list[str]:
        services = self._bench.services
        found = [
            difference
            for name in NAMES
            for difference in differences(name, expected, await services.budgets.statement(KEY.digest(name)))
        ]
        rows = await self._bench.fetch(RELEASES)
        stored = {row["id"]: bytes(row["body"]) for row in rows}
        if len(stored) != expected.releases:
            found.append(f"{len(stored)} releases, not {expected.releases}")
        found += [
            f"release {number} is not what it was"
            for number, release in bodies.items()
            if stored.get(release.id) != release.body
        ]
        # Which of two answers is the newer one shows later, where they are as good.
        places = {release: place for place, release in enumerate(stored)}
        order = [places[bodies[number].id] for number in sorted(bodies) if bodies[number].id in places]
        if order != sorted(order):
            found.append("releases came in another order")
        latest = {(row["study_id"], bytes(row["question"])): row["id"] for row in rows}
        for (slug, estimator, share, cap), number in expected.latest.items():
            ask = Ask(estimator=estimator, share=share, epsilon=cap)
            ask = chosen(ask) if slug == "secret" else ask
            asked = self._studies[slug].id, resolve(STUDIES[slug], ask).digest
            if number in bodies and latest.get(asked) != bodies[number].id:
                found.append(f"release {number} is not the latest of its question")
        for number, should in expected.said.items():
            if number in bodies and (said := _said(bodies[number])) != should:
                found.append(f"release {number} says {said}, not {should}")
        news = {row["id"]: row["news"] for row in rows}
        for (slug, _), chain in expected.chains.items():
            since = expected.arrivals[slug] > chain.arrivals
            if chain.number in bodies and news[bodies[chain.number].id] != since:
                found.append(f"release {chain.number} came {'after' if since else 'before'} a contribution")
        return found


def _said(release: StoredRelease) -> tuple[int, int, int, int]:
    body = json.loads(release.body)
    share, before = (round(body[name] * MICRO) for name in ("share", "share_before"))
    return body["people"], body["people_left_out"], share, before


def offer_of(contribution: Contribute) -> Offer:
    study = STUDIES[contribution.study]
    asked = 0 if contribution.trust is Trust.PUBLIC else contribution.epsilon
    return Offer(
        subject=KEY.digest(contribution.name),
        sender=TOKEN,
        trust=contribution.trust,
        asked=asked,
        epsilon=study.amount(asked) if asked else 0,
        value=contribution.value,
        bounded=contribution.trust is Trust.LOCAL and randomizer(study.local_mechanism).is_bounded,
        drawn_at_most=study.amount(contribution.explained)
        if contribution.trust is Trust.LOCAL
        else ANY_EPSILON,
        currency=study.noise,
    )


def possible_orders(before: Model, left: Operation, right: Operation) -> Iterator[tuple[list[Result], Model]]:
    """What comes of two things at once, in the order (left, right), and the model after it."""
    for first, second, turned in ((left, right, False), (right, left, True)):
        for began in (None, before):
            after = deepcopy(before)
            expected = [after.apply(first), after.apply(second, began=began)]
            yield expected[::-1] if turned else expected, after
    # Somebody whose value is being replaced is between two epochs: a release may miss them.
    for change, question, turned in ((left, right, False), (right, left, True)):
        if not (isinstance(change, Contribute) and change.replace and isinstance(question, Question)):
            continue
        if change.study == question.study:
            after = deepcopy(before)
            expected = [after.apply(question, away=change.name), after.apply(change)]
            yield expected if turned else expected[::-1], after


def differences(name: str, expected: Model, statement: Statement) -> Iterator[str]:
    """How somebody's statement differs from the model."""
    account = statement.account
    lines = {
        line.study: (line.live, line.trust, line.amount, line.amount_spent) for line in statement.studies
    }
    should = {
        study: (line.live, line.trust.value, line.epsilon, line.spent) for study, line in expected.of(name)
    }
    if lines != should:
        yield f"{name} holds {lines}, not {should}"
    assert account.gaussian is not None
    for currency, balance in (
        (Currency.LAPLACE, account.epsilon),
        (Currency.GAUSSIAN, account.gaussian.mu2),
    ):
        should_be = (
            expected.budget(name, currency),
            expected.reserved(name, currency),
            expected.spent(name, currency),
        )
        if (balance.total, balance.reserved, balance.spent) != should_be:
            yield f"{name} has {balance} in {currency}, not {should_be}"
        if not balance.spent <= balance.reserved <= balance.total:
            yield f"{name} has overspent in {currency}: {balance}"


def test_the_ledger_does_what_the_plain_model_does(postgres_server: Server) -> None:
    class OnThisServer(LedgerMachine):
        server = postgres_server

    run_state_machine_as_test(
        OnThisServer,
        settings=settings(
            max_examples=EXAMPLES or 20,
            stateful_step_count=25,
            derandomize=not EXAMPLES,
            database=None,
            deadline=None,
            print_blob=False,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_cohorts_that_become_one_are_what_the_plain_model_says(postgres_server: Server) -> None:
    """Random histories hardly ever spend all of several epochs that offer the same: here these go first."""

    class OnThisServer(LedgerMachine):
        server = postgres_server

    state, ask = OnThisServer(), Question("secret", 0, new=True)
    try:
        state.crowd([MICRO] * 3)
        dave, carol = (
            Contribute("secret", name, Trust.CENTRAL, epsilon, GRID_SIZE // 2)
            for name, epsilon in (("dave", MICRO), ("carol", 3 * MICRO))
        )
        for operation in (ask, dave, ask, Withdraw("secret", "carol"), carol, ask):
            state.one(operation)
            state.the_ledger_is_the_model()
        assert state.united() == 2
        state.overtaken((ask, Withdraw("secret", "alice")), "release.publish")
        state.at_once((Withdraw("secret", "dave"), ask), 2)
        state.the_ledger_is_the_model()
    finally:
        state.teardown()


def test_the_model_knows_which_of_two_answers_that_met_is_the_newer_one(postgres_server: Server) -> None:
    """Either order explains both, and only one of them what is read later."""

    class OnThisServer(LedgerMachine):
        server = postgres_server

    state = OnThisServer()
    slow, quick = (Question("second", ask, new=True, fresh=True, worse=True) for ask in (0, 3))
    try:
        state.crowd([MICRO // 2] * 3)
        state.overtaken((slow, quick), "release.publish")
        state.one(Question("second", 0, new=False))
        state.the_ledger_is_the_model()
    finally:
        state.teardown()


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_smaller_step_that_a_larger_one_overtakes_is_answered_by_it(
    postgres_server: Server, moment: str
) -> None:
    """Random histories hardly ever have both where two first answers of a question meet."""

    class OnThisServer(LedgerMachine):
        server = postgres_server

    state = OnThisServer()
    less, more = (Question("piecewise", ask, new=ask == 1, key="k1" if ask == 1 else None) for ask in (1, 0))
    try:
        for name in NAMES[:3]:
            state.one(Contribute("piecewise", name, Trust.CENTRAL, 4 * MICRO, GRID_SIZE // 2))
        state.overtaken((less, more), moment)
        state.the_ledger_is_the_model()
    finally:
        state.teardown()


@pytest.mark.parametrize("study", HISTOGRAMS)
def test_steps_of_a_histogram_charge_the_difference_once_where_processes_die(
    postgres_server: Server, study: str
) -> None:
    """The rule that random histories have among others, where all that it looks for happens."""

    class OnThisServer(LedgerMachine):
        server = postgres_server

    state = OnThisServer()
    try:
        state.crowd([MICRO, 2 * MICRO, 4 * MICRO])
        dave = Contribute(study, "dave", Trust.CENTRAL, MICRO, GRID_SIZE)
        paying = []
        for change, share, dies in (
            (None, MICRO // 5, ""),
            (None, MICRO // 5, ""),
            (None, MICRO // 2, "before"),
            (dave, MICRO // 2, "after"),
            (Withdraw(study, "alice"), MICRO, "after"),
            (Question(study, 0, new=True, worse=True), MICRO, ""),
        ):
            if change is not None:
                state.one(change)
            before = Counter(state.counted)
            state.histogram(study, share, dies)
            state.the_ledger_is_the_model()
            paying.append({name for _, name, _ in state.counted - before})
        three = {"alice", "bob", "carol"}
        assert paying == [three, set(), three, {"dave"}, {"bob", "carol", "dave"}, set()]
    finally:
        state.teardown()


def test_questions_that_measure_first_who_offers_how_much_charge_once(postgres_server: Server) -> None:
    """The rule that random histories have among others, where people leave, come, and processes die in it."""

    class OnThisServer(LedgerMachine):
        server = postgres_server

    state = OnThisServer()
    mean, median = (
        Ask(statistic=statistic, parameters={}, share=MICRO // 10) for statistic in ("mean", "median")
    )
    try:
        state.crowd([MICRO, 2 * MICRO, 4 * MICRO])
        dave = Contribute("hidden", "dave", Trust.CENTRAL, 4 * MICRO, GRID_SIZE)
        for question, quick, moment, dies in (
            (mean, Withdraw("hidden", "alice"), "release.publish", "before"),
            (mean, None, "release.seal", ""),
            (median, dave, "release.seal", "before"),
            (median, Withdraw("hidden", "dave"), "release.publish", "after"),
            (mean, dave, "release.cohorts", "after"),
            (mean, Withdraw("hidden", "bob"), "release.fold", ""),
        ):
            state.measured_first(question, quick, moment, dies)
            state.the_ledger_is_the_model()
        assert state.asked_first >= 1
    finally:
        state.teardown()

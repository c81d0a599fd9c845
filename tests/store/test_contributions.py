"""What becomes of a contribution over its life: stored, replaced, withdrawn, back again."""

import itertools
import math
from collections.abc import Awaitable, Callable
from dataclasses import replace
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any

import pytest
from dither.device.gaussian import gaussian_sigma, micro_mu2
from dither.device.randomizers import LocalMechanism, randomizer

from app.core.contribution import Offer
from app.core.epsilon import MICRO
from app.core.errors import EpsilonBelowSpent, IdempotencyKeyReused, NotFound, ServiceError, StudyClosed
from app.core.study import Relation, Study, Trust
from app.services.replies import Idempotency
from app.services.statistics.questions import Ask
from app.store import contributions
from app.store.cohorts import read_profile
from tests.store.workbench import ADMIN, KEY, TOKEN, Workbench, batch, key, of_offers, offer

DELTA = 1_000_000


async def release(bench: Workbench, study: Study, share: float = 1, estimator: str = "uniform") -> None:
    await bench.services.releases.release(study, Ask(estimator=estimator, share=round(share * MICRO)), None)


async def line(bench: Workbench, name: str) -> tuple[bool, int, int]:
    """live, reserved epsilon and spent of somebody's only study."""
    (only,) = (await bench.services.budgets.statement(KEY.digest(name))).studies
    return only.live, only.epsilon, only.spent


async def test_withdrawing_before_any_release_frees_everything(bench: Workbench):
    study = await bench.study()
    await bench.services.contributions.contribute(study, offer("alice", epsilon=3))
    await bench.services.contributions.withdraw(study, KEY.digest("alice"))
    assert await line(bench, "alice") == (False, 0, 0)
    assert await bench.reserved("alice") == 0
    await bench.assert_clean()


async def test_withdrawing_frees_what_was_not_spent_and_deletes_the_value(bench: Workbench):
    study = await bench.study()
    await bench.services.contributions.contribute(study, offer("alice", epsilon=4))
    await bench.services.contributions.contribute(study, offer("bob", epsilon=4, value=1))
    await release(bench, study, 0.25)
    await bench.services.contributions.withdraw(study, KEY.digest("alice"))
    assert await line(bench, "alice") == (False, MICRO, MICRO)
    assert await bench.reserved("alice") == MICRO
    query = "SELECT value FROM contribution WHERE subject_id = $1"
    assert await bench.value(query, KEY.digest("alice")) is None
    assert [row["total"] for row in await bench.fetch("SELECT total FROM cohort")] == [1 << 30]
    await bench.assert_clean()


async def test_withdrawing_twice_is_no_error_and_frees_nothing_more(bench: Workbench):
    study = await bench.study()
    await bench.services.contributions.contribute(study, offer("alice", epsilon=4))
    await release(bench, study, 0.5)
    for _ in range(2):
        await bench.services.contributions.withdraw(study, KEY.digest("alice"))
        assert await line(bench, "alice") == (False, 2 * MICRO, 2 * MICRO)
    await bench.assert_clean()


async def test_somebody_who_comes_back_inherits_what_was_spent(bench: Workbench):
    study = await bench.study()
    await bench.services.contributions.contribute(study, offer("alice", epsilon=4))
    await release(bench, study, 0.5)
    await bench.services.contributions.withdraw(study, KEY.digest("alice"))
    with pytest.raises(EpsilonBelowSpent):
        await bench.services.contributions.contribute(study, offer("alice", epsilon=1.99))
    await bench.services.contributions.contribute(study, offer("alice", epsilon=3))
    assert await line(bench, "alice") == (True, 3 * MICRO, 2 * MICRO)
    assert await bench.reserved("alice") == 3 * MICRO
    with pytest.raises(ServiceError) as refusal:
        await release(bench, study, 0.5)
    assert refusal.value.code == "budget_exhausted", "1.5 do not fit beside the 2 that were spent"
    await release(bench, study, 0.25)
    assert await line(bench, "alice") == (True, 3 * MICRO, 2_750_000)
    await bench.assert_clean()


async def test_somebody_whose_value_came_and_went_meanwhile_inherits_what_that_spent(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
):
    study, people, read = await bench.study(), bench.services.contributions, contributions.READ_PEOPLE
    alice = KEY.digest("alice")

    async def come_and_go(share: float) -> None:
        await people.contribute(study, offer("alice", epsilon=4))
        await release(bench, study, share)
        await people.withdraw(study, alice)

    await come_and_go(0.25)
    stale = await bench.services.database.run_tx(
        "test", lambda c: read.all(c, study_id=study.id, subjects=[alice])
    )
    await come_and_go(0.5)
    looked: list[object] = []

    async def first_stale(connection: Any, **parameters: Any) -> Any:
        looked.append(connection)
        return stale if len(looked) == 1 else await read.all(connection, **parameters)

    monkeypatch.setattr(contributions, "READ_PEOPLE", SimpleNamespace(all=first_stale))
    await people.contribute(study, offer("alice", epsilon=4))
    spent = (await line(bench, "alice"))[2]
    assert stale[0].holding is not None
    assert spent > stale[0].holding.epsilon == MICRO
    assert len(looked) == 2
    assert await bench.reserved("alice") == 4 * MICRO
    await bench.assert_clean()


async def test_replacing_keeps_what_was_spent_and_moves_the_reservation(bench: Workbench):
    study = await bench.study()
    await bench.services.contributions.contribute(study, offer("alice", epsilon=4))
    await release(bench, study, 0.5)
    with pytest.raises(EpsilonBelowSpent):
        await bench.services.contributions.replace(study, offer("alice", epsilon=1.99, value=0))
    assert await line(bench, "alice") == (True, 4 * MICRO, 2 * MICRO), "a refusal changes nothing"
    await bench.services.contributions.replace(study, offer("alice", epsilon=2, value=0))
    assert await line(bench, "alice") == (True, 2 * MICRO, 2 * MICRO)
    assert await bench.reserved("alice") == 2 * MICRO
    await bench.assert_clean()


async def test_a_local_report_spends_everything_when_it_arrives(bench: Workbench):
    study = await bench.study()
    local = offer("alice", epsilon=2, value=-3, trust=Trust.LOCAL)
    await bench.services.contributions.contribute(study, local)
    assert await line(bench, "alice") == (True, 2 * MICRO, 2 * MICRO)
    await bench.services.contributions.withdraw(study, local.subject)
    assert await bench.reserved("alice") == 2 * MICRO
    for again in (local, offer("alice", epsilon=1, trust=Trust.LOCAL)):
        with pytest.raises(EpsilonBelowSpent):
            await bench.services.contributions.contribute(study, again)
    await bench.services.contributions.contribute(study, offer("alice", epsilon=2))
    assert await line(bench, "alice") == (True, 2 * MICRO, 2 * MICRO)
    await bench.assert_clean()


async def test_a_folded_local_report_leaves_its_cohort_with_its_square(bench: Workbench):
    study = await bench.study()
    for name, value in (("alice", -3.5), ("bob", 1.25), ("carol", 0.5)):
        await bench.services.contributions.contribute(study, offer(name, value=value, trust=Trust.LOCAL))
    await bench.fold(study)
    await bench.services.contributions.withdraw(study, KEY.digest("alice"))
    (cohort,) = await bench.fetch("SELECT count, total, total_squares FROM cohort")
    unit = 1 << 30
    assert cohort == {
        "count": 2,
        "total": unit * 7 // 4,
        "total_squares": (unit * 5 // 4) ** 2 + (unit // 2) ** 2,
    }
    await bench.assert_clean()


def counted(mechanism: LocalMechanism, report: int, reports: int) -> int:
    """What a report adds to the sum of a study of so many reports."""
    if mechanism is LocalMechanism.LAPLACE:
        reach = math.ceil(2**30 * math.log(100 * reports))
    else:
        reach = math.ceil(gaussian_sigma(micro_mu2(MICRO, DELTA)) * NormalDist().inv_cdf(1 - 0.005 / reports))
    return max(-reach, min(report, 2**30 + reach))


@pytest.mark.parametrize("mechanism", [LocalMechanism.LAPLACE, LocalMechanism.GAUSSIAN])
async def test_a_lying_report_counts_as_the_outermost_that_counts_and_leaves_as_it_came(
    bench: Workbench, mechanism: LocalMechanism
):
    delta = DELTA if mechanism is LocalMechanism.GAUSSIAN else 0
    study = await bench.study(delta=delta, local_mechanism=mechanism)
    far = -randomizer(mechanism, delta).range(MICRO).lower

    async def send(name: str, report: int) -> None:
        local = replace(
            offer(name, trust=Trust.LOCAL),
            value=report,
            epsilon=study.definition.amount(MICRO),
            currency=study.definition.noise,
        )
        await bench.services.contributions.contribute(study, local)

    async def sums() -> list[tuple[int, int, int]]:
        rows = await bench.fetch("SELECT count, total, total_squares FROM cohort ORDER BY id")
        return [(row["count"], int(row["total"]), int(row["total_squares"])) for row in rows]

    first = {"liar": 2**30 + far, "other": -far, "ann": 5, "bob": 2**29}
    for name, report in first.items():
        await send(name, report)
    seen = await bench.services.database.run_tx("test", lambda c: read_profile(c, study.id))
    await bench.fold(study)
    within = {name: counted(mechanism, report, 4) for name, report in first.items()}
    assert within["liar"] < 2**30 + far
    expected = [(4, sum(within.values()), sum(r * r for r in within.values()))]
    assert await sums() == expected == [(c.count, c.total, c.total_squares) for c in seen]
    await bench.assert_clean()

    # The reach grows with the reports of the study, for later ones only; who leaves takes what was added.
    second = {"eve": -far} | {f"p{number}": 7 for number in range(20)}
    for name, report in second.items():
        await send(name, report)
    await bench.services.contributions.withdraw(study, KEY.digest("liar"))
    await bench.fold(study)
    del within["liar"]
    later = [counted(mechanism, report, 24) for report in second.values()]
    assert later[0] < within["other"]
    reports = [*within.values(), *later]
    assert await sums() == [(24, sum(reports), sum(r * r for r in reports))]
    await bench.assert_clean()
    for name in ("other", "eve"):
        await bench.services.contributions.withdraw(study, KEY.digest(name))
    assert [total for _, total, _ in await sums()] == [5 + 2**29 + 20 * 7]
    await bench.assert_clean()


async def test_a_bounded_report_counts_as_it_is(bench: Workbench):
    study = await bench.study(local_mechanism=LocalMechanism.HYBRID)
    far = randomizer("hybrid").range(MICRO).upper
    await bench.services.contributions.contribute(study, replace(offer("ann", trust=Trust.LOCAL), value=far))
    await bench.fold(study)
    assert await bench.fetch("SELECT total::bigint, reach FROM cohort") == [{"total": far, "reach": None}]


@pytest.mark.parametrize("trust", [Trust.CENTRAL, Trust.PUBLIC])
async def test_a_cohort_keeps_the_squares_about_the_middle_of_those_who_are_in_it(
    bench: Workbench, trust: Trust
):
    study = await bench.study()
    for name, value in (("alice", 0), ("bob", 0.75), ("carol", 1), ("dora", 0.5)):
        await bench.services.contributions.contribute(study, offer(name, value=value, trust=trust))
    fresh = await bench.services.database.run_tx("test", lambda c: read_profile(c, study.id))
    await bench.fold(study)
    assert [cohort.total_squares for cohort in fresh] == [(4 + 1 + 4 + 0) << 26]
    await bench.services.contributions.withdraw(study, KEY.digest("alice"))
    await bench.services.contributions.replace(study, offer("bob", value=0.25, trust=trust))
    await bench.assert_clean()
    await bench.fold(study)
    rows = await bench.fetch("SELECT count::int, total_squares::bigint FROM cohort ORDER BY id")
    # Bob's new value joins the cohort, which has paid for nothing; public people join none of before.
    assert [(row["count"], row["total_squares"]) for row in rows] == (
        [(3, 5 << 26)] if trust is Trust.CENTRAL else [(2, 4 << 26), (1, 1 << 26)]
    )
    await bench.assert_clean()


@pytest.mark.long
async def test_any_kind_of_value_may_replace_any_other(bench: Workbench):
    for before, after, folded in itertools.product(Trust, Trust, (False, True)):
        study, name = await bench.study(), f"{before} {after} {folded}"
        await bench.services.contributions.contribute(study, offer(name, epsilon=2, trust=before))
        if folded:
            await bench.fold(study)
        await bench.services.contributions.replace(study, offer(name, epsilon=3, value=0.25, trust=after))
        spent = 2 * MICRO if before is Trust.LOCAL else 0
        reserved = spent if after is Trust.PUBLIC else 3 * MICRO
        expected = (True, reserved, reserved if after is Trust.LOCAL else spent)
        assert await line(bench, name) == expected, name
        assert await bench.reserved(name) == reserved, name
        await bench.fold(study)
        assert await bench.members(study) == 1, name
    await bench.assert_clean()


async def test_what_is_not_there_cannot_be_replaced_or_withdrawn(bench: Workbench):
    study = await bench.study()
    with pytest.raises(NotFound):
        await bench.services.contributions.withdraw(study, KEY.digest("alice"))
    with pytest.raises(NotFound):
        await bench.services.contributions.replace(study, offer("alice"))
    await bench.services.contributions.contribute(study, offer("alice"))
    await bench.services.contributions.withdraw(study, KEY.digest("alice"))
    with pytest.raises(NotFound):
        await bench.services.contributions.replace(study, offer("alice"))
    await bench.assert_clean()


Change = Callable[[Workbench, Study, Offer], Awaitable[object]]

CHANGES: dict[str, Change] = {
    "single": lambda bench, study, new: bench.services.contributions.contribute(study, new),
    "with a key": lambda bench, study, new: bench.services.contributions.contribute_once(
        study, new, key("k")
    ),
    "batch": lambda bench, study, new: bench.services.contributions.apply_batch(study, batch([new])),
    "replacement": lambda bench, study, new: bench.services.contributions.replace(
        study, replace(new, subject=KEY.digest("alice"))
    ),
}


@pytest.mark.parametrize("change", list(CHANGES))
async def test_a_closed_study_takes_nothing_on_any_way_but_lets_people_leave(bench: Workbench, change: str):
    study = await bench.study()
    await bench.services.contributions.contribute(study, offer("alice"))
    await bench.services.studies.close(study.definition.slug, ADMIN)
    with pytest.raises(StudyClosed):
        await CHANGES[change](bench, study, offer("bob", value=0.25))
    assert await bench.value("SELECT count(*)::int FROM contribution") == 1
    await release(bench, study, 0.5)
    await bench.services.contributions.withdraw(study, KEY.digest("alice"))
    assert await bench.reserved("alice") == MICRO // 2
    await bench.assert_clean()


def own_key(name: str, about: str, request: str = "the request") -> Idempotency:
    """A key of a request about a person."""
    return Idempotency.about(KEY.digest(about), KEY, TOKEN, name, request.encode())


async def test_the_reply_to_a_key_is_stored_with_the_contribution(bench: Workbench):
    study = await bench.study()
    contributions = bench.services.contributions
    first = await contributions.contribute_once(study, offer("alice"), own_key("k", "alice"))
    assert await contributions.contribute_once(study, offer("alice"), own_key("k", "alice")) == first
    assert first.created
    with pytest.raises(IdempotencyKeyReused):
        await contributions.contribute_once(study, offer("bob"), own_key("k", "bob", "another request"))
    assert await bench.reserved("bob") == 0
    await bench.assert_clean()


async def test_a_withdrawal_uses_up_the_keys_of_its_person_and_study_and_leaves_nothing_of_them(
    bench: Workbench,
):
    study, other = await bench.study(), await bench.study()
    contributions = bench.services.contributions
    for where, name in ((study, "alice"), (other, "alice"), (study, "bob")):
        once = own_key(f"{name} {where.id}", name)
        await contributions.contribute_once(where, offer(name, epsilon=1), once)
    await contributions.withdraw(study, KEY.digest("alice"))
    left = await bench.fetch("SELECT request, body, subject_id FROM idempotency WHERE status = 409")
    assert left == [{"request": b"", "body": b"", "subject_id": None}]
    with pytest.raises(IdempotencyKeyReused, match="withdrawn"):
        await contributions.contribute_once(study, offer("alice"), own_key(f"alice {study.id}", "alice"))
    assert await bench.reserved("alice") == MICRO, "a retry does not contribute again"
    for where, name in ((other, "alice"), (study, "bob")):
        once = own_key(f"{name} {where.id}", name)
        assert (await contributions.contribute_once(where, offer(name, epsilon=1), once)).created
    # A new request with a key of its own is a new contribution.
    again = await contributions.contribute_once(study, offer("alice"), own_key("another", "alice"))
    assert again.created
    await bench.assert_clean()


async def test_keys_expire_and_are_purged(bench: Workbench):
    study = await bench.study()
    contributions, once = bench.services.contributions, own_key("k", "alice")
    for name in ("k", "kept"):
        await contributions.contribute_once(study, offer("alice"), own_key(name, "alice"))
    age = "UPDATE idempotency SET created_at = created_at - interval '{}' WHERE key = '\\x{}'"
    await bench.execute(age.format("30 days 1 second", once.key.hex()))
    await bench.execute(age.format("29 days 23 hours", own_key("kept", "alice").key.hex()))
    # It has expired, whether it was purged or not: another request may use it.
    await contributions.contribute_once(study, offer("bob"), own_key("k", "bob", "another request"))
    assert await bench.reserved("bob") == MICRO
    await bench.execute(age.format("31 days", once.key.hex()))
    await bench.services.replies.purge()
    keys = await bench.fetch("SELECT key FROM idempotency")
    assert [row["key"] for row in keys] == [own_key("kept", "alice").key]


async def test_in_an_add_remove_study_everybody_takes_part_on_their_own(bench: Workbench):
    study = await bench.study(
        relation=Relation.ADD_REMOVE_ONE, trust=frozenset({Trust.CENTRAL, Trust.PUBLIC})
    )
    # Where a size of one is stated, what people weigh goes up to 5.12: what each offers is what they pay.
    ask = of_offers(Relation.ADD_REMOVE_ONE, Ask(estimator="transformed", expected_size=1))

    async def spent_after_an_answer(*names: str) -> list[float]:
        await bench.services.releases.release(study, ask, None)
        return [(await line(bench, name))[2] / MICRO for name in names]

    await spent_after_an_answer()
    await bench.services.contributions.contribute(study, offer("alice", epsilon=2))
    await bench.services.contributions.contribute(study, offer("bob", epsilon=5))
    await bench.services.contributions.contribute(study, offer("dave", epsilon=0.9))
    assert await spent_after_an_answer("alice", "bob", "dave") == [2, 5, 0]
    await bench.services.contributions.contribute(study, offer("carol", epsilon=1))
    assert await spent_after_an_answer("alice", "bob", "carol", "dave") == [2, 5, 1, 0]
    await bench.assert_clean()

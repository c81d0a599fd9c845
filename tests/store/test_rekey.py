"""Changing the subject key keeps every balance, loses nobody unasked, and shuts the old key out."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy.exc import DBAPIError

from app.core.clock import SystemClock
from app.core.epsilon import MICRO
from app.core.errors import Conflict, InternalFault, NotFound, Unauthenticated, Unavailable
from app.core.invitation import InvitationKind, InvitationState
from app.core.principal import Principal, Role
from app.core.study import Trust
from app.services import Services
from app.services.admin.rekeying import Rekeyed, rekey_subjects
from app.services.statistics.questions import Ask
from app.services.subjects import SubjectKey
from app.store import rekey
from app.store.database import Database
from app.store.sql import Sql
from app.store.tables import metadata
from tests.store.workbench import KEY, LIFETIME_EPSILON, Workbench, offer, workbench

NEW = SubjectKey(bytes(range(1, 33)))

PEOPLE = [f"crowd-{number}" for number in range(50)]


@pytest.fixture
async def bench(database_url: str) -> AsyncIterator[Workbench]:
    async with workbench(database_url) as bench:
        await bench.services.check_subject_key()
        yield bench


async def run(bench: Workbench, ids: list[str], **options: object) -> Rekeyed:
    arguments = {"old": KEY, "new": NEW, **options}
    return await rekey_subjects(bench.services.database, SystemClock(), ids, **arguments)  # type: ignore[arg-type]  # any of them


def services(database: Database, key: SubjectKey) -> Services:
    return Services.build(database, SystemClock(), key, lifetime_epsilon=LIFETIME_EPSILON)


async def principal(bench: Workbench) -> Principal:
    _, secret = await bench.services.tokens.create(name="desk", roles={Role.ADMIN}, actor="test")
    return await bench.services.tokens.authenticate(secret)


async def balances(bench: Workbench) -> list[tuple[object, ...]]:
    query = """SELECT s.budget, s.reserved, c.study_id, c.epsilon, c.carried, c.value, c.trust::text, c.epoch
               FROM subject s LEFT JOIN contribution c ON c.subject_id = s.id
               ORDER BY 3, 4, 5, 6, 7, 8, 1, 2"""
    return [tuple(row.values()) for row in await bench.fetch(query)]


async def test_everybody_keeps_what_is_theirs(bench: Workbench) -> None:
    study, other = await bench.study(), await bench.study()
    await bench.crowd(study, 50)
    contributions = bench.services.contributions
    await contributions.contribute(other, offer("crowd-7", epsilon=2, value=0.25, trust=Trust.LOCAL))
    await bench.services.releases.release(study, Ask(estimator="uniform", share=100_000), None)
    await contributions.withdraw(study, KEY.digest("crowd-3"))
    _, secret = await bench.services.tokens.create(
        name="phone", roles={Role.CONTRIBUTE}, subject=KEY.digest("crowd-7"), actor="test"
    )
    before = await balances(bench)
    statement = await bench.services.budgets.statement(KEY.digest("crowd-7"))

    done = await run(bench, [*PEOPLE, *PEOPLE[:5], "somebody who never came"])
    assert done == Rekeyed(done=True, moved=50, left=0)
    assert await balances(bench) == before
    await bench.assert_clean()
    moved = services(bench.services.database, NEW)
    await moved.check_subject_key()
    found = await moved.budgets.statement(NEW.digest("crowd-7"))
    assert (found.account.reserved, found.studies) == (statement.account.reserved, statement.studies)
    assert (await moved.tokens.authenticate(secret)).subject == NEW.digest("crowd-7")
    await moved.contributions.withdraw(study, NEW.digest("crowd-7"))
    assert (await moved.releases.release(study, Ask(estimator="uniform", share=100_000), None)).body
    await bench.assert_clean()
    noted = await bench.fetch("SELECT detail::text FROM audit WHERE action = 'subject.rekey'")
    assert noted == [{"detail": '{"left": 0, "moved": 50}'}]
    assert await run(bench, []) == Rekeyed(done=False, moved=0, left=0)


async def test_nobody_is_lost_unasked(bench: Workbench) -> None:
    study = await bench.study()
    await bench.crowd(study, 50)
    before = await balances(bench)
    with pytest.raises(Conflict, match="10 people"):
        await run(bench, PEOPLE[10:])
    assert await bench.value("SELECT count(*) FROM audit WHERE action = 'subject.rekey'") == 0
    await bench.services.check_subject_key()
    assert await run(bench, PEOPLE[10:], leave_unknown=True) == Rekeyed(done=True, moved=40, left=10)
    assert await balances(bench) == before
    await bench.assert_clean()


async def test_a_person_known_by_a_token_only_counts(bench: Workbench) -> None:
    await bench.services.tokens.create(
        name="phone", roles={Role.CONTRIBUTE}, subject=KEY.digest("ada"), actor="test"
    )
    with pytest.raises(Conflict, match="1 person"):
        await run(bench, [])


async def test_ways_to_a_persons_page_end_and_hold_nobody_up(bench: Workbench) -> None:
    """A link may be for somebody who never came, and one that has expired may still lie there."""
    await bench.crowd(await bench.study(), 50)
    logins, admin = bench.services.logins, await principal(bench)
    for name in ("crowd-1", "expired", "somebody who never came"):
        await logins.make_link(KEY.digest(name), admin)
    link, _ = await logins.make_link(KEY.digest("opened"), admin)
    page = await logins.open_link(link)
    bearer, _ = await logins.log_in(admin)
    expired = KEY.digest("expired").hex()
    await bench.execute(f"UPDATE link SET expires_at = created_at WHERE subject_id = '\\x{expired}'")

    assert await run(bench, PEOPLE) == Rekeyed(done=True, moved=50, left=0)
    assert await bench.value("SELECT count(*) FROM link") == 0
    moved = services(bench.services.database, NEW)
    with pytest.raises(Unauthenticated):
        await moved.logins.find(page)
    assert (await moved.logins.find(bearer)).subject is None


async def test_what_is_noted_of_people_goes_by_the_new_digest(bench: Workbench) -> None:
    await bench.crowd(await bench.study(), 50)
    admin = await principal(bench)
    await bench.services.budgets.set_lifetime(
        KEY.digest("crowd-1"), epsilon=2 * MICRO, gaussian=None, reason="asked", principal=admin
    )
    await bench.services.logins.make_link(KEY.digest("crowd-2"), admin)
    await bench.services.figures.make()
    assert await bench.value("SELECT count(*) FROM figure") > 0
    others = "SELECT id, target FROM audit WHERE action NOT IN ('budget.set', 'link.create', 'subject.rekey')"
    before = await bench.fetch(others)

    await run(bench, PEOPLE)
    noted = await bench.fetch(
        "SELECT action, target FROM audit WHERE action IN ('budget.set', 'link.create') ORDER BY id"
    )
    assert noted == [
        {"action": "budget.set", "target": NEW.digest("crowd-1").hex()},
        {"action": "link.create", "target": NEW.digest("crowd-2").hex()},
    ]
    assert await bench.fetch(others) == before
    assert await bench.value("SELECT count(*) FROM figure") == 0


async def test_the_wrong_old_key_changes_nothing(bench: Workbench) -> None:
    await bench.crowd(await bench.study(), 5)
    with pytest.raises(InternalFault):
        await run(bench, PEOPLE, old=SubjectKey(bytes(32)))
    await bench.services.check_subject_key()


async def test_a_running_service_stands_against_it(bench: Workbench, database_url: str) -> None:
    database = Database.open(database_url, pool_size=1, subject_key=KEY.fingerprint())
    try:
        await database.ping()
        with pytest.raises(Conflict, match="running"):
            await run(bench, [])
    finally:
        await database.close()


async def test_a_process_with_the_old_key_makes_nobody(bench: Workbench, database_url: str) -> None:
    """One that held no connection at that moment would take everybody for new."""
    study = await bench.study()
    await bench.crowd(study, 5)
    database = Database.open(database_url, pool_size=1, subject_key=KEY.fingerprint())
    late = services(database, KEY)
    try:
        await run(bench, PEOPLE)
        with pytest.raises(DBAPIError, match="another subject key"):
            await late.contributions.contribute(study, offer("crowd-1"))
        with pytest.raises(NotFound):
            await late.contributions.withdraw(study, KEY.digest("crowd-1"))
        with pytest.raises(Unavailable):
            await late.require_subject_key()
        assert await bench.value("SELECT count(*) FROM subject") == 5
    finally:
        await database.close()
    renewed = Database.open(database_url, pool_size=1, subject_key=NEW.fingerprint())
    try:
        await services(renewed, NEW).contributions.contribute(study, offer("somebody else"))
    finally:
        await renewed.close()


def test_every_table_that_holds_people_is_moved() -> None:
    referring = {
        table.name
        for table in metadata.sorted_tables
        for key in table.foreign_keys
        if key.target_fullname == "subject.id"
    }
    assert {*referring, "token"} <= set(rekey.HOLDERS)
    named = {table.name for table in metadata.sorted_tables if "subject_id" in table.columns}
    assert named == {*rekey.HOLDERS, *rekey.ENDED}


async def test_a_failure_on_the_way_changes_nothing(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.crowd(await bench.study(), 5)
    monkeypatch.setattr(rekey, "SET_KEY", Sql("SELECT length(CAST(:fingerprint AS bytea)) / 0"))
    with pytest.raises(DBAPIError):
        await run(bench, PEOPLE)
    monkeypatch.undo()
    await bench.services.check_subject_key()
    assert (await bench.services.budgets.statement(KEY.digest("crowd-1"))).account.reserved > 0


async def test_people_who_answered_by_a_link_keep_their_receipts(bench: Workbench) -> None:
    """No one has external ids of theirs to bring; links that were not used end."""
    study, admin = await bench.study(), await principal(bench)
    invitations = bench.services.invitations
    receipts = []
    for kind, subjects in (("open", None), ("single", None), ("single", [KEY.digest("ada")])):
        made = await invitations.create(
            study, admin, kind=InvitationKind(kind), name=kind, most=1, subjects=subjects
        )
        (code,) = made.codes
        receipts.append(invitations.receipt(code, "form"))
        link = await invitations.find(code)
        assert await invitations.answer(study, link, code, receipts[-1], offer("anyone", epsilon=2))
    unused = await invitations.create(
        study, admin, kind=InvitationKind.SINGLE, name="", most=1, subjects=[KEY.digest("never came")]
    )
    before = await balances(bench)

    with pytest.raises(Conflict, match="1 person"):
        await run(bench, [])
    assert await run(bench, ["ada"]) == Rekeyed(done=True, moved=1, left=0)
    assert await balances(bench) == before
    await bench.assert_clean()
    moved = services(bench.services.database, NEW)
    for receipt in receipts:
        ticket = await moved.invitations.given(receipt)
        assert (await moved.invitations.held(study, ticket)).live
        await moved.contributions.withdraw(study, ticket.subject)
    assert ticket.subject == NEW.digest("ada")
    for code in (*unused.codes, "unknown"):
        with pytest.raises(NotFound):
            await moved.invitations.find(code)
    page = await moved.invitations.page(study, 10, None)
    assert {moved.invitations.state(one) for one in page.items} == {InvitationState.REVOKED}

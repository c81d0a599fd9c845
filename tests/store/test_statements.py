"""A person's statement is of one moment, whoever writes while it is read."""

from collections.abc import Awaitable, Callable

import pytest

from app.core.epsilon import MICRO
from app.core.records import Statement
from app.core.study import Study, Trust
from app.services.statistics.questions import Ask
from app.store import budgets
from app.store.sql import Connection
from tests.store.workbench import ADMIN, KEY, Workbench, offer, workbench

Write = Callable[[Workbench, Study, Study], Awaitable[object]]

WRITES: dict[str, Write] = {
    "contribute": lambda bench, _, other: bench.replicas[1].contributions.contribute(other, offer("ada")),
    "replace": lambda bench, study, _: bench.replicas[1].contributions.replace(
        study, offer("ada", epsilon=2)
    ),
    "withdraw": lambda bench, study, _: bench.replicas[1].contributions.withdraw(study, KEY.digest("ada")),
    "archive": lambda bench, study, _: bench.replicas[1].studies.archive(
        study.definition.slug, ADMIN, "done"
    ),
    "report": lambda bench, _, other: bench.replicas[1].contributions.contribute(
        other, offer("ada", trust=Trust.LOCAL)
    ),
}


def assert_adds_up(statement: Statement) -> None:
    """What is reserved is what the lines reserve, and what is spent what they spent."""
    account = statement.account
    assert account.reserved == sum(line.amount for line in statement.studies) + sum(
        line.epsilon for line in statement.sessions
    )
    assert account.spent == sum(line.amount_spent for line in statement.studies)
    assert account.spent <= account.reserved <= account.budget


@pytest.mark.parametrize("way", ["read", "set"])
@pytest.mark.parametrize("write", WRITES)
async def test_a_statement_adds_up_while_somebody_writes(
    database_url: str, monkeypatch: pytest.MonkeyPatch, write: str, way: str
) -> None:
    async with workbench(database_url, replicas=2) as bench:
        study, other = await bench.study(), await bench.study()
        await bench.services.contributions.contribute(study, offer("ada"))
        await bench.services.releases.release(study, Ask(share=MICRO // 2), None)
        budget_services = bench.services.budgets
        written = False

        class Holdings:
            """The statement that reads the lines, before which the writer commits, once."""

            @staticmethod
            async def all(connection: Connection, **given: object) -> list[object]:
                nonlocal written
                if not written:
                    written = True
                    await WRITES[write](bench, study, other)
                return list(await read.all(connection, **given))

        read = budgets.READ_HOLDINGS
        monkeypatch.setattr(budgets, "READ_HOLDINGS", Holdings)
        digest = KEY.digest("ada")
        if way == "read":
            assert_adds_up(await budget_services.statement(digest))
        else:
            more = 20 * MICRO
            assert_adds_up(
                await budget_services.set_lifetime(
                    digest, epsilon=more, gaussian=None, reason="more", principal=ADMIN
                )
            )
        assert written
        after = await budget_services.statement(digest)
        assert_adds_up(after)


async def test_a_statement_of_two_moments_is_read_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a distributed database, the coordinator may show a study that its nodes have seen archived."""
    async with workbench(database_url, replicas=2) as bench:
        study, other = await bench.study(), await bench.study()
        digest = KEY.digest("ada")
        await bench.services.contributions.contribute(study, offer("ada"))
        before = list((await bench.services.budgets.statement(digest)).studies)
        await WRITES["archive"](bench, study, other)
        moments = [before]

        class Holdings:
            @staticmethod
            async def all(connection: Connection, **given: object) -> list[object]:
                return list(moments.pop() if moments else await read.all(connection, **given))

        read = budgets.READ_HOLDINGS
        monkeypatch.setattr(budgets, "READ_HOLDINGS", Holdings)
        statement = await bench.services.budgets.statement(digest)
        assert not moments
        assert_adds_up(statement)
        assert statement.studies != tuple(before)

"""Traces of the model, done to the service over HTTP: two processes' worth of it on one database.

A question that the model drafts and publishes later waits, in the service, before the transaction that
publishes it, while the other steps of the trace happen.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import httpx

from app.core.epsilon import MICRO
from tests.api.service import Service
from tests.store.faults import Crash, InterceptedDatabase, Interception, crash

UNIT = 0.25
"""Of an amount of the model [epsilon], and of a share."""

WORKERS = ("w1", "w2")

TRANSACTIONS = {
    "contribute": "contribution.accept",
    "replace": "contribution.replace",
    "withdraw": "contribution.withdraw",
    "budget": "budget.set",
    "raise": "budget.raise",
    "archive": "study.end",
}

PUBLISHED = ("release.publish", "release.stands")

STATUS = {"created": 201, "unchanged": 200, "replaced": 200, "made": 201, "stands": 200, "again": None}
"""What the service says; a replay has the status of the first answer. Other words are codes of problems."""


@dataclass
class Pause:
    """A request that waits before it publishes.

    Attributes:
        reached, go: It is there; it may go on.
        dies: Its process dies instead.
        interception: Of the transaction that it waits before.
    """

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    dies: bool = False
    interception: Interception = field(init=False)

    def __post_init__(self) -> None:
        self.interception = Interception(first=self.wait)

    async def wait(self) -> None:
        self.reached.set()
        await self.go.wait()
        if self.dies:
            raise Crash


@dataclass
class Replay:
    """One trace on the service.

    Attributes:
        services: By the name of a process in the model.
        number: Of the trace: it has studies and people of its own.
        answers: By number in the model, the bytes of each release.
        open: Requests that wait, by process.
    """

    services: dict[str, Service]
    number: int
    answers: dict[int, bytes] = field(default_factory=dict)
    open: dict[str, tuple[Pause, asyncio.Task[httpx.Response]]] = field(default_factory=dict)

    async def run(self, states: list[dict[str, Any]]) -> int:
        """Do all of a trace and compare after every step; returns how many steps there were."""
        start = states[0]["state"]
        for study in start["arrivals"]:
            await self.services["w1"].study(slug=self._name(study), default_share=1)
        for person, account in start["accounts"].items():
            await self._expect(self._budget(person, account["total"]), "ok")
        for (person, study), line in sorted(start["lines"].items(), key=lambda item: item[1]["version"]):
            await self._expect(self._contribute("POST", person, study, line["eps"]), "created")
        try:
            for place, state in enumerate(states):
                try:
                    if place:
                        await self._step(state["last"])
                    await self._compare(state["state"])
                except AssertionError as error:
                    story = "\n".join(told(one["last"]) for one in states[1 : place + 1])
                    raise AssertionError(f"trace {self.number}, step {place}: {error}\n{story}") from error
            await self._compare_shown(states[-1]["state"])
            await self._compare_answers(states[-1]["state"])
        finally:
            for worker in list(self.open):
                await self._end(worker, dies=True)
        return len(states) - 1

    def _name(self, name: str) -> str:
        return f"{name}-{self.number}"

    def _database(self, worker: str) -> InterceptedDatabase:
        database = self.services[worker].api.services.releases._database
        assert isinstance(database, InterceptedDatabase)
        return database

    # ------------------------------------------------------------------------------------- steps

    async def _step(self, event: dict[str, Any]) -> None:
        match event["op"]:
            case "ask":
                await self._ask(event)
            case "publish":
                await self._publish(event)
            case op:
                interceptions = self._database("w1").interceptions
                if not event["heard"]:
                    interceptions[TRANSACTIONS[op]] = (
                        Interception(after_commit=crash)
                        if event["done"]
                        else Interception(before_commit=crash)
                    )
                response = await self._change(op, event)
                died = not event["heard"] and TRANSACTIONS[op] not in interceptions
                interceptions.clear()
                if died and response.status_code == 500:
                    return
                # A refusal has no commit to die at.
                assert not died or event["said"] not in ("created", "replaced"), response.text
                self._check(response, event["said"])

    def _change(self, op: str, event: dict[str, Any]) -> Any:
        person, study, amount = event["p"], event["s"], event["amount"]
        match op:
            case "contribute":
                return self._contribute("POST", person, study, amount)
            case "replace":
                return self._contribute("PUT", person, study, amount)
            case "withdraw":
                path = f"/v1/studies/{self._name(study)}/contributions/{self._name(person)}"
                return self.services["w1"].call("DELETE", path, "contribute")
            case "budget":
                return self._budget(person, amount)
            case "raise":
                document = {"epsilon": amount * UNIT, "at_most": 16 * UNIT, "reason": "the model"}
                return self._call("POST", "/v1/admin/budgets/raise", "admin", document)
            case "archive":
                path = f"/v1/studies/{self._name(study)}/archive"
                return self._call("POST", path, "admin", {"reason": "the model"})
        raise AssertionError(f"the model does {op}")

    def _call(self, method: str, path: str, token: str, document: dict[str, Any]) -> Any:
        return self.services["w1"].call(method, path, token, json=document)

    def _contribute(self, method: str, person: str, study: str, amount: int) -> Any:
        path, subject = f"/v1/studies/{self._name(study)}/contributions", self._name(person)
        document = {"value": 50, "epsilon": amount * UNIT, "trust": "central"}
        if method == "PUT":
            return self._call("PUT", f"{path}/{subject}", "contribute", document)
        return self._call("POST", path, "contribute", {"subject": subject, **document})

    def _budget(self, person: str, amount: int) -> Any:
        path = f"/v1/admin/subjects/{self._name(person)}/budget"
        return self._call("PUT", path, "admin", {"epsilon": amount * UNIT, "reason": "the model"})

    async def _ask(self, event: dict[str, Any]) -> None:
        worker, pause = event["w"], Pause()
        document = {
            "statistic": "mean",
            "estimator": "uniform",
            "share": event["amount"] * UNIT,
            "fresh": event["fresh"],
            "allow_worse": True,
        }
        headers = {"Idempotency-Key": self._name(event["key"])} if event["key"] else {}
        service, interceptions = self.services[worker], self._database(worker).interceptions
        path = f"/v1/studies/{self._name(event['s'])}/releases"
        interceptions["release.publish"] = pause.interception
        # Each process has the token of the first: keys belong to a token.
        task = asyncio.create_task(
            service.call("POST", path, self.services["w1"].tokens["analyse"], json=document, headers=headers)
        )
        reached = asyncio.create_task(pause.reached.wait())
        await asyncio.wait({task, reached}, return_when=asyncio.FIRST_COMPLETED)
        reached.cancel()
        interceptions.clear()
        if event["said"] == "drafted":
            assert not task.done(), f"it was to be drafted: {task.result().text}"
            self.open[worker] = pause, task
            return
        if not task.done():
            self.open[worker] = pause, task
            raise AssertionError(f"it was drafted, and should have been {event['said']}")
        self._check(task.result(), event["said"], event["answer"])

    async def _publish(self, event: dict[str, Any]) -> None:
        lost = event["done"] and not event["heard"]
        response = await self._end(event["w"], dies=not event["done"], lost=lost)
        if response.status_code == 500 and not event["heard"]:
            return
        assert event["heard"] or event["said"] not in ("made", "stands"), response.text
        self._check(response, event["said"], event["answer"])

    async def _end(self, worker: str, *, dies: bool, lost: bool = False) -> httpx.Response:
        """Let a request that waits go on, perhaps to its death."""
        pause, task = self.open.pop(worker)
        pause.dies = dies
        interceptions = self._database(worker).interceptions
        if lost:
            interceptions.update({name: Interception(after_commit=crash) for name in PUBLISHED})
            pause.interception.after_commit = crash
        pause.go.set()
        response = await task
        interceptions.clear()
        return response

    # --------------------------------------------------------------------------------- comparing

    async def _expect(self, call: Any, said: str) -> None:
        self._check(await call, said)

    def _check(self, response: httpx.Response, said: str, answer: int = -1) -> None:
        """It is the answer that the model has; a release is the one that has this number for good."""
        if said == "ok":
            assert response.is_success, response.text
        elif said in STATUS:
            assert response.status_code == STATUS[said] or (said == "again" and response.is_success), (
                f"{said}, not {response.status_code}: {response.text}"
            )
        else:
            assert not response.is_success, f"{said}, not {response.text}"
            assert response.json()["code"] == said, f"{said}, not {response.text}"
        if answer >= 0:
            known = self.answers.setdefault(answer, response.content)
            assert known == response.content, f"answer {answer} is {response.text}"

    async def _compare(self, state: dict[str, Any]) -> None:
        """Every balance and every line of a statement, to the last millionth."""
        services = self.services["w2"].api.services
        for person, account in state["accounts"].items():
            statement = await services.budgets.statement(services.subject_key.digest(self._name(person)))
            lines = {
                self._name(study): (line["live"], line["eps"] * UNIT, line["spent"] * UNIT)
                for (owner, study), line in state["lines"].items()
                if owner == person
            }
            found = {
                line.study: (line.live, line.amount / MICRO, line.amount_spent / MICRO)
                for line in statement.studies
            }
            assert found == lines, f"{person} holds {found}, not {lines}"
            balance = statement.account.epsilon
            amounts = tuple(one / MICRO for one in (balance.total, balance.reserved, balance.spent))
            spent = sum(line[2] for line in lines.values())
            should = (account["total"] * UNIT, account["reserved"] * UNIT, spent)
            assert amounts == should, f"{person} has {amounts}, not {should}"

    async def _compare_shown(self, state: dict[str, Any]) -> None:
        """What a person is shown over HTTP."""
        for person, account in state["accounts"].items():
            path = f"/v1/subjects/{self._name(person)}/budget"
            shown = (await self.services["w2"].call("GET", path, "admin")).json()
            assert shown["epsilon"]["total"] == account["total"] * UNIT
            assert shown["epsilon"]["reserved"] == account["reserved"] * UNIT
            spent = {line["study"]: line["spent"] for line in shown["studies"]}
            lines = {key: line for key, line in state["lines"].items() if key[0] == person}
            assert spent == {self._name(study): line["spent"] * UNIT for (_, study), line in lines.items()}

    async def _compare_answers(self, state: dict[str, Any]) -> None:
        """All answers of the model are there, in its order and with its bytes, and no others."""
        for study in state["arrivals"]:
            path = f"/v1/studies/{self._name(study)}/releases?limit=100"
            listed = (await self.services["w2"].call("GET", path, "analyse")).json()["items"]
            numbers = [number for number, one in enumerate(state["answers"]) if one["study"] == study]
            assert len(listed) == len(numbers), f"{len(listed)} answers, not {len(numbers)}"
            for number, release in zip(numbers, reversed(listed), strict=True):
                path = f"/v1/releases/{release['id']}"
                stored = (await self.services["w2"].call("GET", path, "analyse")).content
                assert self.answers.setdefault(number, stored) == stored, f"answer {number} is {stored!r}"


def told(event: dict[str, Any]) -> str:
    """A step in one line."""
    end = "" if event["heard"] else " and dies after the commit" if event["done"] else " and dies before it"
    words = [str(event[name]) for name in ("w", "op", "p", "s", "amount", "key") if event[name]]
    fresh = " fresh" if event["fresh"] else ""
    return f"  {' '.join(words)}{fresh}: {event['said']} {event['answer']}{end}"

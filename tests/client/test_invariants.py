"""Whatever happens, a device never gives away more than its ledger counts, nor more than the own limit."""

import tempfile
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
from dither import Client, DitherError
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.client.conftest import IMPATIENT
from tests.client.service import FakeService, Fault, problem
from tests.client.sessions import MINIMUM

STUDIES = st.sampled_from(["commute", "commute", "commute", "sleep"])
VALUES = st.integers(1, 2)
EPSILONS = st.sampled_from(["0.5", "1", "1.5", "2"])
TRUSTS = st.sampled_from(["local", "local", "central", "central", "public"])
FAULTS = st.sampled_from(
    ["none", "none", "none", "lost", "unreachable", "lost for good", "forbidden", "late refusal"]
)
LIMIT = Decimal(3)
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where a sync costs nothing, if there is such a place."""


class Device(RuleBasedStateMachine):
    """One subject, two studies, a device that is restarted at will, a service that uses what it gets."""

    @initialize()
    def start(self) -> None:
        self.directory = tempfile.TemporaryDirectory(dir=MEMORY)
        self.service = FakeService(lifetime=Decimal("2.5"))
        self.used = dict.fromkeys(("commute", "sleep"), Decimal(0))
        self.open()

    def open(self) -> None:
        self.client = Client(
            "https://dither.example",
            "token",
            directory=Path(self.directory.name),
            max_epsilon=LIMIT,
            retry=IMPATIENT,
            transport=self.service.transport,
        )
        for study in ("commute", "sleep"):
            self.client.study(study)

    def teardown(self) -> None:
        if hasattr(self, "client"):
            self.client.close()
            self.directory.cleanup()

    @rule()
    def restart(self) -> None:
        self.client.close()
        self.open()

    @rule(study=STUDIES, value=VALUES, epsilon=EPSILONS, trust=TRUSTS, fault=FAULTS, check=st.booleans())
    def contribute(self, study: str, value: int, epsilon: str, trust: Any, fault: str, check: bool) -> None:
        self._act(self.client.contribute, study, value, epsilon, trust, fault, check)

    @rule(study=STUDIES, value=VALUES, epsilon=EPSILONS, trust=TRUSTS, fault=FAULTS, check=st.booleans())
    def replace(self, study: str, value: int, epsilon: str, trust: Any, fault: str, check: bool) -> None:
        self._act(self.client.replace, study, value, epsilon, trust, fault, check)

    def _act(
        self, act: Callable[..., Any], study: str, value: int, offer: str, trust: Any, fault: str, check: bool
    ) -> None:
        def faulty(request: httpx.Request) -> httpx.Response:
            """Answers questions, and lets the faults happen to contributions."""
            if request.method == "GET":
                self.service.faults = [faulty]
                return self.service.serve(request)
            self.service.faults = rest[1:]
            return self.service.fail(rest[0], request)

        rest = self._faults(fault)
        self.service.faults = [faulty] if rest else []
        epsilon = None if trust == "public" else offer
        with suppress(DitherError):
            act(study, subject="ada", value=value, epsilon=epsilon, trust=trust, check_spent=check)
        self.service.faults = []

    def _faults(self, name: str) -> list[Fault]:
        lost, gone, forbidden = self.service.lose, httpx.ConnectError("refused"), problem(403, "forbidden")
        if name == "lost":
            return [lost]
        if name == "unreachable":
            return [gone] * IMPATIENT.attempts
        if name == "lost for good":
            return [lost, *[gone] * (IMPATIENT.attempts - 1)]
        if name == "forbidden":
            return [forbidden]
        return [lost, forbidden] if name == "refused late" else []

    @rule(fault=FAULTS, share=st.sampled_from(["0.5", "1", "1.5"]), user_split=st.booleans())
    def take_part(self, fault: str, share: str, user_split: bool) -> None:
        """In a session that is new or was left half-way, until it ends or something goes wrong."""
        left = [one for one in self.service.sessions.by_id.values() if not one.finished]
        if not left or share == "1.5":
            name, price = f"session{len(self.service.sessions.by_id)}", float(share)
            document = {"id": name, "epsilon_per_answer": price / 2, "epsilon_total": price}
            if user_split:
                document |= {"assignment_key": bytes(16).hex(), "mode": "user_split", "rounds": 1}
                document |= {"answers_per_person": 1, "epsilon_per_answer": price}
            left = [self.service.sessions.put({**MINIMUM, **document})]
        session = left[-1]
        rest = self._faults(fault)

        def faulty(request: httpx.Request) -> httpx.Response:
            """Lets the faults happen to answers; rounds go by for who was refused."""
            self.service.faults = [faulty] if rest or request.method == "GET" else []
            if request.method == "GET":
                if not session.finished and session.open_round <= int(request.url.params.get("after", 0)):
                    session.close_round()
                return self.service.serve(request)
            return self.service.fail(rest.pop(0), request) if rest else self.service.serve(request)

        self.service.faults = [faulty]
        with suppress(DitherError):
            self.client.participate(session.document["id"], subject="ada", value=34)
        self.service.faults = []

    @rule(study=STUDIES, lose=st.booleans())
    def withdraw(self, study: str, lose: bool) -> None:
        self.service.faults = [self.service.lose] if lose else []
        with suppress(DitherError):
            self.client.withdraw(study, subject="ada")
        self.service.faults = []

    @rule(study=STUDIES, share=st.sampled_from(["0.1", "0.5", "1"]))
    def release(self, study: str, share: str) -> None:
        """The service uses a share of a live central offer."""
        held = self.service.holdings.get((study, "ada"))
        if held is None or held.sent is None or held.sent["trust"] != "central":
            return
        more = min(held.epsilon * Decimal(share), held.epsilon - held.spent)
        held.spent += more
        self.used[study] += more

    @invariant()
    def nothing_uncounted_is_given_away(self) -> None:
        if not hasattr(self, "client"):
            return
        entries = self.client._ledger.read().entries if self.client._ledger else ()
        total = Decimal(0)
        for study in self.used:
            mine = [entry for entry in entries if entry.study == study]
            counted = max((entry.counted for entry in mine), default=Decimal(0))
            drawn = sum((entry.noise_epsilon or Decimal(0) for entry in mine), Decimal(0))
            assert self.used[study] + drawn <= counted
            total += counted
        for session in self.client.ledger().sessions:
            assert session.given <= session.counted <= session.epsilon
            total += session.counted
        assert total <= LIMIT
        assert total == self.client.ledger().totals.get("ada", Decimal(0))

    @invariant()
    def every_answer_that_was_sent_is_in_the_ledger_and_is_the_only_one_of_its_round(self) -> None:
        if not hasattr(self, "client"):
            return
        told: dict[tuple[str, int], set[int]] = {}
        for request, body in self.service.requests("POST"):
            if request.url.path.endswith("/answers"):
                told.setdefault((request.url.path, body["round"]), set()).add(body["answer"])
        assert all(len(answers) == 1 for answers in told.values())
        assert len(told) <= sum(session.answers for session in self.client.ledger().sessions)

    @invariant()
    def no_report_is_sent_that_is_not_in_the_ledger(self) -> None:
        if not hasattr(self, "client"):
            return
        sent = {
            (request.url.path.split("/")[3], body["report"])
            for method in ("POST", "PUT")
            for request, body in self.service.requests(method)
            if "report" in body
        }
        drawn = [entry for entry in self.client.ledger().entries if entry.trust == "local"]
        assert len(sent) <= len(drawn)


Device.TestCase.settings = settings(
    max_examples=120,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
TestDevice = Device.TestCase

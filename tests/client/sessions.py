"""Sessions of the small service in memory: rounds that close by count, and ways to cheat."""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import httpx

GRID = 1 << 30

MINIMUM: dict[str, Any] = {
    "id": "s1",
    "study": "commute",
    "protocol": "minimum",
    "mode": "budget_split",
    "threshold": "exact_binomial",
    "state": "open",
    "rounds": 2,
    "round": 1,
    "epsilon_per_answer": 0.5,
    "epsilon_total": 1.0,
    "answers_per_person": 2,
    "participants": 1,
    "answers_per_round": 1,
    "round_seconds": None,
    "deadline": "2030-02-01T12:00:00Z",
    "created_at": "2030-01-31T12:00:00Z",
    "lower": 0.0,
    "upper": 120.0,
    "grid_bits": 30,
    "quantile": None,
    "path": [],
}
SPLIT = {
    **MINIMUM,
    "mode": "user_split",
    "rounds": 10,
    "epsilon_per_answer": 1.0,
    "answers_per_person": 1,
    "assignment_key": bytes(16).hex(),
}
KMEANS = {
    **MINIMUM,
    "id": "k1",
    "study": "places",
    "protocol": "kmeans",
    "threshold": None,
    "epsilon_per_answer": 0.5,
    "epsilon_total": 1.5,
    "participants": None,
    "dimension": 2,
    "clusters": 3,
    "report_epsilon": 0.5,
    "centres": [[10.0, 10.0], [60.0, 60.0], [110.0, 20.0]],
}
DIRECTIONS = {"minimum": "at_most", "maximum": "at_least", "quantile": "at_most"}


@dataclass
class FakeSession:
    """One session: its document, what was answered, and the questions of its rounds.

    Attributes:
        document: What GET says.
        answers: By round and subject: answer and report.
        round_changes: Laid over every reply about a round: how a service cheats.
    """

    document: dict[str, Any]
    answers: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)
    round_changes: dict[str, Any] = field(default_factory=dict)

    @property
    def open_round(self) -> int:
        return int(self.document["round"])

    @property
    def finished(self) -> bool:
        return bool(self.document["state"] == "finished")

    def close_round(self) -> None:
        if self.open_round == self.document["rounds"]:
            self.finish()
        else:
            self.document["round"] += 1

    def finish(self) -> None:
        self.document |= {"state": "finished", "round": None}
        if self.document["protocol"] != "kmeans":
            self.document |= {"estimate": 33.0, "interval": {"lower": 30.0, "upper": 36.0}}

    def round_document(self) -> dict[str, Any]:
        document = {
            "session": self.document["id"],
            "state": self.document["state"],
            "round": self.document["round"],
            "rounds": self.document["rounds"],
            "closes_at": None,
            "epsilon_per_answer": self.document["epsilon_per_answer"],
            "answers": 0,
        }
        if not self.finished and self.document["protocol"] == "kmeans":
            grid = [[round(part / 120 * GRID) for part in row] for row in self.document["centres"]]
            document["centres"] = grid
        elif not self.finished:
            document["threshold"] = GRID >> self.open_round
            document["direction"] = DIRECTIONS[self.document["protocol"]]
        return document | self.round_changes

    def answer(self, sent: dict[str, Any]) -> tuple[int, Any]:
        """Status and document, or status and the code of a problem."""
        key = (sent["round"], sent["subject"])
        known = self.answers.get(key)
        if known is not None and known["answer"] == sent["answer"]:
            return 200, self._stored(sent)
        if known is not None:
            return 409, "answer_exists"
        if self.finished or sent["round"] < self.open_round:
            return 409, "round_closed"
        if sent["round"] > self.open_round:
            return 409, "round_not_open"
        first = not any(subject == sent["subject"] for _, subject in self.answers)
        if self.document["protocol"] == "kmeans" and first != ("report" in sent):
            return 422, "invalid_request"
        self.answers[key] = deepcopy(sent)
        stored = self._stored(sent)
        wanted = self.document["answers_per_round"]
        if wanted is not None and self.count(self.open_round) >= wanted:
            self.close_round()
        return 201, stored

    def count(self, number: int) -> int:
        return sum(key[0] == number for key in self.answers)

    def _stored(self, sent: dict[str, Any]) -> dict[str, Any]:
        given = sum(subject == sent["subject"] for _, subject in self.answers)
        spent = given * self.document["epsilon_per_answer"] + (self.document.get("report_epsilon") or 0)
        names = ("subject", "round")
        document = {name: sent[name] for name in names}
        return {"session": self.document["id"], **document, "answers_given": given, "epsilon_spent": spent}


@dataclass
class FakeSessions:
    """All sessions of a service."""

    by_id: dict[str, FakeSession] = field(
        default_factory=lambda: {row["id"]: FakeSession(deepcopy(row)) for row in (MINIMUM, KMEANS)}
    )

    def put(self, document: dict[str, Any]) -> FakeSession:
        """Open a session."""
        self.by_id[document["id"]] = FakeSession(deepcopy(document))
        return self.by_id[document["id"]]

    def serve(self, method: str, parts: list[str], sent: dict[str, Any] | None) -> tuple[int, Any]:
        """Status and document, or status and the code of a problem."""
        found = self.by_id.get(parts[0])
        if found is None:
            return 404, "not_found"
        match [method, *parts[1:]]:
            case ["GET"]:
                return 200, found.document
            case ["GET", "round"]:
                return 200, found.round_document()
            case ["POST", "answers"]:
                assert sent is not None
                return found.answer(sent)
            case ["POST", "close-round"]:
                assert sent is not None
                if sent["round"] == found.document["round"]:
                    found.close_round()
                return 200, found.document
            case ["POST", "finish"]:
                found.finish()
                return 200, found.document
        return 404, "not_found"

    def of_study(self, slug: str, query: dict[str, str]) -> httpx.Response:
        """A page of a study's sessions."""
        rows = [one.document for one in self.by_id.values() if one.document["study"] == slug]
        start, limit = int(query.get("cursor", 0)), int(query["limit"])
        end = start + limit
        cursor = str(end) if end < len(rows) else None
        return httpx.Response(200, json={"items": rows[start:end], "next_cursor": cursor})

    def create(self, slug: str, sent: dict[str, Any]) -> httpx.Response:
        """A new session of two rounds."""
        document = {**MINIMUM, "study": slug, "id": f"s{len(self.by_id) + 1}", "protocol": sent["protocol"]}
        document["epsilon_total"] = float(sent["epsilon"])
        document["epsilon_per_answer"] = document["epsilon_total"] / 2
        document["answers_per_round"] = sent.get("answers_per_round", sent.get("participants"))
        return httpx.Response(201, json=self.put(document).document)

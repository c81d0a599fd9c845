"""What clients of a storm send, what it does in the words of the models, and what a response says in them."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import httpx

from app.core.epsilon import MICRO

UNHEARD = (429, 500, 503)
"""Statuses that tell nothing of what was done."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sends; the document as JSON."""

    method: str
    path: str
    document: str = ""
    key: str = ""
    role: str = "admin"

    @property
    def does(self) -> tuple[Any, ...]:
        """What a call does, for the models, and after it whom it is about."""
        document = json.loads(self.document or "{}")
        match self.method, self.path.partition("?")[0].split("/")[2:]:
            case "POST", ("studies", study, "contributions"):
                return ("contribute", study, document["value"], micro(document["epsilon"]))
            case "PUT", ("studies", study, "contributions", _):
                return ("replace", study, document["value"], micro(document["epsilon"]))
            case "DELETE", ("studies", study, "contributions", _):
                return ("withdraw", study)
            case "GET", ("subjects", _, "budget"):
                return ("statement",)
            case "PUT", ("admin", "subjects", _, "budget"):
                return ("budget", micro(document["epsilon"]))
            case "POST", ("studies", study, "archive"):
                return ("archive", study)
            case "GET", ("studies", study, "releases"):
                return ("list", study)
            case "POST", ("studies", study, "releases"):
                return ("ask", study, micro(document["share"]), document["fresh"], self.key)
        raise AssertionError(f"{self} is no request of a storm")

    @property
    def person(self) -> str:
        """Whom it is about; empty: no single person."""
        match self.path.split("/")[2:]:
            case ("studies", _, "contributions"):
                return str(json.loads(self.document)["subject"])
            case ("studies", _, "contributions", person) | ("subjects", person, _):
                return person
            case ("admin", "subjects", person, _):
                return person
        return ""


def sending(method: str, path: str, document: Any = None, key: str = "", role: str = "admin") -> Request:
    """A request with a document."""
    return Request(method, path, "" if document is None else json.dumps(document), key, role)


def founding(study: str) -> Request:
    """A new study."""
    terms = {"lower": 0, "upper": 100, "default_share": 1, "epsilon": {"min": 1, "max": 2}}
    return sending("POST", "/v1/studies", {"slug": study, **terms})


def archiving(study: str) -> Request:
    """The end of a study."""
    return sending("POST", f"/v1/studies/{study}/archive", {"reason": "the storm"})


def offering(person: str, study: str, value: int, epsilon: int) -> Request:
    """A contribution."""
    document = {"subject": person, "value": value, "epsilon": epsilon, "trust": "central"}
    return sending("POST", f"/v1/studies/{study}/contributions", document, role="contribute")


def replacing(person: str, study: str, value: int, epsilon: int) -> Request:
    """Another value and epsilon in place of a contribution."""
    document = {"value": value, "epsilon": epsilon, "trust": "central"}
    return sending("PUT", f"/v1/studies/{study}/contributions/{person}", document, role="contribute")


def withdrawing(person: str, study: str) -> Request:
    """The end of a contribution."""
    return sending("DELETE", f"/v1/studies/{study}/contributions/{person}", role="contribute")


def limiting(person: str, epsilon: int) -> Request:
    """A lifetime budget."""
    document = {"epsilon": epsilon, "reason": "the storm"}
    return sending("PUT", f"/v1/admin/subjects/{person}/budget", document)


def reading(person: str) -> Request:
    """A person's statement."""
    return sending("GET", f"/v1/subjects/{person}/budget")


def listing(study: str) -> Request:
    """The answers of a study."""
    return sending("GET", f"/v1/studies/{study}/releases?limit=100")


def asking(study: str, quarters: int, key: str, *, fresh: bool) -> Request:
    """A question for a mean, at this many quarters of each epsilon."""
    document = {
        "statistic": "mean",
        "estimator": "uniform",
        "share": quarters / 4,
        "fresh": fresh,
        "allow_worse": True,
    }
    return sending("POST", f"/v1/studies/{study}/releases", document, key, "analyse")


def micro(epsilon: float) -> int:
    """An epsilon of the wire in micro-epsilon."""
    return round(epsilon * MICRO)


def digest(content: bytes) -> str:
    """Of an answer."""
    return hashlib.sha256(content).hexdigest()[:12]


def told_by(request: Request, response: httpx.Response) -> tuple[Any, ...] | None:
    """What a response says, in the models' words; None where it says nothing of what was done."""
    if response.status_code in UNHEARD:
        return None
    document = response.json() if response.content else {}
    if not response.is_success:
        return (document["code"],)
    match request.does[0]:
        case "contribute":
            return ("created" if response.status_code == 201 else "unchanged",)
        case "replace":
            return ("replaced",)
        case "ask":
            word = "made" if response.status_code == 201 else "stands"
            return (word, document["id"], digest(response.content))
        case "list":
            return ("listed", *sorted(item["id"] for item in document["items"]))
        case "statement":
            account = document["epsilon"]
            lines = sorted(
                (line["study"], line["live"], micro(line["epsilon"]), micro(line["spent"]))
                for line in document["studies"]
            )
            return ("shows", *(micro(account[name]) for name in ("total", "reserved", "spent")), *lines)
    return ("ok",)

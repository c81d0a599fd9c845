"""The studies and the people of the benchmarks."""

import json
import random
from collections.abc import Iterator
from decimal import Decimal

from app.core.attributes import Attributes
from app.core.epsilon import epsilon_limit
from app.core.study import Relation, StudyDefinition, Trust

EPSILONS = tuple(f"{number / 100:.2f}" for number in range(10, 100))
"""Personal epsilons, as people would choose them."""


def definition(slug: str, *, epsilon_max: Decimal = Decimal(10), labels: int = 1) -> StudyDefinition:
    """Minutes to work, for central and local people; with several labels, each person has one of them."""
    return StudyDefinition(
        slug=slug,
        title="Minutes to work",
        lower=Decimal(0),
        upper=Decimal(120),
        relation=Relation.REPLACE_ONE,
        trust=frozenset({Trust.CENTRAL, Trust.LOCAL, Trust.PUBLIC}),
        epsilon_min=epsilon_limit(Decimal("0.01")),
        epsilon_max=epsilon_limit(epsilon_max),
        default_share=10_000,
        attributes=Attributes.of({"group": [f"g{number}" for number in range(labels)]} if labels > 1 else {}),
    )


def people(prefix: str) -> Iterator[tuple[str, str, str]]:
    """External id, value and epsilon of one new person after the other."""
    source = random.Random(0)
    number = 0
    while True:
        number += 1
        yield f"{prefix}-{number}", f"{source.uniform(0, 120):.2f}", source.choice(EPSILONS)


def contribution_requests(study: str, token: str, prefix: str) -> Iterator[bytes]:
    """HTTP requests of new people, each with one central contribution."""
    head = (
        f"POST /v1/studies/{study}/contributions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: "
    ).encode()
    for subject, value, epsilon in people(prefix):
        body = f'{{"subject":"{subject}","value":{value},"epsilon":{epsilon},"trust":"central"}}'.encode()
        yield head + str(len(body)).encode() + b"\r\n\r\n" + body


def post(path: str, token: str, document: object) -> bytes:
    """One HTTP request with a JSON document."""
    body = json.dumps(document).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body

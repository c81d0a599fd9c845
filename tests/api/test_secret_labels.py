"""Answers by labels where the number of people, and what labels they have, is secret."""

import json
import re
from typing import Any

import pytest

from tests.api.service import Service, assert_problem

REGIONS = ["north", "south", "empty"]


async def survey(service: Service, people: dict[str, int], **terms: Any) -> str:
    """People with the value 20 in the north, and 80 elsewhere."""
    slug = await service.study(relation="add_remove_one", attributes={"region": REGIONS}, **terms)
    records = [
        {
            "subject": f"{region}{number}",
            "value": 20 if region == "north" else 80,
            "epsilon": 10,
            "trust": "central",
            "attributes": {"region": region},
        }
        for region, count in people.items()
        for number in range(count)
    ]
    if records:
        path = f"/v1/studies/{slug}/contributions/batch"
        assert (await service.call("POST", path, "contribute", json=records)).status_code == 200
    return slug


@pytest.mark.parametrize("terms", [{}, {"noise": "gaussian", "delta": 1e-6}])
async def test_one_answer_has_every_label_at_the_price_of_one_mean(service: Service, terms: dict[str, Any]):
    slug = await survey(service, {"north": 300, "south": 300}, **terms)
    path = f"/v1/studies/{slug}"
    of_same = "share=0.4&least_epsilon=5"
    plan = (await service.call("GET", f"{path}/plan?by=region&{of_same}", "analyse")).json()
    found = (await service.call("GET", f"{path}/statistics/mean?by=region&{of_same}", "analyse")).json()
    one = (await service.call("GET", f"{path}/statistics/mean?{of_same}", "analyse")).json()
    assert plan["estimators"][0]["epsilon_max"] == found["epsilon_max"] == one["epsilon_max"]
    assert [group["where"]["region"] for group in found["groups"]] == REGIONS
    for group, mean in zip(found["groups"], (20, 80), strict=False):
        assert abs(group["estimate"] - mean) < 10, "but with a probability below 1e-8"
        assert abs(group["noisy_count"]) < 400
        assert "people" not in group
    assert abs(found["estimate"] - 50) < 10
    again = (await service.call("GET", f"{path}/statistics/mean?by=region&{of_same}", "analyse")).json()
    assert again["id"] == found["id"]
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.parametrize("terms", [{}, {"noise": "gaussian", "delta": 1e-6}])
async def test_the_spread_of_each_label_has_a_release_of_its_own(service: Service, terms: dict[str, Any]):
    slug = await survey(service, {"north": 300, "south": 300}, **terms)
    path = f"/v1/studies/{slug}/statistics"
    sd = (await service.call("GET", f"{path}/sd?by=region&share=0.4", "analyse")).json()
    variance = (await service.call("GET", f"{path}/variance?by=region&share=0.4", "analyse")).json()
    assert sd["id"] == variance["id"]
    assert sd["groups"][0]["estimate"] ** 2 == pytest.approx(variance["groups"][0]["estimate"])


@pytest.mark.parametrize("terms", [{}, {"noise": "gaussian", "delta": 1e-6}])
async def test_labels_are_read_together_for_nothing(service: Service, terms: dict[str, Any]):
    slug = await survey(service, {"north": 300, "south": 300}, **terms)
    path, of = f"/v1/studies/{slug}/statistics", "share=0.4"
    less = "between=region:north,south"
    difference = (await service.call("GET", f"{path}/difference?{less}&{of}", "analyse")).json()
    known = "standardize=region:north=.5,south=.5,empty=0"
    mean = (await service.call("GET", f"{path}/mean?{known}&simultaneous=true&{of}", "analyse")).json()
    assert difference["id"] == mean["id"], "one release, and one price"
    for found, truth in ((difference, -60), (mean, 50)):
        lower, upper = found["interval"]["lower"], found["interval"]["upper"]
        assert lower <= found["estimate"] <= upper
        assert abs(found["estimate"] - truth) < 20
    for group in mean["groups"]:
        plain, joint = group["interval"], group["simultaneous"]
        assert joint["lower"] <= plain["lower"] <= plain["upper"] <= joint["upper"]
        assert [one["labels"] for one in group["together"]] == [2, 3]
    assert (await service.api.services.ledger.audit()).clean


PLACES = [None, *REGIONS]
NOISY = {
    *("id", "study", "created_at", "estimate", "standard_error", "interval", "population_interval"),
    *("noisy_count", "about", "variance", "sd", "together"),
}


def plain(document: Any) -> Any:
    """A document without what has noise or a name in it."""
    if isinstance(document, list):
        return [plain(one) for one in document]
    if isinstance(document, dict):
        return {name: plain(one) for name, one in document.items() if name not in NOISY}
    return document


PREDICTED = re.compile(r'"predicted_error": [0-9.e-]+')


async def test_one_person_more_in_any_label_shows_in_nothing_but_noise(service: Service):
    # Who offers how much is told as noise, too, and other things by that, if the question does not say it.
    seen, of = [], "expected_size=20&least_epsilon=1"
    for place in PLACES:
        slug = await survey(service, {"north": 3, "south": 2, "empty": 0})
        if place is not None:
            more = {"subject": f"more-{slug}", "value": 50, "epsilon": 4, "trust": "central"}
            sent = more | {"attributes": {"region": place}}
            await service.call("POST", f"/v1/studies/{slug}/contributions", "contribute", json=sent)
        told: list[tuple[int, str]] = []
        for path in (
            f"plan?by=region&{of}",
            f"plan?by=region&statistic=sd&{of}",
            f"statistics/mean?by=region&{of}",
            f"statistics/sd?by=region&{of}",
            *(f"statistics/mean?by=region&share=1&{of}" for _ in range(2)),
        ):
            answer = await service.call("GET", f"/v1/studies/{slug}/{path}", "analyse")
            said = json.dumps(plain(answer.json())).replace(slug, "")
            # What is published is noise, and errors are predicted for it from the second answer on.
            published = len(told) > 2
            told.append((answer.status_code, PREDICTED.sub("", said) if published else said))
        seen.append(told)
    assert seen == [seen[0]] * len(PLACES)
    assert {status for status, _ in seen[0]} == {200}


@pytest.mark.parametrize(
    ("question", "field"),
    [
        ("by=sex", "by"),
        ("by=region&estimator=hourglass", "estimator"),
        ("by=region&statistic=sum", "statistic"),
        ("statistic=difference&between=region:north,east", "between"),
        ("standardize=region:north=.5,south=.6,empty=0", "standardize"),
        ("simultaneous=true", "simultaneous"),
    ],
)
async def test_what_has_no_answer_is_refused_by_name(service: Service, question: str, field: str):
    slug = await survey(service, {})
    answer = await service.call("GET", f"/v1/studies/{slug}/plan?{question}", "analyse")
    assert_problem(answer, "invalid_request", 422, field)

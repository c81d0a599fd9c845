"""Texts that tell people and groups apart: other spellings of the same letters, ids that no path can hold."""

import json

import pytest
from dither._calls import quoted

from tests.api.service import Service, assert_problem

COMPOSED, APART = "Zo\u00eb", "Zoe\u0308"


async def test_a_label_and_a_choice_may_have_their_accents_apart(service: Service) -> None:
    study = await service.study(attributes={"name": [COMPOSED, "Ada"]})
    poll = await service.study(lower=None, upper=None, choices=[COMPOSED, "Ada"])
    record = {"subject": "a", "epsilon": 1, "trust": "central"}
    for slug, body in (
        (study, {**record, "value": 1, "attributes": {"name": APART}}),
        (poll, {**record, "value": APART}),
    ):
        path = f"/v1/studies/{slug}/contributions"
        made = await service.call("POST", path, "contribute", json=body)
        assert made.status_code == 201, made.text
        same = json.loads(json.dumps(body, ensure_ascii=False).replace(APART, COMPOSED))
        assert (await service.call("POST", path, "contribute", json=same)).status_code == 200


@pytest.mark.parametrize("subject", [".", "..", "a\0b", APART])
async def test_an_id_that_its_owner_could_not_name_again_is_refused_when_it_arrives(
    service: Service, study: str, subject: str
) -> None:
    record = {"subject": subject, "value": 1, "epsilon": 1, "trust": "central"}
    path = f"/v1/studies/{study}/contributions"
    refused = await service.call("POST", path, "contribute", json=record)
    assert_problem(refused, "invalid_request", 422)
    assert [error["field"] for error in refused.json()["errors"]] == ["subject"]
    for kind, content in (
        ("application/json", json.dumps([record])),
        ("application/x-ndjson", json.dumps(record)),
    ):
        headers = {"Content-Type": kind}
        batch = await service.call("POST", f"{path}/batch", "contribute", content=content, headers=headers)
        assert batch.json()["refused"] == 1, batch.text


@pytest.mark.parametrize("form", ["application/json", "application/x-ndjson"])
async def test_a_mark_of_the_byte_order_is_no_part_of_a_batch(
    service: Service, study: str, form: str
) -> None:
    record = json.dumps({"subject": "ada", "value": 1, "epsilon": 1, "trust": "central"})
    content = (f"[{record}]" if form.endswith("/json") else record).encode("utf-8-sig")
    path = f"/v1/studies/{study}/contributions/batch"
    made = await service.call("POST", path, "contribute", content=content, headers={"Content-Type": form})
    assert made.json()["created"] == 1, made.text


@pytest.mark.parametrize("subject", [".", "..", "a/../b", "a\nb", "%2e", APART])
async def test_what_was_stored_by_an_odd_id_can_still_be_withdrawn(
    service: Service, study: str, subject: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/v1/studies/{study}/contributions"
    with monkeypatch.context() as before:
        before.setattr("app.services.contributing.intake.subject_fault", lambda _: None)
        await service.contribute(study, subject)
    budget = await service.call("GET", f"/v1/subjects/{quoted(subject)}/budget", "admin")
    assert budget.json()["subject"] == subject
    assert [line["live"] for line in budget.json()["studies"]] == [True]
    withdrawn = await service.call("DELETE", f"{path}/{quoted(subject)}", "contribute")
    assert withdrawn.status_code == 204, withdrawn.text
    budget = await service.call("GET", f"/v1/subjects/{quoted(subject)}/budget", "admin")
    assert [line["live"] for line in budget.json()["studies"]] in ([], [False])

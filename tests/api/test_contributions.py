"""Contributions over HTTP: status codes, retries, idempotency keys, budgets."""

import asyncio

import pytest

from tests.api.service import VALUE, Service, assert_problem


async def test_a_contribution_is_created_once(service: Service, study: str) -> None:
    path = f"/v1/studies/{study}/contributions"
    first = await service.call("POST", path, "contribute", json={**VALUE, "epsilon": 1.2345})
    assert first.status_code == 201
    assert first.json() == {
        "study": study,
        "subject": "alice",
        "trust": "central",
        "epsilon": 1.23,
        "mu2": None,
        "epsilon_used_at_most": 1.23,
    }
    again = await service.call("POST", path, "contribute", json={**VALUE, "epsilon": 1.2345})
    assert again.status_code == 200
    assert again.json() == first.json()


async def test_another_value_is_a_conflict(service: Service, study: str) -> None:
    path = f"/v1/studies/{study}/contributions"
    await service.call("POST", path, "contribute", json=VALUE)
    response = await service.call("POST", path, "contribute", json={**VALUE, "value": 38})
    assert_problem(response, "contribution_exists", 409)


async def test_the_same_contribution_in_flight_twice_is_created_once(service: Service, study: str) -> None:
    path = f"/v1/studies/{study}/contributions"
    document = {**VALUE, "epsilon": 10}
    responses = await asyncio.gather(
        *(service.call("POST", path, "contribute", json=document) for _ in range(20))
    )
    assert sorted(response.status_code for response in responses) == [200] * 19 + [201]


LOCAL = {"subject": "alice", "report": 2**29, "epsilon": 1.5, "trust": "local"}
PUBLIC = {"subject": "alice", "value": 37.5, "trust": "public"}


@pytest.mark.parametrize("sent", [VALUE, LOCAL, PUBLIC], ids=["central", "local", "public"])
@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
async def test_another_token_cannot_find_out_a_value_by_guessing(
    service: Service, study: str, sent: dict[str, object], closed: bool
) -> None:
    path = f"/v1/studies/{study}/contributions"
    field = "report" if "report" in sent else "value"
    assert (await service.call("POST", path, "contribute", json=sent)).status_code == 201
    if closed:
        await service.call("POST", f"/v1/studies/{study}/close", "admin")
    person = service.api.services.subject_key.digest("alice")
    code = "study_closed" if closed else "contribution_exists"
    for stranger in (await service.token("contribute"), await service.token("contribute", subject=person)):
        told = []
        for guess in (sent, {**sent, field: 11}):
            headers = {"Idempotency-Key": f"guess-{guess[field]}"}
            for response in (
                await service.call("POST", path, stranger, json=guess),
                await service.call("POST", path, stranger, json=guess, headers=headers),
            ):
                told.append(assert_problem(response, code, 409))
        assert all(document == told[0] for document in told)
    # What the one who sent it learns, it knows.
    assert (await service.call("POST", path, "contribute", json=sent)).status_code == 200


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
async def test_a_batch_and_a_replacement_tell_another_token_nothing_either(
    service: Service, study: str, closed: bool
) -> None:
    path = f"/v1/studies/{study}/contributions"
    stranger = await service.token("contribute")
    people = {"first": 1, "second": 2}
    for name in people:
        for prefix, record in (("c", VALUE), ("l", LOCAL)):
            await service.call("POST", path, "contribute", json={**record, "subject": f"{prefix}-{name}"})
    if closed:
        await service.call("POST", f"/v1/studies/{study}/close", "admin")
    records = [
        {**VALUE, "subject": "c-first"},
        {**VALUE, "subject": "c-second", "value": 11},
        {**LOCAL, "subject": "l-first"},
        {**LOCAL, "subject": "l-second", "report": 11},
    ]
    batch = await service.call("POST", f"{path}/batch", stranger, json=records)
    if closed:
        assert_problem(batch, "study_closed", 409)
    else:
        results = batch.json()["results"]
        assert [one.pop("row") for one in results] == [1, 2, 3, 4]
        assert results == [results[0]] * 4
        assert results[0]["code"] == "contribution_exists"
    for right, wrong in ((records[0], records[1]), (records[2], records[3])):
        told = []
        for record in (right, wrong):
            document = {name: value for name, value in record.items() if name != "subject"}
            named = {"X-Request-Id": "same"}
            response = await service.call(
                "PUT", f"{path}/{record['subject']}", stranger, json=document, headers=named
            )
            told.append((response.status_code, response.text.replace(str(record["subject"]), "somebody")))
        assert told[0] == told[1]


async def test_whose_token_is_rotated_still_gets_the_answer_of_the_first_request(
    service: Service, study: str
) -> None:
    path = f"/v1/studies/{study}/contributions"
    made = await service.call("POST", "/v1/admin/tokens", "admin", json={"name": "app", "role": "contribute"})
    assert (await service.call("POST", path, made.json()["token"], json=VALUE)).status_code == 201
    rotated = await service.call(
        "POST", f"/v1/admin/tokens/{made.json()['id']}/rotate", "admin", json={"grace_seconds": 0}
    )
    assert (await service.call("POST", path, rotated.json()["token"], json=VALUE)).status_code == 200


async def test_who_replaces_a_value_is_its_sender_from_then_on(service: Service, study: str) -> None:
    path = f"/v1/studies/{study}/contributions"
    other = await service.token("contribute")
    await service.call("POST", path, "contribute", json=VALUE)
    document = {"value": 37.5, "epsilon": 1.5, "trust": "central"}
    assert (await service.call("PUT", f"{path}/alice", other, json=document)).status_code == 200
    assert (await service.call("POST", path, other, json=VALUE)).status_code == 200
    assert_problem(await service.call("POST", path, "contribute", json=VALUE), "contribution_exists", 409)


@pytest.mark.parametrize(
    ("document", "epsilon"),
    [
        ({"subject": "bob", "report": 2**31, "epsilon": 1.5, "trust": "local"}, 1.5),
        ({"subject": "bob", "report": -5.0, "epsilon": "0.25", "trust": "local"}, 0.25),
        ({"subject": "carol", "value": 20, "trust": "public"}, None),
        ({"subject": "dora", "value": -0.0, "epsilon": 1, "trust": "central"}, 1.0),
    ],
)
async def test_every_trust_tag_is_taken(
    service: Service, study: str, document: dict[str, object], epsilon: float | None
) -> None:
    response = await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=document)
    assert response.status_code == 201, response.text
    assert response.json()["epsilon"] == epsilon


async def test_epsilon_text_never_loses_a_micro(service: Service) -> None:
    study = await service.study(epsilon={"min": "0.000001", "max": 1000000})
    for number, text in enumerate(["0.000123", "1.23e-4", "0.0001230"]):
        response = await service.call(
            "POST",
            f"/v1/studies/{study}/contributions",
            "contribute",
            content=f'{{"subject":"s{number}","value":1,"epsilon":{text},"trust":"central"}}',
            headers={"Content-Type": "application/json"},
        )
        assert response.json()["epsilon"] == 0.000123, response.text


async def test_a_value_is_replaced(service: Service, study: str) -> None:
    path = f"/v1/studies/{study}/contributions"
    await service.call("POST", path, "contribute", json=VALUE)
    document = {"value": 1, "epsilon": 2, "trust": "central"}
    response = await service.call("PUT", f"{path}/alice", "contribute", json=document)
    assert response.status_code == 200
    assert response.json()["epsilon"] == 2.0
    again = await service.call("PUT", f"{path}/alice", "contribute", json=document)
    assert again.status_code == 200
    budget = (await service.call("GET", "/v1/subjects/alice/budget", "contribute")).json()
    assert budget["epsilon"]["reserved"] == 2.0


async def test_nothing_can_be_replaced_where_nothing_is_live(service: Service, study: str) -> None:
    document = {"value": 1, "epsilon": 2, "trust": "central"}
    response = await service.call(
        "PUT", f"/v1/studies/{study}/contributions/nobody", "contribute", json=document
    )
    assert_problem(response, "not_found", 404)


async def test_withdrawing_twice_is_no_error(service: Service, study: str) -> None:
    path = f"/v1/studies/{study}/contributions"
    await service.call("POST", path, "contribute", json=VALUE)
    for _ in range(2):
        response = await service.call("DELETE", f"{path}/alice", "contribute")
        assert (response.status_code, response.content) == (204, b"")
    response = await service.call("DELETE", f"{path}/nobody", "contribute")
    assert_problem(response, "not_found", 404)


@pytest.mark.parametrize("subject", ["a/b", "ä ö", "100%", "?x=1", "batch", "a+b"])
async def test_any_external_id_can_stand_in_a_path(service: Service, study: str, subject: str) -> None:
    path = f"/v1/studies/{study}/contributions"
    await service.call("POST", path, "contribute", json={**VALUE, "subject": subject})
    encoded = "".join(f"%{byte:02X}" for byte in subject.encode())
    document = {"value": 1, "epsilon": 2, "trust": "central"}
    response = await service.call("PUT", f"{path}/{encoded}", "contribute", json=document)
    assert response.status_code == 200, response.text
    assert response.json()["subject"] == subject
    budget = await service.call("GET", f"/v1/subjects/{encoded}/budget", "admin")
    assert budget.json()["epsilon"]["reserved"] == 2.0


async def test_an_exhausted_budget_says_what_is_missing_to_its_owner(service: Service, study: str) -> None:
    other = await service.study()
    token = await service.token("contribute", subject=service.api.services.subject_key.digest("alice"))
    for slug, epsilon in ((study, 8), (other, 3)):
        response = await service.call(
            "POST", f"/v1/studies/{slug}/contributions", token, json={**VALUE, "epsilon": epsilon}
        )
    document = assert_problem(response, "budget_exhausted", 409, "epsilon")
    assert document["errors"][0]["reason"] == "2 is left of the lifetime budget, 1 is missing"
    replaced = await service.call(
        "PUT",
        f"/v1/studies/{study}/contributions/alice",
        token,
        json={"value": 1, "epsilon": 10, "trust": "central"},
    )
    assert replaced.status_code == 200
    more = await service.study(epsilon={"max": 100})
    response = await service.call(
        "POST", f"/v1/studies/{more}/contributions", token, json={**VALUE, "epsilon": 12.5}
    )
    document = assert_problem(response, "budget_exhausted", 409, "epsilon")
    assert "12.5 is missing" in document["errors"][0]["reason"]


async def test_a_retry_with_the_same_key_gets_the_same_bytes(service: Service, study: str) -> None:
    path = f"/v1/studies/{study}/contributions"
    headers = {"Idempotency-Key": "k-1"}
    first = await service.call("POST", path, "contribute", json=VALUE, headers=headers)
    again = await service.call("POST", path, "contribute", json=VALUE, headers=headers)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    other = await service.call("POST", path, "contribute", json={**VALUE, "value": 1}, headers=headers)
    assert_problem(other, "idempotency_key_reused", 409)
    elsewhere = await service.study()
    other = await service.call(
        "POST", f"/v1/studies/{elsewhere}/contributions", "contribute", json=VALUE, headers=headers
    )
    assert_problem(other, "idempotency_key_reused", 409)


async def test_keys_of_two_tokens_are_two_keys(service: Service, study: str) -> None:
    path = f"/v1/studies/{study}/contributions"
    headers = {"Idempotency-Key": "k-1"}
    await service.call("POST", path, "contribute", json=VALUE, headers=headers)
    response = await service.call(
        "POST",
        path,
        await service.token("contribute"),
        json={**VALUE, "subject": "bob"},
        headers=headers,
    )
    assert response.status_code == 201


@pytest.mark.parametrize("key", ["", "x" * 201, "two words", "\x80"])
async def test_a_key_must_be_printable(service: Service, study: str, key: str) -> None:
    response = await service.call(
        "POST",
        f"/v1/studies/{study}/contributions",
        "contribute",
        json=VALUE,
        headers=[("Idempotency-Key", key.encode("latin-1"))],
    )
    assert_problem(response, "invalid_request", 422, "Idempotency-Key")


@pytest.mark.parametrize("name", ["Idempotency-Key", "Authorization"])
async def test_a_header_with_two_values_is_refused(service: Service, study: str, name: str) -> None:
    bearer = f"Bearer {service.tokens['contribute']}"
    given = [("Authorization", bearer), ("Idempotency-Key", "one"), (name, "another")]
    before = await service.rows()
    path = f"/v1/studies/{study}/contributions"
    response = await service.client.request("POST", path, json=VALUE, headers=given)
    assert_problem(response, "invalid_request", 422, name)
    assert await service.rows() == before
    same = [given[0], given[1], given[name == "Idempotency-Key"]]
    response = await service.client.request("POST", path, json=VALUE, headers=same)
    assert response.status_code == 201, response.text


async def test_a_closed_study_takes_nothing(service: Service, study: str) -> None:
    path = f"/v1/studies/{study}/contributions"
    await service.call("POST", path, "contribute", json=VALUE)
    closed = await service.call("POST", f"/v1/studies/{study}/close", "admin")
    assert closed.json()["state"] == "closed"
    document = {"value": 1, "epsilon": 2, "trust": "central"}
    for response in (
        await service.call("POST", path, "contribute", json={**VALUE, "subject": "bob"}),
        await service.call("POST", path, "contribute", json={**VALUE, "value": 1}),
        await service.call("PUT", f"{path}/bob", "contribute", json=document),
        await service.call("POST", f"{path}/batch", "contribute", json=[{**VALUE, "subject": "bob"}]),
        await service.call("PUT", f"{path}/alice", "contribute", json=document),
    ):
        assert_problem(response, "study_closed", 409)
    assert (await service.call("DELETE", f"{path}/alice", "contribute")).status_code == 204
    assert_problem(await service.call("POST", path, "contribute", json=VALUE), "study_closed", 409)


async def test_a_closed_study_still_knows_what_it_accepted(service: Service, study: str) -> None:
    path = f"/v1/studies/{study}/contributions"
    report = {"subject": "bob", "report": 5, "epsilon": 1, "trust": "local"}
    public = {"subject": "carol", "value": 3, "trust": "public"}
    for document in (VALUE, report, public):
        assert (await service.call("POST", path, "contribute", json=document)).status_code == 201
    await service.call("POST", f"/v1/studies/{study}/close", "admin")
    before = await service.rows()
    for document in (VALUE, report, public):
        fields = {name: value for name, value in document.items() if name != "subject"}
        for response in (
            await service.call("POST", path, "contribute", json=document),
            await service.call("PUT", f"{path}/{document['subject']}", "contribute", json=fields),
        ):
            assert response.status_code == 200, response.text
    assert await service.rows() == before
    with_key = [("Idempotency-Key", "retried")]
    again = await service.call("POST", path, "contribute", json=VALUE, headers=with_key)
    assert again.status_code == 200


async def test_a_retry_and_a_late_comer_together_get_their_own_answers(service: Service, study: str) -> None:
    path = f"/v1/studies/{study}/contributions"
    await service.call("POST", path, "contribute", json=VALUE)
    await service.call("POST", f"/v1/studies/{study}/close", "admin")
    documents = [{**VALUE, "subject": subject} for subject in ("alice", "bob") * 10]
    responses = await asyncio.gather(
        *(service.call("POST", path, "contribute", json=document) for document in documents)
    )
    assert [response.status_code for response in responses] == [200, 409] * 10

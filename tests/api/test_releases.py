"""Plans, statistics and releases over HTTP."""

import base64
from typing import Any

import pytest

from tests.api.service import VALUE, Service, assert_no_cursor, assert_problem


@pytest.fixture
async def crowded(service: Service) -> str:
    """A study with a hundred people."""
    study = await service.study(trust=["central", "local", "public"])
    await service.crowd(study)
    return study


@pytest.fixture
async def secret(service: Service) -> str:
    """A study whose number of people is secret."""
    study = await service.study(relation="add_remove_one")
    await service.crowd(study)
    return study


async def test_a_plan_prices_every_estimator_and_spends_nothing(service: Service, crowded: str) -> None:
    before = await service.rows()
    response = await service.call("GET", f"/v1/studies/{crowded}/plan?statistic=mean&share=0.5", "analyse")
    entries = response.json()["estimators"]
    assert {"uniform", "adpm", "kvh"} <= {entry["estimator"] for entry in entries}
    errors = [entry["predicted_error"] for entry in entries]
    assert errors == sorted(errors)
    assert all(0 < entry["epsilon_max"] <= 0.5 for entry in entries)
    assert await service.rows() == before


async def test_a_question_is_answered_once_and_then_for_free(service: Service, crowded: str) -> None:
    path = f"/v1/studies/{crowded}/statistics/mean?estimator=adpm&share=0.2"
    first = await service.call("GET", path, "analyse")
    assert first.status_code == 200, first.text
    answer = first.json()
    assert answer["new_contributions"] is False
    assert answer["epsilon_max"] == 0.2
    assert answer["interval"]["level"] == 0.95
    assert answer["interval"]["lower"] <= answer["estimate"] <= answer["interval"]["upper"]
    before = await service.rows()
    again = await service.call("GET", path, "analyse")
    assert again.content == first.content
    await service.contribute(crowded, "late")
    later = (await service.call("GET", path, "analyse")).json()
    assert later.pop("new_contributions") is True
    answer.pop("new_contributions")
    assert later == answer
    assert (await service.rows())["charge"] == before["charge"]


async def test_variance_sd_and_sum_are_read_off_the_release_of_the_mean(
    service: Service, crowded: str
) -> None:
    base = f"/v1/studies/{crowded}/statistics"
    answers = {
        statistic: (await service.call("GET", f"{base}/{statistic}?estimator=adpm", "analyse")).json()
        for statistic in ("sd", "mean", "variance", "sum")
    }
    assert len({answer["id"] for answer in answers.values()}) == 1
    assert [answer["statistic"] for answer in answers.values()] == list(answers)
    mean = answers["mean"]
    assert answers["variance"]["interval"] == mean["variance"]["interval"]
    assert answers["sd"]["estimate"] == mean["sd"]["estimate"] == mean["variance"]["estimate"] ** 0.5
    assert answers["sum"]["estimate"] == mean["estimate"] * mean["people"]
    for answer in answers.values():
        for interval in (answer["interval"], answer["population_interval"]):
            assert interval["lower"] <= answer["estimate"] <= interval["upper"]
    rows = await service.rows()
    assert rows["release"] == 1
    made = await service.call(
        "POST", f"/v1/studies/{crowded}/releases", "analyse", json={"statistic": "sd", "estimator": "adpm"}
    )
    assert made.json()["statistic"] == "sd"
    shown = await service.call("GET", f"/v1/releases/{made.json()['id']}", "analyse")
    assert shown.json()["statistic"] == "mean"
    assert shown.json()["sd"]["estimate"] == made.json()["estimate"]


async def test_a_mean_that_says_nothing_of_the_variance_is_no_answer_to_it(service: Service) -> None:
    study = await service.study(trust=["local"], local_mechanism="laplace")
    for name in ("ann", "bob"):
        report = {"subject": name, "report": 1 << 29, "epsilon": 1, "trust": "local"}
        sent = await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=report)
        assert sent.status_code == 201, sent.text
    path = f"/v1/studies/{study}/statistics"
    refused = await service.call("GET", f"{path}/sd", "analyse")
    assert_problem(refused, "estimator_not_applicable", 409)
    assert (await service.rows())["release"] == 0
    assert (await service.call("GET", f"{path}/mean", "analyse")).status_code == 200
    assert_problem(await service.call("GET", f"{path}/sd", "analyse"), "estimator_not_applicable", 409)


async def test_the_spread_of_a_secret_number_of_people_has_a_release_of_its_own(
    service: Service, secret: str
) -> None:
    base = f"/v1/studies/{secret}/statistics"
    asked = "estimator=transformed&least_epsilon=0.5"
    mean = (await service.call("GET", f"{base}/mean?{asked}", "analyse")).json()
    assert "sd" not in mean
    spread = (await service.call("GET", f"{base}/sd?{asked}", "analyse")).json()
    assert (spread["id"] != mean["id"], spread["estimator"]) == (True, "transformed")
    # Noisy numbers of people choose what people weigh at most, and with it the price.
    assert spread["epsilon_max"] / spread["most_epsilon"] == pytest.approx(
        mean["epsilon_max"] / mean["most_epsilon"]
    )
    assert (await service.call("GET", f"{base}/variance?{asked}", "analyse")).json()["id"] == spread["id"]
    assert_problem(await service.call("GET", f"{base}/sum", "analyse"), "invalid_request", 422, "statistic")
    refused = await service.call("GET", f"{base}/sd?estimator=hourglass", "analyse")
    assert_problem(refused, "invalid_request", 422, "estimator")


async def test_the_next_plan_steers_by_the_variance_that_was_published(
    service: Service, crowded: str
) -> None:
    async def predicted() -> float:
        path = f"/v1/studies/{crowded}/plan?estimator=optimal&share=0.1"
        plan = await service.call("GET", path, "analyse")
        return float(plan.json()["estimators"][0]["population_predicted_error"])

    before = await predicted()
    path = f"/v1/studies/{crowded}/statistics"
    made = (await service.call("GET", f"{path}/mean?estimator=uniform&share=0.9", "analyse")).json()
    bound = made["variance"]["population_interval"]["upper"]
    after = await predicted()
    assert (after < before) == (bound < 100**2 / 4)
    assert await predicted() == after


async def test_a_question_may_be_written_in_several_ways(service: Service, crowded: str) -> None:
    base = f"/v1/studies/{crowded}/statistics/mean"
    answers = {
        (await service.call("GET", f"{base}?{query}", "analyse")).json()["id"]
        for query in (
            "estimator=adpm&share=0.10",
            "share=.1&estimator=adpm",
            "share=1e-1&estimator=adpm",
            "estimator=adpm",
        )
    }
    assert len(answers) == 1


async def test_a_new_release_is_made_by_post(service: Service, crowded: str) -> None:
    path = f"/v1/studies/{crowded}/releases"
    ids = []
    questions: tuple[dict[str, Any], ...] = (
        {},
        {"json": {}},
        {"json": {"statistic": "mean", "estimator": "adpm", "share": 0.1}},
        {"json": {"estimator": "kvh", "parameters": {"variance": "worst_case"}, "epsilon": "0.05"}},
        {"json": {"estimator": "kvh", "variance": 12.5}},
        {"params": {"estimator": "adpm", "share": "0.2"}},
    )
    for options in questions:
        response = await service.call("POST", path, "analyse", **options)
        assert response.status_code == 201, response.text
        document = response.json()
        assert document["study"] == crowded
        assert "charges" not in document
        shown = await service.call("GET", f"/v1/releases/{document['id']}", "analyse")
        assert shown.content == response.content
        ids.append(document["id"])
    listed = (await service.call("GET", path, "analyse")).json()
    assert [item["id"] for item in listed["items"]] == ids[::-1]
    assert listed["next_cursor"] is None


@pytest.mark.usefixtures("free_attempts")
async def test_a_retried_release_is_the_same_release(service: Service, crowded: str) -> None:
    path = f"/v1/studies/{crowded}/releases"
    headers = {"Idempotency-Key": "once"}
    first = await service.call("POST", path, "analyse", json={"estimator": "adpm"}, headers=headers)
    again = await service.call("POST", path, "analyse", json={"estimator": "adpm"}, headers=headers)
    assert first.content == again.content
    other = await service.call("POST", path, "analyse", json={"estimator": "uniform"}, headers=headers)
    assert_problem(other, "idempotency_key_reused", 409)
    assert (await service.rows())["release"] == 1


async def test_only_admins_see_what_a_release_cost_each_cohort(service: Service, crowded: str) -> None:
    made = await service.call("POST", f"/v1/studies/{crowded}/releases", "analyse", json={"share": 0.1})
    path = f"/v1/releases/{made.json()['id']}"
    seen = (await service.call("GET", path, "admin")).json()
    charges = seen.pop("charges")
    assert seen == made.json()
    assert [(charge["epsilon"], charge["people"]) for charge in charges] == [(0.1, 100)]
    listed = (await service.call("GET", f"/v1/studies/{crowded}/releases", "admin")).json()
    assert listed["items"][0]["charges"] == charges
    ledger = (await service.call("GET", "/v1/admin/ledger", "admin")).json()
    assert ledger["items"][0]["epsilon"] == 0.1
    assert ledger["items"][0]["release"] == made.json()["id"]


async def test_a_study_runs_out_with_a_clear_message(service: Service, crowded: str) -> None:
    path = f"/v1/studies/{crowded}/releases"
    question = {"estimator": "uniform", "share": 0.5, "fresh": True}
    for _ in range(2):
        assert (await service.call("POST", path, "analyse", json=question)).status_code == 201
    response = await service.call("POST", path, "analyse", json=question)
    problem = assert_problem(response, "budget_exhausted", 409)
    assert problem["errors"] == []
    assert not any(character.isdigit() for character in problem["detail"])


async def test_a_secret_study_always_answers_and_hides_its_size(service: Service, secret: str) -> None:
    empty = await service.study(relation="add_remove_one")

    async def plans(more: str = "") -> list[dict[str, Any]]:
        paths = (f"/v1/studies/{study}/plan?expected_size=100{more}" for study in (secret, empty))
        return [(await service.call("GET", path, "analyse")).json() for path in paths]

    before = await plans()
    assert before[0] == before[1]
    for study in (secret, empty):
        for _ in range(3):
            response = await service.call(
                "POST", f"/v1/studies/{study}/releases", "analyse", json={"share": 1}
            )
            assert response.status_code == 201, response.text
    # Noisy numbers choose who takes part, where the question does not say it.
    after = await plans("&least_epsilon=1")
    for plan in after:
        for one in plan["estimators"]:
            # They are predicted for the noisy mean that was published.
            del one["predicted_error"], one["expected_values"]
    assert after[0] == after[1]
    answers = [
        (await service.call("GET", f"/v1/studies/{study}/statistics/mean?share=1", "analyse")).json()
        for study in (secret, empty)
    ]
    assert "new_contributions" not in answers[0]
    assert answers[0].keys() == answers[1].keys()


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("share=0", ("share",)),
        ("share=1.1", ("share",)),
        ("share=-1", ("share",)),
        ("share=NaN", ("share",)),
        ("share=1e-9", ("share",)),
        ("share=half", ("share",)),
        ("share=", ("share",)),
        ("epsilon=0", ("epsilon",)),
        ("epsilon=1e400", ("epsilon",)),
        ("epsilon=1000001", ("epsilon",)),
        ("expected_size=0", ("expected_size",)),
        ("expected_size=1e99", ("expected_size",)),
        ("estimator=", ("estimator",)),
        ("estimator=oracle", ("estimator",)),
        ("estimator=transformed", ("estimator",)),
        ("estimator=kvh&variance=-1", ("variance",)),
        ("estimator=kvh&variance=a-lot", ("variance",)),
        ("estimator=adpm&varianc=1", ("varianc",)),
        ("share=0.1&share=0.1", ("share",)),
        ("share=2&epsilon=0", ("share", "epsilon")),
        ("parameters=x", ("parameters",)),
    ],
)
async def test_a_bad_question_is_refused_and_costs_nothing(
    service: Service, crowded: str, query: str, fields: tuple[str, ...]
) -> None:
    before = await service.rows()
    for method, path in (("GET", "plan"), ("GET", "statistics/mean"), ("POST", "releases")):
        response = await service.call(method, f"/v1/studies/{crowded}/{path}?{query}", "analyse")
        assert_problem(response, "invalid_request", 422, *fields)
    assert await service.rows() == before


@pytest.mark.parametrize(
    ("document", "fields"),
    [
        ('{"share":true}', ("share",)),
        ('{"share":null}', ("share",)),
        ('{"parameters":null}', ("parameters",)),
        ('{"share":[0.1]}', ("share",)),
        ('{"statistic":"mode"}', ("statistic",)),
        ('{"statistic":5}', ("statistic",)),
        ('{"estimator":5}', ("estimator",)),
        ('{"parameters":5}', ("parameters",)),
        ('{"parameters":{"variance":{}},"estimator":"kvh"}', ("variance",)),
        ('{"parameters":{"share":0.1},"share":0.1}', ("share",)),
        ('{"note":"x"}', ("note",)),
        ("[]", ("body",)),
        ("null", ("body",)),
    ],
)
async def test_a_bad_question_in_a_document_is_refused(
    service: Service, crowded: str, document: str, fields: tuple[str, ...]
) -> None:
    response = await service.call(
        "POST",
        f"/v1/studies/{crowded}/releases",
        "analyse",
        content=document,
        headers={"Content-Type": "application/json"},
    )
    assert_problem(response, "invalid_request", 422, *fields)


async def test_the_query_and_the_document_do_not_say_the_same_thing(service: Service, crowded: str) -> None:
    response = await service.call(
        "POST", f"/v1/studies/{crowded}/releases?share=0.1", "analyse", json={"share": 0.1}
    )
    assert_problem(response, "invalid_request", 422, "share")


async def test_the_path_alone_names_the_statistic(service: Service, crowded: str) -> None:
    path = f"/v1/studies/{crowded}/statistics/mean?statistic=mean"
    assert_problem(await service.call("GET", path, "analyse"), "invalid_request", 422, "statistic")
    path = f"/v1/studies/{crowded}/statistics/mode"
    assert_problem(await service.call("GET", path, "analyse"), "not_found", 404)


@pytest.mark.parametrize("release", ["x", "00000000-0000-0000-0000-000000000000", "%00", "1" * 1000])
async def test_an_unknown_release_is_not_found(service: Service, release: str) -> None:
    assert_problem(await service.call("GET", f"/v1/releases/{release}", "analyse"), "not_found", 404)


async def test_releases_are_listed_page_by_page(service: Service, crowded: str) -> None:
    path = f"/v1/studies/{crowded}/releases"
    made = [
        (await service.call("POST", path, "analyse", json={"share": place / 100})).json()["id"]
        for place in range(1, 6)
    ]
    listed: list[str] = []
    cursor: str | None = None
    while True:
        query = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
        page = (await service.call("GET", path, "analyse", params=query)).json()
        listed += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        assert len(page["items"]) == 2
    assert listed == made[::-1]


async def test_a_contribution_learns_what_would_be_used(service: Service, crowded: str) -> None:
    response = await service.call(
        "POST", f"/v1/studies/{crowded}/contributions", "contribute", json={**VALUE, "epsilon": 5}
    )
    # tau = (E2 + 2 / s) / E1 over a hundred people at .1^(3/4), the share that weights are made for where .1
    # is the first one: .63 at s = 1/4, which is 3.53 of whole epsilons, without a tilt; less with a tilt.
    assert response.json()["epsilon"] == 5.0
    assert response.json()["epsilon_used_at_most"] == pytest.approx(3.433447)
    point = await service.call("GET", f"/v1/studies/{crowded}/saturation", "contribute")
    assert point.json()["epsilon"] == pytest.approx(3.433447)


async def test_a_round_of_k_means_does_not_stand_for_the_secret_size(service: Service) -> None:
    """It counts who can pay for its session, here nobody; plans take the noisy count of the last mean."""
    study = await service.study(relation="add_remove_one", trust=["central"])
    await service.crowd(study, 300)
    asked = {"share": 0.2, "least_epsilon": 0.8}
    released = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=asked)
    # 300 people who all offer the level that is asked, .8: two noises of a scale of 1 / (.2 * .8).
    assert 200 < released.json()["noisy_count"] < 400
    before = await service.call("GET", f"/v1/studies/{study}/plan", "analyse")
    wish = {"protocol": "kmeans", "epsilon": 5, "rounds": 2, "centres": [[20], [80]]}
    made = await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json=wish)
    closed = await service.call(
        "POST", f"/v1/sessions/{made.json()['id']}/close-round", "admin", json={"round": 1}
    )
    assert abs(closed.json()["path"][0]["central"]) < 30
    listed = (await service.call("GET", f"/v1/studies/{study}/releases", "analyse")).json()["items"]
    assert [one["statistic"] for one in listed] == ["kmeans", "mean"]
    assert (await service.call("GET", f"/v1/studies/{study}/plan", "analyse")).content == before.content


async def test_a_cursor_says_nothing_of_releases_of_other_studies(service: Service) -> None:
    mine, other = await service.study(), await service.study()
    for study in (mine, other):
        await service.crowd(study)
    for study in (other, mine, other, mine, mine):
        await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={})
    path, found, cursor = f"/v1/studies/{mine}/releases", [], ""
    for _ in range(3):
        page = (await service.call("GET", f"{path}?limit=1{cursor}", "analyse")).json()
        found += [release["id"] for release in page["items"]]
        if page["next_cursor"] is not None:
            text = base64.urlsafe_b64decode(page["next_cursor"] + "==").decode()
            assert text == found[-1], "a cursor holds what the page shows, and nothing else"
            cursor = f"&cursor={page['next_cursor']}"
    assert (len(set(found)), page["next_cursor"]) == (3, None)
    foreign = (await service.call("GET", f"/v1/studies/{other}/releases?limit=1", "analyse")).json()
    await assert_no_cursor(service, path, "analyse", foreign["items"][0]["id"])

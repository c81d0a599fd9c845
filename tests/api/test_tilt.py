"""A study's tilt, and a question's: what it changes, and what it says."""

import pytest

from tests.api.service import Service, assert_problem

SENTENCE = (
    "holds if the mean of those who ask for little privacy differs from the others' by at most "
    "10 % of the range"
)


async def crowded(service: Service, **fields: object) -> str:
    """A study of people with two epsilons, whose weights are unequal without a tilt."""
    study = await service.study(**fields)
    for epsilon, count in ((0.1, 60), (5, 60)):
        for number in range(count):
            body = {
                "subject": f"{study}-{epsilon}-{number}",
                "value": 40,
                "epsilon": epsilon,
                "trust": "central",
            }
            response = await service.call(
                "POST", f"/v1/studies/{study}/contributions", "contribute", json=body
            )
            assert response.status_code == 201, response.text
    return study


async def test_a_study_declares_a_tilt_of_a_tenth_unless_it_says_otherwise(service: Service) -> None:
    shown = {}
    for slug, tilt in {"plain": None, "sure": 0, "wary": 0.2500001}.items():
        body = {"slug": slug, "lower": 0, "upper": 1, **({} if tilt is None else {"tilt": tilt})}
        response = await service.call("POST", "/v1/studies", "admin", json=body)
        assert response.status_code == 201, response.text
        shown[slug] = (await service.call("GET", f"/v1/studies/{slug}", "analyse")).json()["tilt"]
    # A bound is rounded up.
    assert shown == {"plain": 0.1, "sure": 0, "wary": 0.250001}


@pytest.mark.parametrize("tilt", [-0.1, 1.1, "0.1", None])
async def test_a_tilt_that_is_no_part_of_a_range_is_refused(service: Service, tilt: object) -> None:
    body = {"slug": "commute", "lower": 0, "upper": 1, "tilt": tilt}
    response = await service.call("POST", "/v1/studies", "admin", json=body)
    assert_problem(response, "invalid_request", 422, "tilt")


async def test_where_the_number_of_people_is_secret_nothing_is_assumed_by_default(service: Service) -> None:
    body = {"slug": "secret", "lower": 0, "upper": 1, "relation": "add_remove_one"}
    made = await service.call("POST", "/v1/studies", "admin", json=body)
    assert (made.status_code, made.json()["tilt"], made.json()["epsilon"]["min"]) == (201, 0, 0.05)
    path, whatever = "/v1/studies/secret", "holds however privacy and values go together"
    plan = (await service.call("GET", f"{path}/plan", "analyse")).json()
    assert (plan["tilt"], plan["assumption"]) == (1, whatever)
    assert plan["estimators"][0]["predicted_error_at_tilt_0"] is None
    answer = (await service.call("GET", f"{path}/statistics/mean", "analyse")).json()
    assert answer["assumption"] == whatever
    assert answer["least_epsilon"] == answer["most_epsilon"]
    assert "tilt" not in answer["parameters"]
    # To say what holds anyway makes no other question; another tilt does.
    for tilt, same in (("1", True), ("0.1", False), ("0", False)):
        asked = await service.call("GET", f"{path}/statistics/mean", "analyse", params={"tilt": tilt})
        assert (asked.json()["id"] == answer["id"]) is same


async def test_a_secret_study_may_have_a_tilt_of_its_own(service: Service) -> None:
    body = {"slug": "secret", "lower": 0, "upper": 1, "relation": "add_remove_one", "tilt": 0.02}
    made = await service.call("POST", "/v1/studies", "admin", json=body)
    assert (made.status_code, made.json()["tilt"]) == (201, 0.02)
    plan = (await service.call("GET", "/v1/studies/secret/plan", "analyse")).json()
    assert plan["tilt"] == 0.02


@pytest.mark.parametrize("least", [0.01, 0.0499])
async def test_a_secret_study_takes_no_epsilon_whose_answers_are_noise(
    service: Service, least: float
) -> None:
    body = {"slug": "secret", "lower": 0, "upper": 1, "relation": "add_remove_one", "epsilon": {"min": least}}
    assert_problem(
        await service.call("POST", "/v1/studies", "admin", json=body), "invalid_request", 422, "epsilon"
    )
    listed = {"slug": "secret", "lower": 0, "upper": 1, "relation": "add_remove_one", "epsilons": [least, 1]}
    assert (await service.call("POST", "/v1/studies", "admin", json=listed)).status_code == 201


@pytest.mark.long
async def test_a_plan_shows_what_it_assumes_and_what_that_costs(service: Service) -> None:
    study = await crowded(service)
    path = f"/v1/studies/{study}/plan"
    plan = (await service.call("GET", path, "analyse", params={"share": "1"})).json()
    trusting = (await service.call("GET", path, "analyse", params={"share": "1", "tilt": "0"})).json()
    assert (plan["tilt"], plan["assumption"]) == (0.1, SENTENCE)
    assert trusting["assumption"].endswith("does not differ from the others'")
    errors = {row["estimator"]: row for row in plan["estimators"]}
    for row in trusting["estimators"]:
        assert row["predicted_error_at_tilt_0"] == row["predicted_error"]
        tilted = errors[row["estimator"]]
        assert tilted["predicted_error_at_tilt_0"] == row["predicted_error"]
        assert tilted["predicted_error"] >= row["predicted_error"]
    assert errors["adpm"]["predicted_error"] > errors["adpm"]["predicted_error_at_tilt_0"]


@pytest.mark.long
async def test_a_question_may_have_its_own_tilt_and_is_another_question_then(service: Service) -> None:
    study = await crowded(service)
    path = f"/v1/studies/{study}/statistics/mean"
    widths, ids = [], set()
    for tilt in ("0", "0.1", "0.3", None):
        asked = {"share": "0.1", "estimator": "adpm", **({} if tilt is None else {"tilt": tilt})}
        answer = (await service.call("GET", path, "analyse", params=asked)).json()
        assert answer["parameters"]["tilt"] == float(tilt or 0.1)
        assert "assumption" in answer
        widths.append(answer["population_interval"]["upper"] - answer["population_interval"]["lower"])
        ids.add(answer["id"])
    # The study's own tilt, said or not, is one question.
    assert len(ids) == 3
    assert widths[1] == widths[3]
    posted = await service.call(
        "POST", f"/v1/studies/{study}/releases", "analyse", json={"share": 0.1, "tilt": 0.3}
    )
    assert (posted.status_code, posted.json()["parameters"]["tilt"]) == (201, 0.3)


@pytest.mark.parametrize("tilt", ["-0.1", "1.5", "much"])
async def test_a_questions_tilt_is_a_part_of_the_range(service: Service, tilt: str) -> None:
    study = await service.study()
    asked = await service.call("GET", f"/v1/studies/{study}/plan", "analyse", params={"tilt": tilt})
    assert_problem(asked, "invalid_request", 422, "tilt")


@pytest.mark.long
async def test_more_people_saturate_with_a_tilt(service: Service) -> None:
    points = {}
    for tilt in (0, 0.3):
        study = await crowded(service, slug=f"tilt-{tilt * 10:.0f}", tilt=tilt)
        # Without a tilt 5 is below the point, for weights that are made for the first share, and 10 above.
        await service.contribute(study, f"{study}-most", epsilon=10)
        path = f"/v1/studies/{study}/saturation"
        points[tilt] = (await service.call("GET", path, "analyse")).json()["epsilon"]
    assert points[0.3] < points[0]

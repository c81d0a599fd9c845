"""Histograms, distribution functions and quantiles over HTTP: prices, one release, refusals."""

from typing import Any

import pytest
from dither.device.gaussian import epsilon_at, micro_mu2

from app.core.grid import GRID_SIZE
from tests.api.service import Service, assert_problem

GAUSSIAN: dict[str, Any] = {"noise": "gaussian", "delta": 1e-6, "default_share": 0.5}
ADD_REMOVE = {"relation": "add_remove_one", "epsilon": {"min": 1, "max": 1}}


async def get(service: Service, study: str, path: str, **params: Any) -> dict[str, Any]:
    response = await service.call("GET", f"/v1/studies/{study}/{path}", "analyse", params=params)
    assert response.status_code == 200, response.text
    document: dict[str, Any] = response.json()
    return document


async def spent(service: Service, study: str, subject: str) -> float:
    response = await service.call("GET", f"/v1/subjects/{subject}/budget", "admin")
    (entry,) = [one for one in response.json()["studies"] if one["study"] == study]
    return float(entry["spent"])


async def charges(service: Service, answer: dict[str, Any]) -> list[float]:
    """What a release charged each cohort [mu^2]."""
    release = (await service.call("GET", f"/v1/releases/{answer['id']}", "admin")).json()
    return sorted(one["mu2"] for one in release["charges"])


@pytest.mark.parametrize("terms", [{}, ADD_REMOVE])
async def test_a_histogram_and_the_distribution_are_one_release_at_the_price_of_a_mean(
    service: Service, terms: dict[str, Any]
):
    study = await service.study(default_share=0.5, **terms)
    await service.crowd(study, 200)
    question = {"edges": "20,50"}
    histogram = await get(service, study, "statistics/histogram", **question)
    distribution = await get(service, study, "statistics/distribution", edges="0,20,50,100")
    assert histogram["id"] == distribution["id"]
    assert [(one["lower"], one["upper"]) for one in histogram["bins"]] == [(0, 20), (20, 50), (50, 100)]
    assert [(one["lower"], one["upper"]) for one in distribution["bins"]] == [(0, 20), (0, 50), (0, 100)]
    assert sum(one["share"] for one in histogram["bins"]) == pytest.approx(1)
    shares = [one["share"] for one in distribution["bins"]]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    for one in (*histogram["bins"], *distribution["bins"]):
        for name in ("interval", "population_interval", "simultaneous"):
            assert 0 <= one[name]["lower"] <= one["share"] <= one[name]["upper"] <= 1
    assert histogram["epsilon_max"] == 0.5
    assert await spent(service, study, "p7") == 0.5
    secret = bool(terms)
    assert ("people" in histogram) == ("about" not in histogram) == (not secret)
    # Of a secret study all who are asked weigh the same: that assumes nothing of them.
    whatever = "holds however privacy and values go together"
    assert (histogram["assumption"] == distribution["assumption"] == whatever) == secret
    assert ("noisy_count" in histogram) == secret


@pytest.mark.parametrize("terms", [{}, ADD_REMOVE, {"noise": "gaussian", "delta": 1e-6}])
async def test_a_condition_asks_of_some_people_and_charges_only_them(
    service: Service, terms: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    """Half of the people are in the north, with values below 50; the others have larger ones. No noise."""
    for module in ("shapes.plans", "statistics.piece_noise"):
        monkeypatch.setattr(f"app.services.{module}.draw", lambda _noise, queries: (0,) * queries)
    monkeypatch.setattr(
        "app.services.statistics.piece_noise.more_gaussian",
        lambda noisy, exact, _variance, part, _bits: noisy + part * exact,
    )
    study = await service.study(attributes={"region": ["north", "south"]}, default_share=0.5, **terms)
    for number in range(80):
        region = "north" if number < 40 else "south"
        await service.contribute(
            study, f"p{number}", value=number + 5, epsilon=1, attributes={"region": region}
        )
    north, whole = {"where": "region:north", "edges": "50", "share": "0.25"}, {"edges": "50", "share": "0.25"}
    plan = await get(service, study, "plan", statistic="histogram", **north)
    answer = await get(service, study, "statistics/histogram", **north)
    assert answer["where"] == {"region": "north"}
    assert answer["epsilon_max"] == plan["estimators"][0]["epsilon_max"]
    assert [one["share"] for one in answer["bins"]] == [1, 0]
    assert await spent(service, study, "p3") == pytest.approx(answer["epsilon_max"], abs=1e-5)
    assert await spent(service, study, "p70") == 0
    if "relation" not in terms:
        assert answer["people"] == 40
    of_all = await get(service, study, "statistics/histogram", **whole)
    assert of_all["id"] != answer["id"]
    assert "where" not in of_all
    assert [one["share"] for one in of_all["bins"]] == pytest.approx([45 / 80, 35 / 80])
    assert await spent(service, study, "p70") == pytest.approx(of_all["epsilon_max"], abs=1e-5)
    if "noise" not in terms:
        median = await get(service, study, "statistics/median", where="region:south", share="0.25")
        assert median["where"] == {"region": "south"}
    found = {"range": "found", "where": "region:south", "share": "0.25"}
    assert (await get(service, study, "statistics/mean", **found))["where"] == {"region": "south"}
    for refused in ({"where": "region:west"}, {"by": "age"}):
        (field,) = refused
        response = await service.call(
            "GET", f"/v1/studies/{study}/statistics/histogram", "analyse", params=refused
        )
        assert_problem(response, "invalid_request", 422, field)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove_one"])
async def test_a_histogram_with_gaussian_noise_costs_what_a_mean_costs(service: Service, relation: str):
    """mu^2 of epsilon 1 at delta 1e-6 is .056028; a half of it is what a release at that share charges."""
    study = await service.study(
        noise="gaussian", delta=1e-6, relation=relation, epsilon={"min": 1, "max": 1}, default_share=0.5
    )
    await service.crowd(study, 400)
    histogram = await get(service, study, "statistics/histogram", edges="20,50")
    assert histogram["mu2_max"] == pytest.approx(0.056028 / 2, abs=2e-6)
    assert histogram["delta"] == 1e-6
    assert sum(one["share"] for one in histogram["bins"]) == pytest.approx(1)
    plan = await get(service, study, "plan", statistic="histogram", edges="20,50")
    for price in ("epsilon_max", "mu2_max"):
        assert plan["estimators"][0][price] == histogram[price]
    again = await get(service, study, "statistics/distribution", edges="20,50")
    assert again["id"] == histogram["id"]
    assert await spent(service, study, "p7") == pytest.approx(histogram["epsilon_max"], abs=1e-5)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove_one"])
async def test_a_median_with_gaussian_noise_costs_what_a_mean_costs(service: Service, relation: str):
    """Of half of mu^2 = .056028 five levels of counts take sixteenths, rounded down."""
    study = await service.study(**GAUSSIAN, relation=relation, epsilon={"min": 1, "max": 1})
    await service.crowd(study, 400)
    (planned,) = (await get(service, study, "plan", statistic="median"))["estimators"]
    median = await get(service, study, "statistics/median")
    assert median["mu2_max"] == pytest.approx(0.056028 / 2, rel=2e-3)
    assert median["mu2_max"] <= 0.056028 / 2
    assert (median["epsilon_max"], median["mu2_max"]) == (planned["epsilon_max"], planned["mu2_max"])
    # Ranks in the last level are off by about 20 of 400 people: these ends are 160 from the middle.
    assert 10 < median["estimate"] < 90
    # An interval misses once in twenty, whatever the noise; one three times as wide once in a million.
    lower, upper = (median["interval"][end] for end in ("lower", "upper"))
    assert lower <= median["estimate"] <= upper
    assert 2 * lower - upper <= 50 <= 2 * upper - lower
    assert await charges(service, median) == [median["mu2_max"]]
    assert await spent(service, study, "p7") == median["epsilon_max"]
    upper = await get(service, study, "statistics/quantile", q="0.75")
    assert upper["mu2_max"] == pytest.approx(median["mu2_max"], rel=1e-3)
    both = epsilon_at(round((median["mu2_max"] + upper["mu2_max"]) * 1e6), 10**6) / 1e6
    assert await spent(service, study, "p7") == both
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.parametrize("relation", ["replace_one", "add_remove_one"])
async def test_a_description_with_gaussian_noise_charges_the_sum_of_its_parts(
    service: Service, relation: str
):
    # Where it is secret who is there the question says who takes part: all, and below those who offer most.
    of_all, of_some = ({"least_epsilon": one} if relation == "add_remove_one" else {} for one in (1, 10))
    study = await service.study(**GAUSSIAN, relation=relation, epsilon={"min": 1, "max": 10})
    records = [
        {
            "subject": f"p{number}",
            "value": number % 100,
            "epsilon": (1, 5, 10)[number % 3],
            "trust": "central",
        }
        for number in range(399)
    ]
    await service.call("POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=records)
    (planned,) = (await get(service, study, "plan", statistic="describe", **of_all))["estimators"]
    answer = await get(service, study, "statistics/describe", **of_all)
    assert answer["epsilon_max"] == planned["epsilon_max"]
    paid = await charges(service, answer)
    assert len(paid) >= 2
    assert paid[-1] == answer["mu2_max"]
    assert paid[0] == pytest.approx(0.056028 / 2, rel=2e-3)
    assert await spent(service, study, "p0") == epsilon_at(round(paid[0] * 1e6), 10**6) / 1e6
    assert (answer["count"]["estimate"] == 399) == (relation == "replace_one"), "public, or noisy"
    lower, upper = (answer["count"]["interval"][end] for end in ("lower", "upper"))
    assert abs(399 - (lower + upper) / 2) <= 1.5 * (upper - lower), "three half widths: once in 1e8"
    for name in ("mean", "sd"):
        one = answer[name]
        assert one["interval"]["lower"] <= one["estimate"] <= one["interval"]["upper"]
    quartiles = [one["estimate"] for one in answer["quartiles"]]
    assert quartiles == sorted(quartiles)
    spread = await get(service, study, "statistics/sd", **of_some)
    assert spread["mu2_max"] <= micro_mu2(10**7, 10**6) / 2e6
    assert relation == "replace_one" or spread["mu2_max"] > 0.999 * micro_mu2(10**7, 10**6) / 2e6
    assert spread["interval"]["lower"] <= spread["estimate"] <= spread["interval"]["upper"]
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.parametrize("terms", [{}, ADD_REMOVE])
async def test_a_median_is_the_quantile_one_half_and_lies_in_its_interval(
    service: Service, terms: dict[str, Any]
):
    study = await service.study(default_share=0.5, **terms)
    await service.crowd(study, 400)
    median = await get(service, study, "statistics/median")
    quantile = await get(service, study, "statistics/quantile", q="0.50")
    assert median["id"] == quantile["id"]
    assert (median["statistic"], quantile["statistic"]) == ("median", "quantile")
    assert median["interval"]["lower"] <= median["estimate"] <= median["interval"]["upper"]
    wide, narrow = median["population_interval"], median["interval"]
    assert wide["lower"] <= median["estimate"] <= wide["upper"]
    assert wide["upper"] - wide["lower"] >= narrow["upper"] - narrow["lower"]
    # A quarter of 400 people is seven standard deviations of the noise of ranks in the last level.
    assert 25 < median["estimate"] < 75
    assert median["epsilon_max"] <= 0.5
    assert median["parameters"]["q"] == 0.5
    assert await spent(service, study, "p7") == median["epsilon_max"]


@pytest.mark.parametrize("terms", [{}, ADD_REMOVE])
async def test_a_median_of_whole_numbers_is_one_of_them(service: Service, terms: dict[str, Any]):
    """The next age is 150 ranks away, where noise moves a rank by 5: the median is never another one."""
    study = await service.study(lower=0, upper=120, default_share=1, **terms)
    ages = [30] * 150 + [41] * 150 + [42] * 400 + [70] * 200
    records = [
        {"subject": f"p{number}", "value": age, "epsilon": 1, "trust": "central"}
        for number, age in enumerate(ages)
    ]
    path = f"/v1/studies/{study}/contributions/batch"
    assert (await service.call("POST", path, "contribute", json=records)).json()["created"] == len(ages)
    median = await get(service, study, "statistics/median")
    assert median["estimate"] == 42.0
    assert median["interval"]["lower"] <= 42 <= median["interval"]["upper"]


@pytest.mark.parametrize("terms", [{}, ADD_REMOVE])
async def test_a_description_is_one_release_with_one_price_and_its_intervals_cover(
    service: Service, terms: dict[str, Any]
):
    study = await service.study(default_share=1, **terms)
    await service.crowd(study, 400)
    plan = await get(service, study, "plan", statistic="describe")
    (planned,) = plan["estimators"]
    answer = await get(service, study, "statistics/describe")
    assert answer["statistic"] == answer["estimator"] == "describe"
    assert answer["epsilon_max"] == planned["epsilon_max"] == await spent(service, study, "p7") <= 1
    assert answer["epsilon_max"] > 0.9999
    admin = (await service.call("GET", f"/v1/releases/{answer['id']}", "admin")).json()
    assert [one["epsilon"] for one in admin["charges"]] == [answer["epsilon_max"]]
    for name in ("count", "mean", "sd"):
        one = answer[name]
        assert one["interval"]["lower"] <= one["estimate"] <= one["interval"]["upper"]
    quartiles = [one["estimate"] for one in answer["quartiles"]]
    assert [one["q"] for one in answer["quartiles"]] == [0.25, 0.5, 0.75]
    assert quartiles == sorted(quartiles)
    assert (answer["count"]["estimate"] == 400) == (not terms), "public, or noisy"
    assert (await get(service, study, "statistics/describe"))["id"] == answer["id"]
    if terms:
        assert answer["assumption"] == "holds however privacy and values go together"
    else:
        assert "mean of those who ask" in answer["assumption"]
        assert "the values of those who ask" in answer["assumption"]


@pytest.mark.long
async def test_public_people_alone_are_described_as_they_are(service: Service):
    study = await service.study(trust=["public"])
    for number in range(60):
        document = {"subject": f"p{number}", "value": (5, 15, 95)[number % 3], "trust": "public"}
        sent = await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=document)
        assert sent.status_code == 201, sent.text
    answer = await get(service, study, "statistics/describe")
    assert answer["epsilon_max"] == 0
    assert (answer["count"]["estimate"], round(answer["mean"]["estimate"], 6)) == (60, 38.333333)
    step = 100 / GRID_SIZE
    assert [one["estimate"] for one in answer["quartiles"]] == pytest.approx([5, 15, 95], abs=step, rel=0)
    for one, value in zip(answer["quartiles"], (5, 15, 95), strict=True):
        assert value - 2 * step <= one["interval"]["lower"] <= value <= one["interval"]["upper"]
        assert one["interval"]["upper"] <= value + 2 * step
    found = await get(service, study, "statistics/mean", range="found")
    assert found["epsilon_max"] == 0
    (planned,) = (await get(service, study, "plan", range="found"))["estimators"]
    assert planned["gain"] == 1, "there is no noise"


async def test_a_plan_says_what_the_answer_will_cost_and_spends_nothing(service: Service):
    study = await service.study(default_share=0.25)
    await service.crowd(study)
    for statistic, question in (("distribution", {"bins": 4}), ("quantile", {"q": 0.9})):
        plan = await get(service, study, "plan", statistic=statistic, **question)
        (planned,) = plan["estimators"]
        assert planned["chosen"]
        assert planned["answers_left"] == 4
        assert "differ from the others'" in plan["assumption"]
        assert await spent(service, study, "p1") == 0
        answer = await get(service, study, f"statistics/{statistic}", **question)
        assert answer["epsilon_max"] == planned["epsilon_max"]
        assert answer["predicted_error"] == planned["predicted_error"]
        await service.call("POST", "/v1/studies", "admin", json={})
        study = await service.study(default_share=0.25)
        await service.crowd(study)


async def test_each_cohort_pays_by_its_own_epsilon_in_one_release(service: Service):
    study = await service.study(epsilon={"min": 0.1, "max": 10}, tilt=0)
    for number in range(40):
        await service.contribute(study, f"p{number}", value=number, epsilon=(0.1, 10)[number % 2])
    answer = await get(service, study, "statistics/histogram", bins=2, share=1)
    prices = {await spent(service, study, f"p{number}") for number in range(4)}
    assert prices == {0.1, answer["epsilon_max"]}
    assert answer["epsilon_max"] < 10, "some privacy is free"
    releases = await get(service, study, "releases")
    assert [one["id"] for one in releases["items"]] == [answer["id"]]
    admin = await service.call("GET", f"/v1/releases/{answer['id']}", "admin")
    assert sorted(one["epsilon"] for one in admin.json()["charges"]) == sorted(prices)


@pytest.mark.usefixtures("free_attempts")
async def test_post_makes_a_new_answer_and_a_key_makes_one_of_two(service: Service):
    study = await service.study(default_share=0.1)
    await service.crowd(study)
    question = {"statistic": "histogram", "edges": [25, 50], "share": 0.1, "fresh": True}
    path, key = f"/v1/studies/{study}/releases", {"Idempotency-Key": "once"}
    made = [
        await service.call("POST", path, "analyse", json=question, headers=headers)
        for headers in (key, key, {})
    ]
    assert [one.status_code for one in made] == [201] * 3, made[-1].text
    ids = [one.json()["id"] for one in made]
    assert ids[0] == ids[1] != ids[2]
    assert await spent(service, study, "p3") == 0.2
    other = await service.call("POST", path, "analyse", json=question | {"share": 0.2}, headers=key)
    assert_problem(other, "idempotency_key_reused", 409)


async def test_get_reads_the_best_answer_and_a_worse_one_is_refused(service: Service):
    study = await service.study(default_share=0.1)
    await service.crowd(study)
    path = f"/v1/studies/{study}/releases"
    good = await service.call("POST", path, "analyse", json={"statistic": "median", "share": 0.5})
    assert good.status_code == 201, good.text
    worse = await service.call("POST", path, "analyse", json={"statistic": "median", "share": 0.05})
    assert_problem(worse, "no_gain", 409)
    assert (await get(service, study, "statistics/median"))["id"] == good.json()["id"]
    anyway = {"statistic": "median", "share": 0.05, "allow_worse": True}
    assert (await service.call("POST", path, "analyse", json=anyway)).status_code == 201
    assert (await get(service, study, "statistics/median"))["id"] == good.json()["id"]
    assert await spent(service, study, "p3") == 0.55


async def test_what_is_left_is_refused_before_anything_is_spent(service: Service):
    study = await service.study(default_share=0.6)
    await service.crowd(study)
    path = f"/v1/studies/{study}/releases"
    for statistic in ("histogram", "median"):
        first = await service.call("POST", path, "analyse", json={"statistic": statistic, "share": 0.3})
        assert first.status_code == 201, first.text
    refused = await service.call("POST", path, "analyse", json={"statistic": "histogram"})
    assert_problem(refused, "budget_exhausted", 409)
    assert await spent(service, study, "p3") == 0.6


async def test_local_people_are_left_out_and_the_answer_says_why(service: Service):
    study = await service.study(trust=["central", "local", "public"])
    await service.crowd(study, 50)
    for number in range(5):
        document = {"subject": f"l{number}", "report": 0, "epsilon": 1, "trust": "local"}
        sent = await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=document)
        assert sent.status_code == 201, sent.text
    for statistic, people in (("histogram", 55), ("median", 55)):
        answer = await get(service, study, f"statistics/{statistic}")
        assert (answer["people"], answer["people_left_out"]) == (people, 5)
        assert answer["left_out_because"] == "local_reports_not_used"


EMPTY = (
    "mean",
    "variance",
    "sd",
    "median",
    "quantile?q=0.9",
    "histogram",
    "distribution",
    "describe",
    "mean?range=found",
)
PUBLIC_ALONE = ("mean?estimator=adpm", "sum")


@pytest.mark.parametrize(
    ("terms", "statistic"),
    [*(({}, one) for one in (*EMPTY, *PUBLIC_ALONE)), *((ADD_REMOVE, one) for one in EMPTY)],
)
async def test_an_empty_study_says_the_same_to_every_question_and_a_secret_one_answers(
    service: Service, terms: dict[str, Any], statistic: str
):
    study = await service.study(attributes={"region": ["north", "south"]}, **terms)
    path, plan = f"/v1/studies/{study}/statistics/{statistic}", f"/v1/studies/{study}/plan?statistic="
    mark = "&" if "?" in path else "?"
    name, _, parameters = statistic.partition("?")
    question = {"statistic": name, "parameters": dict(one.split("=") for one in parameters.split("&") if one)}
    for ending, of_whom in {
        "": {},
        f"{mark}by=region": {"by": "region"},
        f"{mark}where=region:north": {"where": "region:north"},
    }.items():
        response = await service.call("GET", path + ending, "analyse")
        if terms:
            assert response.status_code == 200, response.text
            continue
        assert_problem(response, "no_contributions", 409)
        document = question | of_whom
        posted = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=document)
        assert_problem(posted, "no_contributions", 409)
        planned = await service.call("GET", plan + (statistic + ending).replace("?", "&"), "analyse")
        assert planned.json()["estimators"] == []
        assert planned.json()["refusal"]["code"] == "no_contributions"
        assert planned.json()["in_words"] == "no person who is asked has a contribution now"


async def test_measures_without_people_and_people_who_have_left_are_no_contributions_either(
    service: Service,
):
    measures = {
        "age": {"lower": 0, "upper": 100},
        "income": {"lower": 0, "upper": 1000},
        "way": {"choices": ["bus", "foot"]},
        "place": {"lower": 0, "upper": 1, "dimension": 2},
    }
    study = await service.study(lower=None, upper=None, measures=measures)
    for asked in (
        "mean?measure=age",
        "mean?measure=place",
        "shares?measure=way",
        "covariance?measures=age,income",
    ):
        response = await service.call("GET", f"/v1/studies/{study}/statistics/{asked}", "analyse")
        assert_problem(response, "no_contributions", 409)
    for answered in (False, True):
        left = await service.study(attributes={"region": ["north", "south"]})
        await service.contribute(left, "ann", attributes={"region": "north"})
        for statistic in ("mean", "histogram", "median") if answered else ():
            await get(service, left, f"statistics/{statistic}")
        await service.call("DELETE", f"/v1/studies/{left}/contributions/ann", "contribute")
        for statistic in ("mean", "histogram", "median"):
            for of_whom in (dict[str, str](), {"by": "region"}):
                one = {"statistic": statistic, **of_whom}
                response = await service.call("POST", f"/v1/studies/{left}/releases", "analyse", json=one)
                assert_problem(response, "no_contributions", 409)


async def test_local_people_alone_have_no_histogram(service: Service):
    study = await service.study(trust=["local"])
    document = {"subject": "ann", "report": 0, "epsilon": 1, "trust": "local"}
    await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=document)
    response = await service.call("GET", f"/v1/studies/{study}/statistics/median", "analyse")
    assert_problem(response, "estimator_not_applicable", 409)


async def test_public_people_alone_are_counted_as_they_are(service: Service):
    study = await service.study(trust=["public"])
    for number in range(30):
        document = {"subject": f"p{number}", "value": (5, 15, 95)[number % 3], "trust": "public"}
        sent = await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=document)
        assert sent.status_code == 201, sent.text
    answer = await get(service, study, "statistics/histogram", edges="10,20")
    assert [round(one["share"], 4) for one in answer["bins"]] == [0.3333, 0.3333, 0.3333]
    assert answer["epsilon_max"] == 0
    median = await get(service, study, "statistics/median")
    assert median["estimate"] == pytest.approx(15, abs=100 / GRID_SIZE, rel=0)


@pytest.mark.parametrize(
    ("statistic", "question", "field"),
    [
        ("histogram", {"edges": "50,20"}, "edges"),
        ("histogram", {"edges": "20,x"}, "edges"),
        ("histogram", {"edges": "20,101"}, "edges"),
        ("histogram", {"edges": "0,100"}, "edges"),
        ("histogram", {"edges": "20", "bins": "4"}, "bins"),
        ("histogram", {"bins": "1"}, "bins"),
        ("histogram", {"bins": "101"}, "bins"),
        ("distribution", {"bins": "2.5"}, "bins"),
        ("distribution", {"q": "0.5"}, "q"),
        ("histogram", {"estimator": "adpm"}, "estimator"),
        ("histogram", {"expected_size": "10"}, "expected_size"),
        ("quantile", {}, "q"),
        ("quantile", {"q": "0"}, "q"),
        ("quantile", {"q": "1"}, "q"),
        ("quantile", {"q": "0.1234567"}, "q"),
        ("quantile", {"q": "nan"}, "q"),
        ("median", {"q": "0.5"}, "q"),
        ("median", {"candidates": "9"}, "candidates"),
        ("median", {"for": "both"}, "for"),
        ("histogram", {"for": "estimate"}, "for"),
        ("median", {"edges": "5"}, "edges"),
        ("describe", {"q": "0.5"}, "q"),
        ("describe", {"candidates": "1001"}, "candidates"),
    ],
)
async def test_a_question_that_makes_no_sense_names_its_field(
    service: Service, statistic: str, question: dict[str, str], field: str
):
    study = await service.study()
    path = f"/v1/studies/{study}"
    response = await service.call("GET", f"{path}/statistics/{statistic}", "analyse", params=question)
    assert_problem(response, "invalid_request", 422, field)
    posted = await service.call(
        "POST", f"{path}/releases", "analyse", json={"statistic": statistic, **question}
    )
    assert_problem(posted, "invalid_request", 422, field)
    planned = await service.call(
        "GET", f"{path}/plan", "analyse", params={"statistic": statistic, **question}
    )
    assert_problem(planned, "invalid_request", 422, field)


@pytest.mark.parametrize("statistic", ["median", "describe"])
@pytest.mark.parametrize("terms", [{}, ADD_REMOVE, GAUSSIAN])
async def test_for_the_estimate_is_another_question_at_the_same_price_and_for_the_interval_is_none(
    service: Service, statistic: str, terms: dict[str, Any]
):
    study = await service.study(**{**terms, "default_share": 0.5})
    await service.crowd(study, 200)
    plain = await get(service, study, f"statistics/{statistic}")
    said = await get(service, study, f"statistics/{statistic}", **{"for": "interval"})
    assert (said["id"], said["parameters"]) == (plain["id"], plain["parameters"])
    planned = await get(service, study, "plan", statistic=statistic, **{"for": "estimate"})
    (row,) = planned["estimators"]
    posted = {"statistic": statistic, "parameters": {"for": "estimate"}, "share": 0.5}
    made = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=posted)
    nearer = await get(service, study, f"statistics/{statistic}", **{"for": "estimate"})
    assert nearer["id"] == made.json()["id"]
    assert nearer["id"] != plain["id"]
    assert nearer["parameters"] == plain["parameters"] | {"for": "estimate"}
    assert nearer["epsilon_max"] == pytest.approx(plain["epsilon_max"], rel=1e-3)
    assert nearer["epsilon_max"] == row["epsilon_max"]
    if statistic == "median" and terms is not ADD_REMOVE:
        assert nearer["predicted_error"] < plain["predicted_error"]


async def test_a_tilt_of_a_secret_size_is_another_question(service: Service):
    secret = await service.study(**ADD_REMOVE)
    plain = await get(service, secret, "statistics/histogram")
    tilted = await get(service, secret, "statistics/histogram", tilt=0.1)
    assert tilted["id"] != plain["id"]
    assert (tilted["parameters"]["tilt"], "tilt" in plain["parameters"]) == (0.1, False)
    counted = await service.call(
        "GET", f"/v1/studies/{secret}/statistics/count", "analyse", params={"tilt": 0.1}
    )
    assert_problem(counted, "invalid_request", 422, "tilt")


async def test_a_mean_still_steers_by_the_last_mean_and_withdrawn_people_are_not_counted(service: Service):
    study = await service.study(default_share=0.2)
    await service.crowd(study, 60)
    mean = await get(service, study, "statistics/mean")
    await get(service, study, "statistics/histogram")
    again = await get(service, study, "statistics/mean")
    assert mean["id"] == again["id"]
    for number in range(30):
        gone = await service.call("DELETE", f"/v1/studies/{study}/contributions/p{number}", "contribute")
        assert gone.status_code == 204
    answer = await get(service, study, "statistics/histogram", bins=2)
    assert answer["people"] == 30
    assert (await service.call("GET", f"/v1/studies/{study}/releases", "observe")).status_code == 403

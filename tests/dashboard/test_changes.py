"""Forms that change a study: what they change, what they refuse, and what stays of what was written."""

import re

import pytest

from tests.api.service import Service
from tests.dashboard.browser import Browser, text_of


@pytest.fixture
async def study(service: Service) -> str:
    slug = await service.study(slug="walks", title="How far?", series="weekly", description="On foot.")
    await service.crowd(slug, 40)
    return slug


async def test_what_is_said_of_a_study_is_changed_on_its_page(admin: Browser, service: Service, study: str):
    await admin.get("/dashboard/studies/walks")
    assert "in the series weekly" in text_of(admin.page)
    change = {"title": "How far <i>today</i>?", "description": "On foot.\r\nOne way.", "reason": "clearer"}
    assert (await admin.post("/dashboard/studies/walks/edit", change)).status_code == 303
    await admin.get("/dashboard/studies/walks")
    assert "How far &lt;i&gt;today&lt;/i&gt;?" in admin.page
    stored = (await service.call("GET", "/v1/studies/walks", "admin")).json()
    assert stored["description"] == "On foot.\nOne way."
    refused = await admin.post("/dashboard/studies/walks/edit", {**change, "title": "Mine", "reason": ""})
    assert refused.status_code == 422
    assert "reason is required" in text_of(admin.page)
    assert 'value="Mine"' in admin.page, "what was written stays"
    await admin.get("/dashboard/audit?target=walks")
    assert "clearer" in text_of(admin.page)


async def test_a_study_is_archived_with_a_reason(admin: Browser, service: Service, study: str):
    await admin.get("/dashboard/studies/walks")
    assert "What a release would cost" in text_of(admin.page)
    refused = await admin.post("/dashboard/studies/walks/archive", {"reason": ""})
    assert refused.status_code == 422
    assert "reason is required" in text_of(admin.page)
    assert (await admin.post("/dashboard/studies/walks/archive", {"reason": "week 1"})).status_code == 303
    await admin.get("/dashboard/studies/walks")
    text = text_of(admin.page)
    assert "This study has ended" in text
    assert "Archive walks" not in text
    assert "would cost" not in text
    assert "Preview the price" not in text
    assert "Look for an answer that stands" in text
    assert "Close walks" not in text
    assert (await service.call("GET", "/v1/subjects/p0/budget", "admin")).json()["epsilon"]["reserved"] == 0
    await admin.get("/dashboard/audit?target=walks")
    assert "week 1" in text_of(admin.page)


async def test_the_form_of_a_new_study_has_its_description_and_series(
    admin: Browser, service: Service, study: str
):
    await admin.get("/dashboard/new-study?like=walks")
    assert "On foot.</textarea>" in admin.page
    fields = {
        "slug": "walks-2",
        "lower": "0",
        "upper": "1",
        "trust_central": "on",
        "description": "On\r\nfoot.",
        "series": "weekly",
        "attributes": "region: north, south\r\nage: -29 , 30-",
    }
    odd = await admin.post("/dashboard/new-study", {**fields, "attributes": "region"})
    assert odd.status_code == 422
    assert "region: north, south" in admin.page
    assert (await admin.post("/dashboard/new-study", fields)).status_code == 303
    made = (await service.call("GET", "/v1/studies/walks-2", "admin")).json()
    assert (made["description"], made["series"]) == ("On\nfoot.", "weekly")
    assert made["attributes"] == {"region": ["north", "south"], "age": ["-29", "30-"]}
    await admin.get("/dashboard/new-study?like=walks-2")
    assert "region: north, south\nage: -29, 30-</textarea>" in admin.page
    await admin.get("/dashboard/studies?series=weekly")
    assert admin.page.count('class="pill open"') == 2


async def test_the_tilt_of_a_study_is_chosen_and_duplicated(admin: Browser, service: Service) -> None:
    await admin.get("/dashboard/new-study")
    assert 'placeholder="0.1"' in admin.page[admin.page.index('id="tilt"') :].partition(">")[0]
    fields = {"slug": "tilted", "lower": "0", "upper": "1", "trust_central": "on", "tilt": "0.25"}
    refused = await admin.post("/dashboard/new-study", {**fields, "tilt": "2"})
    assert refused.status_code == 422
    assert (await admin.post("/dashboard/new-study", fields)).status_code == 303
    assert (await service.call("GET", "/v1/studies/tilted", "admin")).json()["tilt"] == 0.25
    await admin.get("/dashboard/new-study?like=tilted")
    assert 'id="tilt" name="tilt" value="0.25"' in admin.page
    # It is left out for the default, which assumes nothing in a secret study: so does the copy of one.
    for slug, relation, given, tilt, copied in (
        ("plain", "replace_one", "", 0.1, "0.1"),
        ("hidden", "add_remove_one", "", 0, ""),
        ("hidden-tilted", "add_remove_one", "0.25", 0.25, "0.25"),
    ):
        form = {**fields, "slug": slug, "relation": relation, "tilt": given}
        assert (await admin.post("/dashboard/new-study", form)).status_code == 303
        assert (await service.call("GET", f"/v1/studies/{slug}", "admin")).json()["tilt"] == tilt
        await admin.get(f"/dashboard/new-study?like={slug}")
        assert f'id="tilt" name="tilt" value="{copied}"' in admin.page


async def test_a_refused_form_says_so_in_view_and_at_each_field(admin: Browser, study: str) -> None:
    study_form = {"slug": "No", "lower": "1", "upper": "0", "epsilon_min": "x", "trust_local": "on"}
    study_form |= {"relation": "add_remove_one", "tilt": "1.5"}
    study_wrong = {"slug": "a to z", "upper": "above lower", "epsilon_min": "decimal", "tilt": "1"}
    study_wrong |= {"trust": "who is there"}
    labels = {"slug": "No", "attributes": "region", "trust_central": "on"}
    labels_wrong = {"slug": "a to z", "attributes": "region: north", "upper": "1 or 1000"}
    measures_wrong = {"slug": "a to z", "attributes": "region: north", "measures": "income: 0, 9000"}
    token = {"name": "x", "role": "analyse"}
    pages: list[tuple[str, str, dict[str, str], dict[str, str]]] = [
        ("/new-study", "/new-study", study_form, study_wrong),
        ("/new-study", "/new-study", labels | {"lower": "0", "upper": "1.000"}, labels_wrong),
        ("/new-study", "/new-study", labels | {"kind": "several", "measures": "age"}, measures_wrong),
        ("/tokens", "/tokens", token | {"name": ""}, {"name": "required"}),
        ("/tokens", "/tokens", token | {"studies": "none"}, {"studies": "no study none"}),
        ("/budgets", "/budgets/lifetime", {"subject": "p0", "epsilon": "x"}, {"epsilon": "", "reason": ""}),
        ("/studies/walks", "/studies/walks/edit", {"title": "?" * 201, "reason": "so"}, {"title": ""}),
    ]
    for page, path, fields, wrong in pages:
        await admin.get(f"/dashboard{page}")
        assert "autofocus" not in admin.page
        refused = await admin.post(f"/dashboard{path}", fields)
        assert refused.status_code == 422, path
        assert '<div class="notice bad" role="alert" tabindex="-1" autofocus>' in admin.page
        for name, reason in wrong.items():
            said = re.search(rf'<p class="wrong" id="e-{name}">([^<]*)</p>', admin.page)
            assert said is not None, (path, name)
            assert reason in said[1]
        marked = re.findall(r'aria-describedby="[^"]*e-(\w+)" aria-invalid="true"', admin.page)
        assert sorted(marked) == sorted(wrong), path


async def test_a_study_of_measures_is_made_duplicated_and_asked_by_measure(
    admin: Browser, analyst: Browser, service: Service
):
    await admin.get("/dashboard/new-study")
    fields = {"slug": "household", "trust_central": "on", "dimension": "1"}
    for wrong in ("income", "income: 0", "income: 0, 9000\nincome: 0, 1"):
        odd = await admin.post("/dashboard/new-study", {**fields, "measures": wrong})
        assert odd.status_code == 422
    measures = "income: 0, 9000\r\nage: 18, 98\r\nparty: red | green\r\nplace: 0, 1, 2"
    assert (await admin.post("/dashboard/new-study", {**fields, "measures": measures})).status_code == 303
    made = (await service.call("GET", "/v1/studies/household", "admin")).json()
    ends = [(one["lower"], one["upper"]) for one in made["measures"].values()]
    assert ends == [(0, 9000), (18, 98), (0, 1), (0, 1)]
    assert made["measures"]["place"]["dimension"] == 2
    assert made["measures"]["party"]["choices"] == ["red", "green"]
    await admin.get("/dashboard/new-study?like=household")
    assert "income: 0, 9000\nage: 18, 98\nparty: red | green\nplace: 0, 1, 2</textarea>" in admin.page
    ada = {
        "subject": "ada",
        "values": {"income": 9000, "age": 18, "party": "red", "place": [0, 1]},
        "epsilon": 4,
        "trust": "central",
    }
    await service.call("POST", "/v1/studies/household/contributions", "contribute", json=ada)
    await analyst.get("/dashboard/studies/household")
    assert "<dt>Range of age</dt><dd>18 to 98</dd>" in analyst.page
    assert "<dt>Choices of party</dt><dd>red, green</dd>" in analyst.page
    assert '<option value="income" selected>' in analyst.page
    await analyst.get("/dashboard/studies/household?measure=age")
    assert '<option value="age" selected>' in analyst.page
    assert "would charge no person more than" in text_of(analyst.page)
    made = await service.call("POST", "/v1/studies/household/releases", "analyse", json={"measure": "age"})
    await analyst.get(f"/dashboard/releases/{made.json()['id']}")
    assert "About the measure age." in analyst.page
    await analyst.get("/dashboard/studies/household?statistic=shares")
    assert '<option value="party" selected>' in analyst.page
    await analyst.get("/dashboard/studies/household?measure=place")
    assert "<dt>Range of place</dt><dd>0 to 1<small>2 coordinates</small></dd>" in analyst.page
    assert "of the mean of each coordinate" in text_of(analyst.page)
    made = await service.call("POST", "/v1/studies/household/releases", "analyse", json={"measure": "place"})
    await analyst.get(f"/dashboard/releases/{made.json()['id']}")
    assert "The mean of each coordinate" in analyst.page
    assert "About the measure place." in analyst.page
    await service.call("GET", "/v1/studies/household/statistics/shares?measure=party", "analyse")
    await analyst.get("/dashboard/studies/household")
    assert "The shares of the choices" in analyst.page
    await analyst.get("/dashboard/studies/household?measure=age")
    assert ", age</a> <small>by " in analyst.page


@pytest.mark.parametrize(
    ("measure", "value"),
    [("income: 0, 9000", 1200), ("party: red | green", "red"), ("place: 0, 1, 2", [0, 1])],
)
async def test_a_study_of_one_measure_is_made_duplicated_and_asked(
    admin: Browser, analyst: Browser, service: Service, measure: str, value: object
):
    fields = {"trust_central": "on", "dimension": "1", "measures": measure}
    await admin.get("/dashboard/new-study")
    assert (await admin.post("/dashboard/new-study", {**fields, "slug": "one"})).status_code == 303
    await admin.get("/dashboard/new-study?like=one")
    form = dict(re.findall(r'<input id="(\w+)" name="\w+" value="([^"]*)"', admin.page))
    assert (form["lower"], form["upper"], form["choices"], form["dimension"]) == ("", "", "", "1")
    assert f"{measure}</textarea>" in admin.page
    assert (await admin.post("/dashboard/new-study", {**fields, **form, "slug": "like"})).status_code == 303
    name, _, _ = measure.partition(":")
    ada = {"subject": "ada", "values": {name: value}, "epsilon": 4, "trust": "central"}
    await service.call("POST", "/v1/studies/one/contributions", "contribute", json=ada)
    await analyst.get("/dashboard/studies/one")
    assert f" of {name}</dt>" in analyst.page
    assert 'name="measure"' not in analyst.page
    assert "would charge no person more than" in text_of(analyst.page)


async def test_the_page_of_a_release_by_labels_has_a_row_for_each(admin: Browser, service: Service):
    slug = await service.study(attributes={"region": ["north", "south"]})
    await service.contribute(slug, "ada", 40, 5, attributes={"region": "south"})
    await admin.get(f"/dashboard/studies/{slug}?statistic=mean&by=region")
    assert "north, south" in admin.page
    assert '<option value="region" selected>' in admin.page
    made = await service.call("POST", f"/v1/studies/{slug}/releases", "analyse", json={"by": "region"})
    await admin.get(f"/dashboard/releases/{made.json()['id']}")
    assert '<th scope="row">north</th><td class="num">0</td><td class="num">-</td>' in admin.page
    assert '<th scope="row">south</th><td class="num">1</td>' in admin.page
    made = await service.call(
        "POST", f"/v1/studies/{slug}/releases", "analyse", json={"where": "region:south"}
    )
    await admin.get(f"/dashboard/releases/{made.json()['id']}")
    assert "Of the people with region south." in admin.page


async def test_an_end_of_a_range_that_may_mean_two_numbers_is_asked_back(
    admin: Browser, service: Service
) -> None:
    await admin.get("/dashboard/new-study")
    fields = {"slug": "wages", "lower": "0", "upper": "15.000", "trust_central": "on"}
    assert (await admin.post("/dashboard/new-study", fields)).status_code == 422
    assert "15.000 may mean 15 or 15000: write it like that" in text_of(admin.page)
    measures = {"slug": "wages", "trust_central": "on"}
    for wrong in ("pay: 0, 15.000", "place: -1.500, 15, 2"):
        assert (await admin.post("/dashboard/new-study", {**measures, "measures": wrong})).status_code == 422
        assert "may mean" in text_of(admin.page)
    # The third number would be how many coordinates a value has.
    for wrong in ("pay: 0, 1,500", "mark: 1, 5,5", "mark: 1,5, 10"):
        assert (await admin.post("/dashboard/new-study", {**measures, "measures": wrong})).status_code == 422
        assert f"{wrong} may have a comma before decimals: write them with a point" in text_of(admin.page)
    for slug, right in (("spaced", "place: 0, 5, 2"), ("close", "place:0,5,2")):
        form = {**measures, "slug": slug, "measures": right}
        assert (await admin.post("/dashboard/new-study", form)).status_code == 303
    # What is shown of a study can be sent again.
    for slug, upper, shown in (("wages", "1.2340", "1.2340"), ("wages-2", "+15.", "15")):
        form = {**fields, "slug": slug, "upper": upper}
        assert (await admin.post("/dashboard/new-study", form)).status_code == 303
        await admin.get(f"/dashboard/new-study?like={slug}")
        assert f'name="upper" value="{shown}"' in admin.page


async def test_a_range_that_keeps_no_whole_numbers_apart_is_warned_of_once(
    admin: Browser, service: Service
) -> None:
    await admin.get("/dashboard/new-study")
    assert 'name="coarse"' not in admin.page
    fields = {"slug": "wide", "lower": "0", "upper": "1000000000000", "trust_central": "on"}
    several = {"slug": "wide-2", "trust_central": "on", "measures": "pay: 0, 1e12\nage: 0, 120"}
    for form in (fields, several):
        assert (await admin.post("/dashboard/new-study", form)).status_code == 422
        assert "values of a range this wide are kept to 931" in text_of(admin.page)
        assert 'name="coarse"' in admin.page
        assert (await admin.post("/dashboard/new-study", {**form, "coarse": "on"})).status_code == 303
    await admin.get("/dashboard/studies/wide")
    assert "values are kept to 931" in text_of(admin.page)
    made = (await service.call("GET", "/v1/studies/wide-2", "admin")).json()
    assert made["step"] is None
    assert [one["step"] for one in made["measures"].values()] == [10**12 / 2**30, 120 / 2**30]


async def test_a_study_is_made_after_one_sentence_of_what_people_agree_to(
    admin: Browser, service: Service
) -> None:
    await admin.get("/dashboard/new-study")
    text = text_of(admin.page)
    asked = ["What do you ask people for?", "Range from", "Whom people may trust", "How much privacy"]
    places = [text.index(one) for one in (*asked, "For experts", "Tilt")]
    assert places == sorted(places)
    assert '<details class="more"><summary>For experts' in admin.page
    # What is of another kind stays in the form and says nothing of the study.
    form = {
        "kind": "number",
        "title": "Wie weit ist der Weg?",
        "slug": "",
        "lower": "0",
        "upper": "120",
        "choices": "red, green",
        "measures": "income",
        "trust_central": "on",
        "steps": "usual",
        "noise": "laplace",
        "relation": "replace_one",
    }
    shown = await admin.post("/dashboard/new-study/terms", form)
    assert shown.status_code == 200
    assert "a number from 0 to 120, kept in steps of 0.000000112" in text_of(admin.page)
    assert "at most 63, 74 or 89 times in 100 instead of 50" in text_of(admin.page)
    assert (await service.call("GET", "/v1/studies/wie-weit-ist-der-weg", "admin")).status_code == 404
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', admin.page))
    made = await admin.post("/dashboard/new-study", {name: hidden.get(name, "") for name in form})
    assert made.headers["location"] == "/dashboard/studies/wie-weit-ist-der-weg"
    study = (await service.call("GET", "/v1/studies/wie-weit-ist-der-weg", "admin")).json()
    assert (study["upper"], study["choices"], study["epsilons"]) == (120, [], [0.5, 1, 2])


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"kind": "number", "lower": "", "upper": ""}, "lower"),
        ({"kind": "choice"}, "choices"),
        ({"kind": "several"}, "measures"),
        ({"kind": "else"}, "kind"),
        ({"steps": "else"}, "steps"),
        ({"steps": "light", "epsilons": "1, 2"}, "steps"),
        ({"upper": "0"}, "upper"),
        ({"relation": "add_remove_one", "trust_local": "on"}, "trust"),
        ({"slug": "", "title": "?"}, "slug"),
    ],
)
@pytest.mark.parametrize("path", ["/dashboard/new-study", "/dashboard/new-study/terms"])
async def test_a_study_that_cannot_be_is_refused_before_and_after_its_sentence(
    admin: Browser, fields: dict[str, str], field: str, path: str
) -> None:
    form = {"kind": "number", "slug": "no", "lower": "0", "upper": "9", "trust_central": "on"} | fields
    await admin.get("/dashboard/new-study")
    assert (await admin.post(path, form)).status_code == 422
    assert f'<p class="wrong" id="e-{field}">' in admin.page
    assert "What people agree to</h2>" not in admin.page


async def test_a_question_of_which_no_address_can_be_made_says_so(admin: Browser) -> None:
    form = {"kind": "number", "title": "Сколько вам лет?", "lower": "0", "upper": "9", "trust_central": "on"}
    await admin.get("/dashboard/new-study")
    assert (await admin.post("/dashboard/new-study/terms", {**form, "slug": ""})).status_code == 422
    assert "cannot be made of this question: give one" in text_of(admin.page)
    assert (await admin.post("/dashboard/new-study/terms", {**form, "slug": "age"})).status_code == 200

"""Estimators of other distributions: allowed by a setting, and priced by the service whatever they say."""

import tomllib
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, ClassVar

import pytest

from app.core.cohort import Cohort, Group
from app.core.errors import ServiceError
from app.core.noise import DiscreteLaplace
from app.core.study import Relation, StudyDefinition, Trust
from app.estimators import registry
from app.estimators.interface import (
    UNIT_SCALE,
    Conclusion,
    Interval,
    NotApplicable,
    Parameter,
    Plan,
    Query,
    Question,
)
from app.main import create_app
from app.services.statistics import planning
from app.services.statistics.crowds import Crowd
from app.services.statistics.questions import Ask, resolve
from app.settings import Settings, SettingsError
from tests.api.service import Service, assert_problem
from tests.support.forgery import tampered
from tests.support.live import ROOT

UNIT = int(1e6)


class Greedy:
    """Says that it errs by nothing, and weighs people as its subclass likes."""

    name: ClassVar[str] = "greedy"
    version: ClassVar[int] = 1
    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    summary: ClassVar[str] = "Free, and exact."
    weight: ClassVar[float] = 0.0
    scale: ClassVar[float] = UNIT_SCALE

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        weights = tuple(
            self.weight if group.trust is Trust.CENTRAL and group.participates else 0 for group in groups
        )
        return Plan(
            queries=(Query(sum_weights=weights, count_weights=(0,) * len(groups)),),  # type: ignore[arg-type]  # a float, too
            noise=DiscreteLaplace(scales=(self.scale,)),
            predicted_error=0.0,
            conclude=self.conclude,
        )

    def conclude(self, values: Sequence[int]) -> Conclusion:
        interval = Interval(level=0.95, lower=0.0, upper=0.0, coverage="exact")
        return Conclusion(estimate=0.0, standard_error=0.0, interval=interval, population_interval=interval)


class Honest(Greedy):
    """A weight of 1/20 under noise for 1: it costs 0.05, whatever the summary says."""

    name = "honest"
    weight = UNIT // 20


class Heavy(Greedy):
    """Ten times what everybody offered."""

    name = "heavy"
    weight = 10 * UNIT


class Quiet(Greedy):
    """A weight that looks cheap, under a thousandth of the noise that it would take."""

    name = "quiet"
    weight = UNIT // 20
    scale = UNIT_SCALE / 1000


class Fractional(Greedy):
    """A weight that is no integer: the sum would carry a value in its low bits."""

    name = "fractional"
    weight = 0.1


class Planted:
    """An entry point."""

    def __init__(self, kind: type[Any], name: str = "") -> None:
        self.name = name or kind.name
        self._kind = kind

    def load(self) -> type[Any]:
        return self._kind


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    found = [Planted(kind) for kind in (Honest, Heavy, Quiet, Fractional)]
    monkeypatch.setattr(registry, "entry_points", lambda group: found)
    yield
    registry.allow(())


async def test_an_installed_estimator_answers_only_where_a_setting_allows_it(
    service: Service, planted: None
) -> None:
    study = await service.study()
    await service.crowd(study, 30)
    path = f"/v1/studies/{study}/releases"
    refused = await service.call("POST", path, "analyse", json={"estimator": "honest"})
    assert_problem(refused, "invalid_request", 422)
    registry.allow(["honest"])
    assert (await service.call("POST", path, "analyse", json={"estimator": "honest"})).status_code == 201
    assert (await service.call("POST", path, "analyse", json={"estimator": "heavy"})).status_code == 422


async def test_an_estimator_that_calls_itself_free_is_charged_what_its_queries_cost(
    service: Service, planted: None
) -> None:
    registry.allow(["all"])
    study = await service.study()
    await service.crowd(study, 30)
    path = f"/v1/studies/{study}/releases"
    answer = await service.call("POST", path, "analyse", json={"estimator": "honest"})
    assert answer.status_code == 201
    assert answer.json()["epsilon_max"] == 0.05
    charges = await service.call("GET", f"/v1/admin/ledger?release={answer.json()['id']}", "admin")
    assert {charge["epsilon"] for charge in charges.json()["items"]} == {0.05}


@pytest.mark.parametrize("name", ["heavy", "quiet", "fractional"])
async def test_a_greedy_estimator_cannot_understate_its_price(
    service: Service, planted: None, name: str
) -> None:
    """It would take more than was offered, or what has no price: there is no answer, and no charge."""
    registry.allow(["all"])
    study = await service.study()
    await service.crowd(study, 30)
    before = {table: count for table, count in (await service.rows()).items() if table != "cohort"}
    answer = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={"estimator": name})
    assert answer.status_code == 500
    assert "estimate" not in answer.json()
    after = {table: count for table, count in (await service.rows()).items() if table != "cohort"}
    assert after == before  # people were folded into a cohort, which says nothing


class Counting:
    """Of secret studies: its noise, and how far it says to err, tell how many people there are."""

    name: ClassVar[str] = "counting"
    version: ClassVar[int] = 1
    relation: ClassVar[Relation] = Relation.ADD_REMOVE_ONE
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    summary: ClassVar[str] = "Tells what it sees."

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        return Plan(
            queries=(Query(sum_weights=(1,) * len(groups), count_weights=(0,) * len(groups)),),
            noise=DiscreteLaplace(scales=(UNIT_SCALE,)),
            predicted_error=float(sum(group.count for group in groups)),
            conclude=Greedy().conclude,
        )


class Refusing(Counting):
    """Never has an answer."""

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        raise NotApplicable("This estimator has no answer to such a question.")


SECRET = StudyDefinition(
    slug="secret",
    title="Secret",
    lower=Decimal(0),
    upper=Decimal(1),
    relation=Relation.ADD_REMOVE_ONE,
    trust=frozenset({Trust.CENTRAL}),
    epsilon_min=UNIT // 10,
    epsilon_max=UNIT,
    default_share=UNIT // 10,
)


def planned(estimator: Counting, *cohorts: tuple[int, int]) -> tuple[object, ...]:
    """What the service knows by a plan for cohorts of that many people, who have spent that much."""
    there = [
        Cohort(
            id=1 + place,
            trust=Trust.CENTRAL,
            epsilon=UNIT,
            carried=0,
            spent=spent,
            count=count,
            total=0,
            total_squares=0,
        )
        for place, (count, spent) in enumerate(cohorts)
    ]
    resolved = resolve(SECRET, Ask())
    try:
        _, plan, _ = planning.choose(
            SECRET,
            Crowd.of(SECRET, there, resolved),
            resolved,
            resolved.question(SECRET, people=None),
            [estimator],
        )
    except ServiceError as refusal:
        return type(refusal), refusal.detail
    return plan.queries, plan.noise, plan.predicted_error


def test_how_many_people_there_are_is_secret_from_an_installed_estimator() -> None:
    assert planned(Counting(), (1, 0)) == planned(Counting(), (700, 0))


def test_what_people_have_left_is_secret_from_who_reads_an_estimator_s_refusal() -> None:
    there = [(), ((1, 0),), ((1, 0), (1, UNIT)), ((9, UNIT),)]
    [(refused, _)] = {planned(Refusing(), *cohorts) for cohorts in there}
    assert refused is NotApplicable


def test_a_setting_that_allows_what_is_not_installed_is_refused(planted: None) -> None:
    with pytest.raises(SettingsError, match="DITHER_ESTIMATORS: no installed distribution"):
        create_app(Settings.model_validate({"estimators": "honest, oracle"}))


def test_an_installed_estimator_cannot_take_the_name_of_one_of_ours(
    monkeypatch: pytest.MonkeyPatch, planted: None
) -> None:
    monkeypatch.setattr(Heavy, "name", "optimal")
    with pytest.raises(ValueError, match="of its own"):
        registry.allow(["all"])
    assert type(registry.ESTIMATORS["optimal"]) is not Heavy


class Laden(Honest):
    """Is made with an argument, which no entry point has."""

    name = "laden"

    def __init__(self, argument: int) -> None: ...


class Nameless:
    """Is no estimator at all."""


class Twin(Honest):
    """Has the name of another one."""


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        ({"laden": Laden}, "the estimator laden cannot be loaded: TypeError"),
        ({"nameless": Nameless}, "the estimator nameless has no name"),
        ({"honest": Honest, "twin": Twin}, "two of the estimators that are allowed call themselves honest"),
    ],
)
def test_an_installed_estimator_that_is_none_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch, points: dict[str, type[Any]], reason: str
) -> None:
    found = [Planted(kind, name) for name, kind in points.items()]
    monkeypatch.setattr(registry, "entry_points", lambda group: found)
    with pytest.raises(SettingsError, match=f"DITHER_ESTIMATORS: {reason}"):
        create_app(Settings.model_validate({"estimators": "all"}))
    assert not set(points) & set(registry.ESTIMATORS)


async def test_the_example_of_the_documentation_answers_at_its_price(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split("### In a package")[1]
    found: dict[str, Any] = {}
    exec(section.split("```python\n")[1].split("```")[0], found)
    [point] = tomllib.loads(section.split("```toml\n")[1].split("```")[0])["project"]["entry-points"][
        registry.GROUP
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: [Planted(found["PartPaid"], point)])
    registry.allow([point])
    try:
        study = await service.study()
        await service.crowd(study, 30)
        path, asked = f"/v1/studies/{study}/releases", {"estimator": "part_paid", "share": 0.4}
        answer = (await service.call("POST", path, "analyse", json={**asked, "part": 0.25})).json()
        charges = await service.call("GET", f"/v1/admin/ledger?release={answer['id']}", "admin")
        assert charges.json()["items"]
        for charge in charges.json()["items"]:
            assert charge["epsilon"] == pytest.approx(0.1 * charge["offered"], abs=1e-6)
        refused = await service.call("POST", path, "analyse", json={**asked, "part": 2})
        assert_problem(refused, "invalid_request", 422, "part")
        async with tampered(service.database_url, []) as (_, audit):
            assert (await audit()).clean
    finally:
        registry.allow(())


def test_the_papers_baselines_are_installed_and_not_allowed() -> None:
    from dither_research.estimators import ESTIMATORS

    registry.allow(())
    assert "stretching" not in registry.ESTIMATORS
    registry.allow(["all"])
    try:
        assert set(registry.ESTIMATORS) == set(ESTIMATORS) - {"sampling"}  # a simulation only
    finally:
        registry.allow(())

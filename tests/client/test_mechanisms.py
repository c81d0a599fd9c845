"""Studies name their local mechanism; devices report by it."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from dither import EpsilonBelowSpent, ReportAfterSpending
from dither.device.randomizers import LocalMechanism

from tests.client.service import FakeService
from tests.support.reports import report_range

ADA: dict[str, Any] = {"subject": "ada", "value": 34, "epsilon": 1, "trust": "local"}
DELTA = "0.000001"
GAUSSIAN: dict[str, Any] = {"local_mechanism": "gaussian", "noise": "gaussian", "delta": float(DELTA)}


@pytest.mark.parametrize("mechanism", LocalMechanism)
def test_reports_are_made_by_the_mechanism_of_the_study(
    client: Any, service: FakeService, mechanism: str
) -> None:
    service.studies["commute"] |= GAUSSIAN if mechanism == "gaussian" else {"local_mechanism": mechanism}
    for number in range(20):
        client.contribute("commute", **(ADA | {"subject": f"person-{number}"}))
    reports = {sent["report"] for sent in service.sent("POST")}
    allowed = report_range(LocalMechanism(mechanism), 1_000_000, 1_000_000)
    assert all(report in allowed for report in reports)
    # Duchi has two reports and optimal 15, others hardly ever repeat one; a hybrid is Duchi in 3 of 5 cases.
    assert len(reports) == 2 if mechanism == "duchi" else len(reports) > 2
    assert len(reports) == 20 or mechanism in ("duchi", "hybrid", "optimal")


@pytest.mark.parametrize("mechanism", ["duchi", "piecewise", "hybrid", "optimal"])
def test_a_bounded_report_is_the_only_one(client: Any, service: FakeService, mechanism: str) -> None:
    """Its range is that of the whole epsilon, of which something is gone."""
    service.studies["commute"] |= {"local_mechanism": mechanism}
    client.contribute("commute", **ADA)
    with pytest.raises(ReportAfterSpending):
        client.replace("commute", **(ADA | {"value": 35, "epsilon": "1.25"}))
    assert service.sent("PUT") == []
    assert [entry.noise_epsilon for entry in client.ledger().entries] == [Decimal(1)]


def test_a_second_gaussian_report_has_no_delta_left(client: Any, service: FakeService) -> None:
    service.studies["commute"] |= GAUSSIAN
    client.contribute("commute", **ADA)
    with pytest.raises(ReportAfterSpending):
        client.replace("commute", **(ADA | {"value": 35, "epsilon": 2}))
    assert [entry.noise_epsilon for entry in client.ledger().entries] == [Decimal(1)]
    client.contribute("commute", **ADA)  # the same again is no second report
    first, second = service.sent("POST")
    assert first == second


def test_a_withdrawn_gaussian_report_does_not_give_its_delta_back(client: Any, service: FakeService) -> None:
    service.studies["commute"] |= GAUSSIAN
    client.contribute("commute", **ADA)
    client.withdraw("commute", subject="ada")
    with pytest.raises(ReportAfterSpending):
        client.contribute("commute", **(ADA | {"value": 35, "epsilon": 2}))


def test_other_mechanisms_have_more_than_one_report(client: Any, service: FakeService) -> None:
    client.contribute("commute", **ADA)
    with pytest.raises(EpsilonBelowSpent):
        client.replace("commute", **(ADA | {"value": 35}))
    assert client.replace("commute", **(ADA | {"value": 35, "epsilon": 2})).status == "replaced"


def test_noise_comes_from_the_operating_system(
    client: Any, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is done to Python's own generator, no two devices make the same report."""
    service.studies["commute"] |= {"local_mechanism": "piecewise"}
    seeded: Callable[[int], None] = __import__("random").seed
    for number in range(5):
        seeded(1)
        client.contribute("commute", **(ADA | {"subject": f"person-{number}"}))
    assert len({sent["report"] for sent in service.sent("POST")}) == 5

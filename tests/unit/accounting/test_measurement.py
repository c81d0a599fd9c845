"""Measurements as the ledger keeps them: written and read, they say and price the same."""

import json

import pytest

from app.accounting.measurement import Measurement, Workload
from app.core.errors import InternalFault
from app.core.noise import DiscreteLaplace
from app.core.study import Currency, Relation

NOISE = DiscreteLaplace(scales=(2.0**50, 2.0**50))
ALIKE = (((0, 6, 0, 0), (1, 0, 0, 6)), ((0, 10, 0, 0), (1, 0, 0, 10)))


def measured(*columns) -> Measurement:
    places = tuple((column, (2 * place + 1, 2 * place + 2)) for place, column in enumerate(columns))
    return Measurement(workload=Workload.QUERIES, noise=NOISE, places=places)


def written(measurement: Measurement) -> dict:
    return json.loads(json.dumps(measurement.document()))


@pytest.mark.parametrize(
    "columns",
    [ALIKE, ALIKE[:1], (*ALIKE, ((0, 7, 0, 0),)), (((0, -4, 2, 0),), ((0, -6, 3, 0),))],
    ids=["alike", "alone", "apart", "negative"],
)
def test_what_is_written_is_read(columns) -> None:
    whole = measured(*columns)
    found = Measurement.of_document(written(whole))
    assert found == whole
    assert found.costs(Relation.REPLACE_ONE, Currency.LAPLACE) == whole.costs(
        Relation.REPLACE_ONE, Currency.LAPLACE
    )


def test_what_columns_are_multiples_of_is_written_once() -> None:
    document = written(measured(*ALIKE))
    assert document["each"] == [[0, 1, 0, 0], [1, 0, 0, 1]]
    assert document["of"] == [[6, [1, 2]], [10, [3, 4]]]


def test_columns_by_themselves_are_read_as_before() -> None:
    document = written(measured(*ALIKE))
    del document["each"]
    document["of"] = [[list(map(list, column)), [2 * n + 1, 2 * n + 2]] for n, column in enumerate(ALIKE)]
    assert Measurement.of_document(document) == measured(*ALIKE)


def test_a_column_of_columns_is_refused() -> None:
    document = written(measured(*ALIKE))
    document["of"][0][0] = document["each"]
    with pytest.raises(InternalFault, match="cannot be read"):
        Measurement.of_document(document)

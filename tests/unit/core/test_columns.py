"""Records by columns: the same records, whichever way they came, and none made for what a column says."""

from typing import Any

from app.core.cohort import Cohort, Cohorts
from app.core.study import Trust

FIELDS: dict[str, list[Any]] = {
    "id": [1, 2],
    "trust": [Trust.CENTRAL, Trust.LOCAL],
    "epsilon": [5, 6],
    "carried": [0, 1],
    "spent": [2, 3],
    "count": [10, 20],
    "total": [7, 8],
    "total_squares": [9, 9],
}


def test_a_field_without_a_column_has_its_default_and_makes_no_record():
    found = Cohorts(FIELDS, 2)
    assert list(found.column("silent")) == [0, 0]
    assert list(found.column("reach")) == [None, None]
    assert found._records is None, "what years of epochs have many of"
    assert found == [
        Cohort(**dict(zip(FIELDS, row, strict=True))) for row in zip(*FIELDS.values(), strict=True)
    ]


def test_records_say_their_own_fields():
    one = Cohort(**{name: values[0] for name, values in FIELDS.items()}, silent=4)
    assert list(Cohorts.of([one]).column("silent")) == [4]
    assert list(Cohorts.of([one]).some([0, 0]).column("silent")) == [4, 4]

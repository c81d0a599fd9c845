"""How often the saturation point is computed while people come one by one, and how near it stays."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast
from uuid import UUID

import pytest

from app.core.contribution import ANY_EPSILON, Offer
from app.core.epsilon import MICRO
from app.core.study import Currency, Study, StudyState, Trust
from app.services.statistics import saturation
from app.services.statistics.saturation import SMALL, Saturation
from app.store.database import Database
from dither_research.histories import STUDY

ONE = Study(id=1, definition=STUDY, state=StudyState.OPEN, created_at=datetime.now(UTC))
PEOPLE = 3 * SMALL


def offer(number: int) -> Offer:
    """One person after the other, and more of those who ask for little privacy as time goes by."""
    epsilon = MICRO // 100 * (1 + number * 37 % 50) + number * 100
    return Offer(
        subject=number.to_bytes(32),
        sender=UUID(int=1),
        trust=Trust.CENTRAL,
        asked=epsilon,
        epsilon=epsilon,
        value=0,
        vector=None,
        bounded=False,
        drawn_at_most=ANY_EPSILON,
        currency=Currency.LAPLACE,
    )


@pytest.mark.long
async def test_the_point_is_exact_in_small_studies_and_within_a_percent_in_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def no_rows(*_: object) -> tuple[list[object], None, None]:
        return [], None, None

    computed: list[int] = []
    exacts: list[tuple[int, int | None, int | None]] = []
    exactly = saturation._point

    def counted(definition: object, profile: saturation._Profile) -> int | None:
        computed.append(profile.total)
        return exactly(STUDY, profile)

    monkeypatch.setattr(saturation, "_point", counted)
    # The profile is never read again: all that it knows are the people who are added.
    monkeypatch.setattr(saturation, "REFRESH_SECONDS", 3600)
    points = Saturation(cast(Database, SimpleNamespace(run_tx=no_rows)))
    await points.point(ONE)
    for number in range(1, PEOPLE + 1):
        points.add(ONE, [offer(number)])
        point = await points.point(ONE)
        if number % 100 == 0:
            exact = exactly(STUDY, points._profiles[ONE.id])
            exacts.append((number, point, exact))
    for number, point, exact in exacts:
        if point is None or exact is None or number <= SMALL:
            assert point == exact
        else:
            assert abs(point / exact - 1) < 0.01
    assert exacts[-1][1] is not None
    assert computed[: SMALL + 1] == list(range(SMALL + 1))
    assert len(computed) - SMALL < 130

"""The smallest share that is enough, beside trying every share."""

import pytest

from app.core.epsilon import MICRO
from app.core.errors import BudgetExhausted, OutOfReach
from app.services.statistics import reaching
from app.services.statistics.reaching import smallest


@pytest.fixture(autouse=True)
def few_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole that is small enough to try every share of it."""
    monkeypatch.setattr(reaching, "MICRO", 300)


@pytest.mark.parametrize("ends", [(), (300,), (77,), (200,), (40, 200)])
@pytest.mark.parametrize("least", [1, 7, 100])
def test_it_is_the_first_of_all_shares_that_does(ends: tuple[int, ...], least: int) -> None:
    def half(share: int) -> float | None:
        """People leave who cannot pay more than some share; after the last one none is left."""
        gone = sum(share > end for end in ends)
        if ends and gone == len(ends):
            raise BudgetExhausted("no person can pay")
        return 60 / share * (1 + 3 * gone)

    def tried(share: int) -> float | None:
        try:
            return half(share)
        except BudgetExhausted:
            return None

    every = {share: tried(share) for share in range(least, 301)}
    for wanted in (0.1, 0.19, 0.2, 0.25, 0.31, 0.5, 0.8, 1, 2, 5, 8, 60):
        enough = [share for share, width in every.items() if width is not None and width <= wanted]
        if enough:
            assert smallest(half, wanted, least=least) == enough[0]
            continue
        possible = [width for width in every.values() if width is not None]
        with pytest.raises(OutOfReach if possible else BudgetExhausted) as refusal:
            smallest(half, wanted, least=least)
        if isinstance(refusal.value, OutOfReach):
            assert possible
            assert refusal.value.half_width == pytest.approx(min(possible))
            assert f"{min(possible):.4g}" in refusal.value.detail


def test_what_is_not_predicted_reaches_nothing() -> None:
    assert MICRO == 1_000_000
    with pytest.raises(OutOfReach, match="none is predicted") as refusal:
        smallest(lambda share: None, 1.0, least=1)
    assert refusal.value.half_width is None

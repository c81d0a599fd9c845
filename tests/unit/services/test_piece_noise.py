"""How the noise of a piece is lowered: what is left of the former noise decides what a step costs."""

from dataclasses import replace

import pytest

from app.core.epsilon import MICRO
from app.core.noise import DiscreteLaplace
from app.core.piece import Members, Piece
from app.core.study import Currency
from app.mechanisms.draw import draw
from app.services.statistics.piece_noise import NOISES, PieceNoise, of_coordinates, step_scale

SUMS = 60
NEARLY = 990_000


def piece_of(noise: PieceNoise, share: int) -> Piece:
    members = Members.of_rows(("cohort_id", "weight", "count"), [(1, MICRO, 10)])
    return Piece(
        number=1,
        unit=noise.unit,
        share=share,
        scale=0.0,
        sums=(0,) * SUMS,
        refinable=True,
        members=members,
        base=0,
    )


def kept(first: Piece, second: Piece) -> int:
    """The sums whose noise is the same as before."""
    return sum(one == other for one, other in zip(first.sums, second.sums, strict=True))


@pytest.mark.parametrize("noise", [NOISES[Currency.LAPLACE], of_coordinates(Currency.LAPLACE, 3)])
def test_a_laplace_step_keeps_the_noise_that_was_published(noise):
    """From .99 to 1 it is kept with probability .99^2 = .98; 45 or fewer of 60 are by one in 10^14."""
    exact = tuple(range(SUMS))
    first = noise.drawn(piece_of(noise, NEARLY), 0, exact)
    second = noise.drawn(replace(first, share=MICRO), NEARLY, exact)
    assert kept(first, second) > 45
    assert second.scale == step_scale(second.unit, MICRO) < first.scale


def test_control_independent_noise_at_the_price_of_a_refinement_is_seen():
    """Two answers with it tell 1.99 times what is charged."""
    noise, exact = NOISES[Currency.LAPLACE], (0,) * SUMS
    first = noise.drawn(piece_of(noise, NEARLY), 0, exact)
    fresh = draw(DiscreteLaplace(scales=(step_scale(first.unit, MICRO),) * SUMS), queries=SUMS)
    assert kept(first, replace(first, sums=tuple(fresh))) <= 45

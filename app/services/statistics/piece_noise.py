"""What pieces cost, and how their noise is lowered, in either currency: see `statistics.steps`."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache
from operator import add
from typing import Protocol

from dither.device.gaussian import DISCRETE_LOSS

from app.accounting.gaussian import effective_variance
from app.accounting.price import Rates
from app.accounting.prices import Column, price_at, sums_price
from app.accounting.shape_prices import bins_cost
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Noise
from app.core.piece import Piece
from app.core.study import Currency, Relation
from app.estimators.calibration import GAUSSIAN_SIGMA, GAUSSIAN_UNIT
from app.estimators.interface import UNIT_SCALE
from app.mechanisms.draw import draw
from app.mechanisms.entropy import system_bits
from app.mechanisms.laplace import MAX_SCALE
from app.mechanisms.refined_gaussian import more_gaussian
from app.mechanisms.refined_laplace import refine_laplace

THIRDS = math.nextafter(GAUSSIAN_SIGMA, math.inf)
"""The unit of pieces under Gaussian noise whose squares have a third of the sigma."""

WeightPrice = Callable[[int], int]
"""What a weight costs a member [the study's currency]."""


@lru_cache(maxsize=256)
def step_scale(unit: float, share: int) -> float:
    """The Laplace scale of a share: unit / share, rounded up, so that rounding never adds to a price.

    Args:
        unit: Scale at share 1 [units of a sum].
        share: [ppm].
    """
    exact = Fraction(unit) * MICRO / share
    scale = float(exact)
    return scale if Fraction(scale) >= exact else math.nextafter(scale, math.inf)


class PieceNoise(Protocol):
    """The noise of all pieces of a study. Costs are in its currency.

    Attributes:
        mechanism: Its name in the ledger.
        unit: The noise at share 1 to which weights are brought [units of a sum].
        normal: Whether it is Gaussian: then `scale` is a standard deviation, else that of Laplace noise.
    """

    mechanism: str
    unit: float
    normal: bool

    def weighed(self, noise: Noise) -> float | None:
        """The noise of the first query of a plan, where it is of this kind [units of the query]."""

    def unit_of(self, drawn: float) -> float:
        """The unit that a new piece says, whose first sum has this noise at share 1 [units of a sum]."""

    def squares(self, unit: float) -> int:
        """By what the variance of the noise of squares is smaller, in a piece of that unit."""

    def coarse(self, share: int) -> int:
        """Bits that weights lose in a piece which starts with a share, so that its noise can be drawn."""

    def scale(self, unit: float, share: int) -> float:
        """The noise of a piece of that unit in its two means at a share [units of a sum]."""

    def counted(self, share: int) -> int:
        """How often a piece's noisy sums count what they are the sums of."""

    def cost(self, weight: int, share: int, unit: float) -> Fraction:
        """What a share of a piece costs a member of that weight, before it is rounded up."""

    def weight(self, cost: int, share: int) -> int:
        """The largest weight, at `unit`, that costs at most that much."""

    def share(self, cost: int, weight: int, unit: float) -> int:
        """The largest share at which a weight costs at most that much [ppm]."""

    def price(self, unit: float, share: int) -> WeightPrice:
        """What all sums of a piece cost a member of a weight together, by their exact noise."""

    def drawn(self, piece: Piece, had: int, exact: Sequence[int]) -> Piece:
        """A piece with its noise drawn for its share. Draws entropy.

        Args:
            piece: With the share that it is to have, and the sums and the scale that it had.
            had: The share that it had; 0 for a new one [ppm].
            exact: Its sums without noise.
        """


class LaplaceNoise:
    r"""One draw of each sum that is made finer, see `app.mechanisms.refined_laplace`.

    Of values of d coordinates a piece has d sums, and d of squares, refined independently with one scale b.
    The chain of answers of each sum is its last answer times factors without the exact sum. So is their
    product: all steps together tell what the last one alone does. Each coordinate loses at most
    :math:`2^{30} W / b` of it, whatever the other ones are (`app.services.shapes.coordinates`), hence all of
    them d times that: d s W with the scale of a number.
    """

    mechanism = "RefinedLaplace"
    normal = False

    def __init__(self, dimension: int = 1) -> None:
        self.dimension = dimension
        self.unit = UNIT_SCALE

    def weighed(self, noise: Noise) -> float | None:
        return noise.scales[0] if isinstance(noise, DiscreteLaplace) else None

    def unit_of(self, drawn: float) -> float:
        return drawn

    def squares(self, unit: float) -> int:
        return 1

    def coarse(self, share: int) -> int:
        bits = 0
        while step_scale(self.unit / 2**bits, share) > MAX_SCALE:
            bits += 1
        return bits

    def scale(self, unit: float, share: int) -> float:
        return step_scale(unit, share)

    def counted(self, share: int) -> int:
        return 1

    def cost(self, weight: int, share: int, unit: float) -> Fraction:
        return Fraction(self.dimension * weight * int(self.unit / unit) * share, MICRO)

    def weight(self, cost: int, share: int) -> int:
        return cost * MICRO // (self.dimension * share)

    def share(self, cost: int, weight: int, unit: float) -> int:
        return cost * MICRO // (self.dimension * weight * int(self.unit / unit))

    def price(self, unit: float, share: int) -> WeightPrice:
        # Linear in weights, so that d coordinates cost what d times the weight does, rounded up once.
        price = _price_of_both(step_scale(unit, share))
        return price if self.dimension == 1 else lambda weight: price(self.dimension * weight)

    def drawn(self, piece: Piece, had: int, exact: Sequence[int]) -> Piece:
        scale = step_scale(piece.unit, piece.share)
        if piece.scale == 0:
            errors = draw(DiscreteLaplace(scales=(scale,) * len(exact)), queries=len(exact))
        else:
            errors = tuple(
                refine_laplace(noisy - value, piece.scale, scale, system_bits)
                for noisy, value in zip(piece.sums, exact, strict=True)
            )
        return replace(piece, sums=tuple(map(add, exact, errors)), scale=scale)


class GaussianNoise:
    r"""Independent draws that are averaged, see `app.mechanisms.refined_gaussian`.

    Sums of squares have a third of the sigma, which leaves them free: see `app.accounting.prices`. In pieces
    that versions up to 1.0 began they have half of it, and go on with that: the unit of these is
    `GAUSSIAN_SIGMA`, and that of pieces with a third is `THIRDS`, the next number above it. Of d coordinates
    all draws of all steps together cost d times the :math:`\mu^2` of one, which is at most
    :math:`(2^{30} W)^2 s / V` whatever the other ones are (`app.services.shapes.coordinates`).

    Attributes:
        loss: mu^2 in 1e-6 of a weight of 1 at a share of 1 ppm, under noise of variance 1: 10^6 and 10^-6
            cancel.
    """

    mechanism = "RefinedGaussian"
    normal = True

    def __init__(self, dimension: int = 1) -> None:
        self.dimension = dimension
        self.unit = GAUSSIAN_SIGMA
        self.loss = dimension * GRID_SIZE * GRID_SIZE

    def weighed(self, noise: Noise) -> float | None:
        return noise.sigmas[0] if isinstance(noise, DiscreteGaussian) else None

    def unit_of(self, drawn: float) -> float:
        return THIRDS if drawn == GAUSSIAN_SIGMA else drawn

    def squares(self, unit: float) -> int:
        return 9 if unit == THIRDS else 4

    def coarse(self, share: int) -> int:
        return 0

    def scale(self, unit: float, share: int) -> float:
        return max(unit, math.sqrt(effective_variance(unit) * MICRO / share + DISCRETE_LOSS))

    def counted(self, share: int) -> int:
        return share

    def cost(self, weight: int, share: int, unit: float) -> Fraction:
        return weight * weight * share * self.loss / effective_variance(unit)

    def weight(self, cost: int, share: int) -> int:
        return math.isqrt(math.floor(cost * effective_variance(self.unit) / (share * self.loss)))

    def share(self, cost: int, weight: int, unit: float) -> int:
        return math.floor(cost * effective_variance(unit) / (weight * weight * self.loss))

    def price(self, unit: float, share: int) -> WeightPrice:
        variance = effective_variance(unit) * MICRO / share / self.dimension
        rates = Rates.of_variances([variance, variance / self.squares(unit)])
        price = price_at(rates, Relation.REPLACE_ONE)
        return lambda weight: price(_both_moments(weight))

    def drawn(self, piece: Piece, had: int, exact: Sequence[int]) -> Piece:
        variance, part = effective_variance(piece.unit), piece.share - had
        noisy = [
            more_gaussian(value, total, variance / times, part, system_bits)
            for value, total, times in zip(piece.sums, exact, self.finer(piece), strict=True)
        ]
        return replace(piece, sums=tuple(noisy), scale=self.scale(piece.unit, piece.share))

    def finer(self, piece: Piece) -> Sequence[int]:
        """By what the variance of each sum's noise is smaller than that of the first one's."""
        of_squares = len(piece.sums) - self.dimension
        return (1,) * self.dimension + (self.squares(piece.unit),) * of_squares


class LaplaceBins(LaplaceNoise):
    r"""Of counts by bin: a member who is replaced moves `moved` of them by their weight W.

    That is two, or the one of two bins that is counted. All counts have noise of one scale b, refined
    independently. So both answers of a step tell what the second one tells, the first being post-processing
    of it, and that costs :math:`2 W / b`, or :math:`W / b` (`app.accounting.shape_prices`). With the scale 2,
    or 1, at share 1, in units of an epsilon, that is s W.
    """

    def __init__(self, moved: int) -> None:
        super().__init__()
        self.moved, self.unit = moved, float(moved * MICRO)

    def price(self, unit: float, share: int) -> WeightPrice:
        noise = DiscreteLaplace(scales=(step_scale(unit, share),) * self.moved)
        return lambda weight: bins_cost(weight, noise, Relation.REPLACE_ONE)


class GaussianBins(GaussianNoise):
    r"""Of counts by bin, as `LaplaceBins`: each of the m that a member moves is moved by their weight W.

    All draws of all counts together cost :math:`\mu^2 = m W^2 s / V`, V being what :math:`\sigma^2 - 9` is at
    share 1, however s was divided up: see `app.mechanisms.refined_gaussian`.
    """

    def __init__(self, moved: int) -> None:
        super().__init__()
        self.unit = math.sqrt(2 * moved) * GAUSSIAN_UNIT + 1
        self.loss = moved

    def price(self, unit: float, share: int) -> WeightPrice:
        rates = Rates.of_variances([effective_variance(unit) * MICRO / share] * self.loss)
        loss = rates.loss([[(number, 1) for number in range(self.loss)]])
        return lambda weight: rates.cost(loss, weight)

    def finer(self, piece: Piece) -> Sequence[int]:
        return (1,) * len(piece.sums)


def _both_moments(weight: int) -> Column:
    """A person's place in a sum of values and one of squares."""
    return ((0, weight, 0, 0), (1, 0, 0, weight))


@lru_cache(maxsize=16)
def _price_of_both(scale: float) -> WeightPrice:
    """What a weight costs in both sums under Laplace noise; all labels ask for the same ones."""
    price = sums_price(DiscreteLaplace(scales=(scale, scale)), Relation.REPLACE_ONE, 2)
    return lru_cache(maxsize=4096)(lambda weight: price(_both_moments(weight)))


NOISES: Mapping[Currency, PieceNoise] = {
    Currency.LAPLACE: LaplaceNoise(),
    Currency.GAUSSIAN: GaussianNoise(),
}


@cache
def of_bins(currency: Currency, counts: int) -> PieceNoise:
    """Of counts by bin, of which there are that many."""
    moved = min(counts, Relation.REPLACE_ONE.moved)
    return GaussianBins(moved) if currency.is_gaussian else LaplaceBins(moved)


def of_coordinates(currency: Currency, dimension: int) -> PieceNoise:
    """Of sums of values of several coordinates, and of their squares."""
    return GaussianNoise(dimension) if currency.is_gaussian else LaplaceNoise(dimension)

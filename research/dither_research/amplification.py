"""The hybrid paper's Figure 7: what those lose who are protected by each other's noise, too."""

import math
from dataclasses import dataclass
from fractions import Fraction

from dither.device.gaussian import gaussian_sigma, micro_mu2

from app.accounting.amplification import LocalPart, amplify
from app.core.epsilon import DELTA_UNIT, MICRO
from app.core.grid import GRID_SIZE
from dither_research.hybrid import PAPER
from dither_research.hybrid_figures import UC_PEOPLE, UC_SHARES, UC_VARIANCE
from dither_research.hybrid_forms import Setting, kvh_weight
from dither_research.results import Check, Lines, Outcome, Reproduction, Row, Track
from dither_research.seeded import Random

EPSILON = 1.0
DELTA = 1e-7
COALITIONS = (0.0, 0.5, 0.9)
"""Shares of the local people who tell an adversary their noise."""


def classic_sigma(epsilon: float, delta: float) -> float:
    """The classic calibration, sqrt(2 ln(1.25 / delta)) / epsilon: proved for epsilon < 1 only."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def analytic_sigma(epsilon: float, delta: float) -> float:
    """The exact calibration, by the product's accounting."""
    return gaussian_sigma(micro_mu2(round(epsilon * MICRO), round(delta * DELTA_UNIT))) / GRID_SIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class Amplified:
    """How far one person's value shows in the answer, in standard deviations of the noise left in it.

    Attributes:
        central, local: Of a person of either part.
    """

    central: float
    local: float


def amplified(at: Setting, coalition: float) -> Amplified:
    """Theorem 8.1, corrected: each part has its own sensitivity.

    Args:
        at: The setting.
        coalition: Share of the local people whose noise is known.
    """
    weight, people = kvh_weight(at), (1 - at.share) * at.n
    one = (1 - weight) / people
    left = weight**2 * at.central_noise + one**2 * people * (1 - coalition) * at.local_noise
    deviation = math.sqrt(left)
    return Amplified(central=weight / (at.share * at.n) / deviation, local=one / deviation)


def gaussian_setting(n: float, share: float, sigma: float, variance: float) -> Setting:
    """Gaussian noise of one multiplier for every person, on a range of width 1."""
    return Setting(
        n=n,
        share=share,
        central_variance=variance,
        local_variance=variance,
        central_noise=(sigma / (share * n)) ** 2,
        local_noise=sigma**2,
    )


def guarantee(at: Setting, coalition: float) -> tuple[float, float]:
    """What the product's accounting says of a setting.

    Args:
        at: With Gaussian noise.
        coalition: Share of the local people whose noise is known.

    Returns:
        epsilon' of central and of local people, rounded up to whole micro-epsilons.
    """
    weight, people = kvh_weight(at), round((1 - at.share) * at.n)
    found = amplify(
        central_weights=[weight / (at.share * at.n)],
        central_sigma=weight * math.sqrt(at.central_noise),
        local=[LocalPart(people=people, weight=(1 - weight) / people, sigma=math.sqrt(at.local_noise))],
        delta=round(DELTA * DELTA_UNIT),
        coalition_share=Fraction(coalition),
    )
    return found.central[0] / MICRO, found.local[0] / MICRO


def _figure_7(runs: int, random: Random, track: Track) -> Outcome:
    classic, analytic = classic_sigma(EPSILON, DELTA), analytic_sigma(EPSILON, DELTA)
    rows: list[Row] = []
    one_percent: dict[str, float] = {}
    for share in track((*UC_SHARES, 0.01)):
        for coalition in COALITIONS:
            label = f"{coalition:.0%} of local people adversarial"
            at = gaussian_setting(UC_PEOPLE, share, classic, UC_VARIANCE)
            shown = amplified(at, coalition)
            exact = guarantee(gaussian_setting(UC_PEOPLE, share, analytic, UC_VARIANCE), coalition)
            found = {
                "as printed (smaller sensitivity)": classic * EPSILON * min(shown.central, shown.local),
                "central people": exact[0],
                "local people": exact[1],
            }
            if share == 0.01 and coalition == 0:
                one_percent = found | {"classic": classic * EPSILON * max(shown.central, shown.local)}
            if share != 0.01:
                for who, epsilon in found.items():
                    rows.append({"who": who, "coalition": label, "share": 100 * share, "epsilon": epsilon})
    return Outcome(
        rows=tuple(rows),
        checks=(
            Check(
                quantity="epsilon' of every person at c = 1 %, no person adversarial",
                paper=one_percent["as printed (smaller sensitivity)"],
                ours=one_percent["classic"],
                note="same calibration, the larger sensitivity",
            ),
            Check(
                quantity="the same, exact: central people, local people",
                paper="-",
                ours=f"{one_percent['central people']:.3f}, {one_percent['local people']:.2g}",
            ),
            Check(
                quantity="variance of exact over classic calibration",
                paper="-",
                ours=(analytic / classic) ** 2,
            ),
        ),
    )


FIGURE_7 = Reproduction(
    name="hybrid-figure-7",
    title="What people lose to those who see only the answer: (1, 1e-7) Gaussian noise, salaries, KVH",
    paper=f"{PAPER}, Figure 7",
    columns={
        "who": "whose epsilon, or the printed formula",
        "coalition": "part of the local people whose noise is known",
        "share": "people who trust the curator, c [%]",
        "epsilon": "epsilon' at delta = 1e-7",
    },
    figure=Lines(
        x="share",
        y="epsilon",
        series="who",
        panel="coalition",
        x_label="people who trust the curator, c [%]",
        y_label="ε′ at δ = 10⁻⁷",
        log_x=True,
        log_y=True,
        levels=((1.0, "ε"),),
    ),
    runs=None,
    compute=_figure_7,
    errata=(
        "Not private: Theorem 8.1 takes the smaller of the two sensitivities; the cases are swapped. In "
        "every practical case w > c, and central people lose nearly all of epsilon. The amplification is "
        "real for local people only.",
        "Not private: sqrt(2 ln(1.25/delta))/epsilon is proved for epsilon < 1. It fails beyond 9.1 at delta "
        "= 1e-7, and wastes a third of the noise variance at epsilon = 1.",
    ),
)

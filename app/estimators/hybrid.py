"""The hybrid paper's estimators: a central and a local part in one mean.

Central people all pay the smallest epsilon that any of them offers, public people belong to them and pay
nothing, and each local report keeps its own epsilon. The estimators differ in what the parts weigh.

References:
    Avent, Dubey, Korolova, "The Power of the Hybrid Model for Mean Estimation", PoPETs 2020.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.core.cohort import Group, Groups
from app.core.study import Currency, Relation, Trust
from app.estimators.affine import AffineProblem
from app.estimators.calibration import equal_price
from app.estimators.interface import NotApplicable, Parameter, Plan, Question
from app.estimators.linear import linear_plan, participants, sizes_of
from app.estimators.noises import PricedNoise
from app.estimators.output_view import COALITION
from app.estimators.reports import VARIANCE, noise_variance, stands_for, variances


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The two parts of a hybrid study: indices of groups, and how many people there are."""

    central: tuple[int, ...]
    known: tuple[int, ...]
    local: tuple[int, ...]
    people: int
    reports: int

    @classmethod
    def of(cls, groups: Sequence[Group]) -> "Parts":
        """The parts of a study's groups."""
        groups = Groups.of(groups)
        central = participants(groups, Trust.CENTRAL)
        known = [*central, *participants(groups, Trust.PUBLIC)]
        local = participants(groups, Trust.LOCAL)
        counts = groups.column("count")
        return cls(
            central=tuple(central),
            known=tuple(known),
            local=tuple(local),
            people=sum(counts[index] for index in known),
            reports=sum(counts[index] for index in local),
        )

    def price(self, groups: Sequence[Group], question: Question) -> PricedNoise:
        """The noise that all central people can pay."""
        return equal_price(Groups.of(groups).of_able(Trust.CENTRAL, "epsilon"), question)

    def weights(self, groups: Sequence[Group], price: PricedNoise) -> list[int]:
        """The price's weight on each central or public person."""
        weights = [0] * len(groups)
        for index in self.known:
            weights[index] = price.weight
        return weights


def _inverse_variance_plan(
    groups: Sequence[Group], question: Question, *, steering: float, bound: float, expected: float
) -> Plan:
    """Both parts by inverse variances, the variance of the data taken to be `steering`.

    With a tilt by the weights of `app.estimators.tilted`, for one group of people who all pay the same.
    """
    groups = Groups.of(groups)
    parts = Parts.of(groups)
    if not parts.known and not parts.local:
        raise NotApplicable("No person can take part.")
    precisions = np.zeros(len(groups))
    for index in parts.local:
        precisions[index] = 1 / (steering + noise_variance(groups[index], expected))
    sizes = sizes_of(groups)
    local_precision = float(np.dot(precisions, sizes))

    price = parts.price(groups, question)
    unit_variance = price.unit_variance * question.louder**2

    def reports() -> NDArray[np.float64] | None:
        if not local_precision:
            return None
        if question.tilt:
            private = int(parts.people > 0 and unit_variance > 0)
            offer = math.sqrt(2 / unit_variance) if private else 1.0
            problem = AffineProblem(
                np.full(private, offer),
                np.full(private, float(parts.people)),
                public=0.0 if private else float(parts.people),
                noises=np.array([noise_variance(groups[index], expected) for index in parts.local]),
                reports=sizes[list(parts.local)],
                tilt=question.tilt,
                people=float(max(question.people or 0, groups.people)),
                stands=stands_for(groups)[list(parts.local)],
            )
            weights = np.zeros(len(groups))
            weights[list(parts.local)] = problem.solve(steering).reports
            return weights
        share = 0.0
        if parts.people:
            variance = steering / parts.people + unit_variance / parts.people**2
            share = 1.0 if variance == 0 else 1 / (1 + local_precision * variance)
        return precisions * ((1 - share) / local_precision)

    return linear_plan(
        groups,
        question,
        weights=parts.weights(groups, price),
        noise=price.noise,
        report_weights=reports(),
        variance=bound,
        expected_variance=expected,
        steering=steering,
    )


class Kvh:
    r"""The inverse-variance mean of a central and a local part.

    For one local epsilon the weights are the paper's: :math:`w^* = c (v + s_L^2) / (v + c (n s_T^2 (1 - c) +
    s_L^2))` for the central part.
    """

    name: ClassVar[str] = "kvh"
    version: ClassVar[int] = 4
    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    currencies: ClassVar[frozenset[Currency]] = frozenset(Currency)
    parameters: ClassVar[tuple[Parameter, ...]] = (VARIANCE, COALITION)
    summary: ClassVar[str] = "Central people and local reports, weighted by inverse variance."

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        r"""Plan a release.

        With v the data variance, T the n_T central and public people, L the local ones:
        :math:`V_T = v / n_T + 2 W^2 / (n_T \epsilon_{min})^2`, a report of group h has variance v + r_h,
        :math:`1 / V_L = \sum_h m_h / (v + r_h)`; the central part gets
        :math:`w^* = V_T^{-1} / (V_T^{-1} + V_L^{-1})`, report h :math:`(1 - w^*) V_L / (v + r_h)`.

        Args:
            groups: All groups of the study. Local ones with their `reports`.
            question: What is asked; parameters variance, see `VARIANCE`, and coalition.

        Returns:
            The same weight on all central and public people, and weights of the reports. Weights and
            predicted error use v, known or estimated (see `steering_variance`); intervals use a known v,
            otherwise the worst case W^2 / 4.

        Raises:
            NotApplicable: there is no report, no person public, and no person central can take part.
            InternalFault: reports of a mechanism without a known variance.

        Privacy: min over the central groups of their epsilon, for each central person. Reports and
            their estimated variance are post-processing of what is private already.

        References:
            Definition 4.1 and Lemma 4.2 (KVH); personal local epsilons by the same inverse variances.
        """
        bound, expected = variances([groups[i] for i in participants(groups, Trust.LOCAL)], question)
        return _inverse_variance_plan(groups, question, steering=expected, bound=bound, expected=expected)


class Pwh:
    """The mean of both parts weighted by their noise alone, for an unknown variance."""

    name: ClassVar[str] = "pwh"
    version: ClassVar[int] = 3
    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    currencies: ClassVar[frozenset[Currency]] = frozenset(Currency)
    parameters: ClassVar[tuple[Parameter, ...]] = (COALITION,)
    summary: ClassVar[str] = "Central people and local reports, weighted by their noise alone."

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        r"""Plan a release: `kvh` with v = 0.

        For one local epsilon the central part gets :math:`w = s_L^2 / (s_L^2 + (1 - c) n s_T^2)`.

        Args:
            groups: All groups of the study.
            question: What is asked; parameter coalition.

        Returns:
            Weights as said; predicted error and intervals use the worst case W^2 / 4.

        Raises:
            NotApplicable: there is no report, no person public, and no person central can take part.

        Privacy: min over the central groups of their epsilon, for each central person.

        References:
            Definition 5.3 (PWH), Lemma 5.4 (its error).
        """
        return _inverse_variance_plan(groups, question, steering=0.0, bound=0.25, expected=0.25)

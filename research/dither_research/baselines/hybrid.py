"""What the hybrid paper compares its estimators with; see `app.estimators.hybrid` for who takes part how."""

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteLaplace, NoNoise
from app.core.study import LocalMechanism, Relation
from app.estimators.hybrid import Parts
from app.estimators.interface import NotApplicable, Parameter, Plan, Question
from app.estimators.linear import linear_plan
from app.estimators.output_view import COALITION
from app.mechanisms.laplace import MAX_SCALE
from app.mechanisms.local_reports import report_noise


class TcmOnly:
    """The mean of central and public people; local reports are left aside."""

    name: ClassVar[str] = "tcm_only"
    version: ClassVar[int] = 1
    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    parameters: ClassVar[tuple[Parameter, ...]] = (COALITION,)
    summary: ClassVar[str] = "The mean of those who trust the curator, without the local reports."

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        """Plan a release.

        Args:
            groups: All groups of the study.
            question: What is asked; parameter coalition.

        Returns:
            The same weight on all central and public people.

        Raises:
            NotApplicable: no person is public, and no person central can take part.

        Privacy: min over the central groups of their epsilon, for each central person.

        References:
            Definition 3.1 (the TCM estimator).
        """
        parts = Parts.of(groups)
        if not parts.known:
            raise NotApplicable("No person central or public can take part.")
        price = parts.price(groups, question)
        return linear_plan(groups, question, weights=parts.weights(groups, price), noise=price.noise)


class LmOnly:
    """The plain mean of the local reports; no one else is asked, and it costs nothing more."""

    name: ClassVar[str] = "lm_only"
    version: ClassVar[int] = 1
    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    summary: ClassVar[str] = "The plain mean of the local reports."

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        """Plan a release.

        Args:
            groups: All groups of the study.
            question: What is asked.

        Returns:
            Weight 1/m on each of m reports, no query on raw values and no noise.

        Raises:
            NotApplicable: there are no reports.

        Privacy: post-processing of reports that are private already; free.

        References:
            The local half of the hybrid estimator, on its own.
        """
        parts = Parts.of(groups)
        if not parts.local:
            raise NotApplicable("There are no local reports.")
        return linear_plan(
            groups,
            question,
            weights=[0] * len(groups),
            noise=NoNoise(),
            report_weights=_equal_reports(parts, groups, 1.0),
        )


class GroupSize:
    """Both parts weighted by how many people they hold, so that every person counts the same."""

    name: ClassVar[str] = "group_size"
    version: ClassVar[int] = 1
    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    summary: ClassVar[str] = "Central people and local reports, every person with the same weight."

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        """Plan a release: the naive w = c.

        Args:
            groups: All groups of the study.
            question: What is asked.

        Returns:
            Weight 1/n on every person who takes part. Where that is every person the interval for the
            dataset's mean is pure noise.

        Raises:
            NotApplicable: no person can take part.

        Privacy: min over the central groups of their epsilon, for each central person.

        References:
            Section 5, the weighting by group sizes that PWH is compared with.
        """
        parts = Parts.of(groups)
        if not parts.known and not parts.local:
            raise NotApplicable("No person can take part.")
        price = parts.price(groups, question)
        return linear_plan(
            groups,
            question,
            weights=parts.weights(groups, price),
            noise=price.noise,
            report_weights=_equal_reports(parts, groups, parts.reports / (parts.people + parts.reports)),
        )


class FullLm:
    """What every person would say if every person randomized their own value."""

    name: ClassVar[str] = "full_lm"
    version: ClassVar[int] = 1
    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    summary: ClassVar[str] = "As exact as if every person had sent a local report."

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        r"""Plan a release.

        n_T central people who each randomize at the smallest offered epsilon would put noise of variance
        n_T r into the sum of their values. The curator adds a single Laplace number of that variance
        instead, :math:`b = \sqrt{n_T r / 2}`: the answer is as exact as the paper's, and cheaper,
        because one number of that size protects each of them :math:`\sqrt{n_T}` times better. What is
        charged is what it really costs.

        Args:
            groups: All groups of the study.
            question: What is asked.

        Returns:
            Weight 1/n on every person who takes part. r is the variance of the study's randomizer where there
            are reports to tell which one that is, and of the Laplace one otherwise.

        Raises:
            NotApplicable: no person can take part.

        Privacy: 1 / b for each central person, at most their smallest offer.

        References:
            Definition 3.3 (the Full-LM estimator), error sL2 / n.
        """
        parts = Parts.of(groups)
        if not parts.known and not parts.local:
            raise NotApplicable("No person can take part.")
        scale = 0.0
        if parts.central:
            epsilon = min(groups[index].epsilon for index in parts.central)
            mechanism = LocalMechanism.LAPLACE
            for index in parts.local:
                reports = groups[index].reports
                if reports is not None and reports.mechanism is not LocalMechanism.GAUSSIAN:
                    mechanism = reports.mechanism
            one = report_noise(mechanism, epsilon).worst
            people = sum(groups[index].count for index in parts.central)
            least = report_noise(LocalMechanism.LAPLACE, epsilon).worst
            scale = min(math.sqrt(max(people * one, least) / 2), MAX_SCALE)
            # Never more than is offered, whatever the rounding.
            scale = max(scale, math.nextafter(GRID_SIZE * MICRO / epsilon, math.inf))
        weights = [0] * len(groups)
        for index in parts.known:
            weights[index] = 1
        return linear_plan(
            groups,
            question,
            weights=weights,
            noise=DiscreteLaplace(scales=(scale,)) if parts.central else NoNoise(),
            report_weights=_equal_reports(parts, groups, parts.reports / (parts.people + parts.reports)),
        )


def _equal_reports(parts: Parts, groups: Sequence[Group], share: float) -> NDArray[np.float64]:
    """A share of the whole weight, spread evenly over all reports."""
    weights = np.zeros(len(groups))
    weights[list(parts.local)] = share / parts.reports if parts.reports else 0.0
    return weights

"""`threshold`: all people who offer enough, all treated alike."""

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from app.core.cohort import Group, Groups
from app.core.noise import NoNoise
from app.core.study import Currency, Relation, Trust
from app.estimators.accuracy import WORST_VARIANCE
from app.estimators.calibration import purse
from app.estimators.interface import NotApplicable, Parameter, Plan, Question
from app.estimators.linear import linear_plan, participants, sizes_of


class Threshold:
    """All who offer at least t, treated as if they offered t; the best t. Local reports are not used."""

    name: ClassVar[str] = "threshold"
    version: ClassVar[int] = 2
    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    currencies: ClassVar[frozenset[Currency]] = frozenset(Currency)
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    summary: ClassVar[str] = "The plain mean of those who offer at least t, all paying t; the best t."

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        r"""Plan a release.

        With m(t) people who offer t or more, public ones included, the error is
        :math:`1 / (4 m) + 2 / (m t)^2`, and with a tilt D another :math:`D^2 (1 - m / n)^2`; every offered
        epsilon is tried, and public people alone.

        Args:
            groups: All groups of the study.
            question: What is asked.

        Returns:
            Weight t [micro-epsilon] on each person who is kept, Laplace noise; see
            `app.estimators.calibration.purse` for Gaussian noise.

        Raises:
            NotApplicable: no person is public, and no person central can take part.

        Privacy: t for each central person who offers at least t, nothing for the others.
        """
        groups = Groups.of(groups)
        central, public = participants(groups, Trust.CENTRAL), participants(groups, Trust.PUBLIC)
        if not central and not public:
            raise NotApplicable("No person central or public can take part.")
        known = sum(groups.of_able(Trust.PUBLIC, "count"))
        paid = purse(groups.of_able(Trust.CENTRAL, "epsilon"), question, fine=False)
        limits = dict(zip(central, paid.limits, strict=True))
        order = sorted(central, key=lambda index: -limits[index])
        offered = np.array([limits[index] for index in order], dtype=np.float64) / paid.unit
        kept = known + np.cumsum(sizes_of(groups)[order])
        people = max(question.people or 0, sum(groups.column("count")))
        errors = WORST_VARIANCE / kept + 2 / (kept * offered) ** 2 if central else np.zeros(0)
        errors = errors + (question.tilt * (1 - kept / people)) ** 2
        threshold = 0
        exact = WORST_VARIANCE / known + (question.tilt * (1 - known / people)) ** 2 if known else math.inf
        if central and exact > float(errors.min()):
            threshold = limits[order[int(np.argmin(errors))]]
        chosen = [index for index in central if threshold and limits[index] >= threshold]
        weights = [0] * len(groups)
        for index in (*chosen, *public):
            weights[index] = max(threshold, 1)
        return linear_plan(groups, question, weights=weights, noise=paid.noise if chosen else NoNoise())

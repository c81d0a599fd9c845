"""What estimators of replace_one studies answer without a tilt, for profiles of people drawn from seeds."""

import json
import random
from pathlib import Path

from app.accounting.costs import group_costs
from app.core.grid import GRID_SIZE
from app.core.study import Relation, Trust
from app.estimators import registry
from app.estimators.interface import NotApplicable
from tests.support.groups import WIDE_GRID, central, local, public, query_values, replace_one

VECTORS = Path(__file__).parent / "untilted.json"
PROFILES = 40
OFFERS = [0.05, 0.1, 0.5, 1.0, 4.0]


def answers(seed: int) -> dict[str, object]:
    """Estimates, intervals, predictions and charges of one profile, as JSON gives them back."""
    draw = random.Random(seed)
    groups = [
        central(draw.choice(OFFERS), draw.randint(1, 900), participates=draw.random() < 0.8)
        for _ in range(draw.randint(0, 4))
    ]
    groups += [public(draw.randint(1, 50)) for _ in range(draw.randint(0, 1))]
    for _ in range(draw.randint(0, 3)):
        reports = [draw.randint(-GRID_SIZE, 2 * GRID_SIZE) for _ in range(draw.randint(1, 30))]
        groups.append(local(draw.choice([0.1, 0.5, 2.0]), reports))
    sums = [0 if g.trust is Trust.LOCAL else draw.randint(0, g.count * GRID_SIZE) for g in groups]
    found: dict[str, object] = {}
    for estimator in registry.applicable(Relation.REPLACE_ONE):
        for shrinkage in ("none", "noise", "minimax") if estimator.name == "optimal" else ("",):
            asked = replace_one(
                groups, grid=WIDE_GRID, parameters={"shrinkage": shrinkage} if shrinkage else {}
            )
            try:
                plan = estimator.plan(groups, registry.for_estimator(estimator, asked))
            except NotApplicable:
                continue
            answer = plan.conclude(query_values(plan, groups, sums))
            found[f"{estimator.name} {shrinkage}".strip()] = {
                "estimate": answer.estimate,
                "intervals": [
                    [part.lower, part.upper] for part in (answer.interval, answer.population_interval)
                ],
                "predicted_error": plan.population_error,
                "charges": [
                    [cost, 0] for cost in group_costs(plan.queries, plan.noise, Relation.REPLACE_ONE, groups)
                ],
            }
    return found


if __name__ == "__main__":
    VECTORS.write_text(json.dumps([answers(seed) for seed in range(PROFILES)]) + "\n")

"""Single contributions of new people, beside the same route without a database."""

from benchmarks.load import rate
from benchmarks.report import Ratio
from benchmarks.services import installation, serve
from benchmarks.stand_in import STUDY, TOKEN_VARIABLE
from benchmarks.studies import contribution_requests, definition

WORKERS = 2
CONNECTIONS = 64
GOAL = 0.6


def run(*, quick: bool) -> list[Ratio]:
    """Rounds of baseline and subject, one after the other."""
    rounds, seconds = (2, 1.0) if quick else (7, 3.0)
    subject: list[float] = []
    baseline: list[float] = []
    with installation() as here:
        here.create_study(definition(STUDY))
        with (
            serve(
                "benchmarks.stand_in:create_app",
                workers=WORKERS,
                environment={TOKEN_VARIABLE: here.contribute},
            ) as bare,
            here.serve(workers=WORKERS) as real,
        ):
            for number in range(rounds + 1):
                for port, rates in ((bare, baseline), (real, subject)):
                    requests = contribution_requests(STUDY, here.contribute, f"round{number}")
                    rates.append(rate(port, CONNECTIONS, requests, seconds))
    # The first round warms up: imports, connections, prepared statements.
    return [
        Ratio(
            section="post",
            name="single contributions",
            unit="1/s",
            subject=subject[1:],
            baseline=baseline[1:],
            goal=GOAL,
            note=f"post: {WORKERS} workers, {CONNECTIONS} keep-alive connections, new subjects; "
            "baseline: the same route and checks without a database",
        )
    ]

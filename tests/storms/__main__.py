"""`python -m tests.storms SEED`: the storm of a seed again; `--storms N`: that many from there on.

`--orders` in place of a seed: every order of the statements of each two requests, with few switches between
them. Ends with 1 where something is not explained.
"""

import argparse
import asyncio
import sys
from contextlib import ExitStack, closing

from app.logging import configure_logging
from app.postgres.embedded import EmbeddedPostgres
from tests.storms.faults import FAULTS, patched, run_storms
from tests.support.citus import CitusServer
from tests.support.databases import Server, crash, scratch_directory


def main() -> int:
    """Run storms, and stop at the first in which something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.storms", description=__doc__)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("--storms", type=int, default=1, help="how many, each with the next seed")
    parser.add_argument("--database", help="a migrated database; without it one is made")
    parser.add_argument(
        "--citus", action="store_true", help="on a Citus cluster, if it is beside the checkout"
    )
    parser.add_argument("--story", action="store_true", help="print all that was decided, and all calls")
    parser.add_argument("--go-on", action="store_true", help="do not stop where something is wrong")
    parser.add_argument("--fault", choices=FAULTS, help="with the service as it was before this was mended")
    parser.add_argument(
        "--orders",
        nargs="*",
        metavar="REQUEST",
        help="every order of two requests of `orders.ACTS`; without names of each two",
    )
    parser.add_argument("--switches", type=int, default=1, help="the most in one order")
    parser.add_argument(
        "--struck-switches", type=int, default=0, help="the most beside a strike; negative: no strikes"
    )
    parser.add_argument("--free-attempts", type=int, default=1, help="of a release in them, without a lock")
    given, rest = parser.parse_args(), sys.argv[1:]
    if given.fault is not None:
        place = rest.index("--fault")
        with scratch_directory() as directory:
            own = [*rest[:place], *rest[place + 2 :]]
            return run_storms(own, patched(given.fault, directory), capture=False).returncode
    # Takes seconds to import, which a fault's storm does again.
    from tests.storms.orders import ACTS, PAIRS, explore
    from tests.storms.storm import Storm

    if given.orders and (len(given.orders) != 2 or not ACTS.keys() >= set(given.orders)):
        parser.error(f"argument --orders: two of {', '.join(ACTS)}, or none")
    # Orders of what is named, or of all pairs; without the option, storms.
    pairs = () if given.orders is None else [tuple(given.orders)] if given.orders else PAIRS
    seeds = range(given.seed, given.seed + given.storms) if given.orders is None else ()
    configure_logging("error")
    wrong = 0
    with ExitStack() as stack:
        url = given.database
        if given.citus:
            cluster = CitusServer(stack.enter_context(scratch_directory()))
            url = stack.enter_context(stack.enter_context(closing(cluster)).database())
        elif url is None:
            embedded = stack.enter_context(EmbeddedPostgres(stack.enter_context(scratch_directory())))
            stack.callback(crash, embedded)
            url = stack.enter_context(stack.enter_context(closing(Server(embedded.url))).database())
        for number, pair in enumerate(pairs):
            explored = asyncio.run(
                explore(
                    url,
                    pair,
                    name=str(number),
                    switches=given.switches,
                    struck_switches=given.struck_switches,
                    free_attempts=given.free_attempts,
                )
            )
            print(explored, flush=True)
            wrong += len(explored.wrong)
            if wrong and not given.go_on:
                break
        for seed in seeds:
            storm = Storm(seed, url)
            outcome = asyncio.run(storm.run())
            if given.story:
                print("\n".join([*storm.told, *map(str, storm.calls)]))
            print(outcome, flush=True)
            wrong += not outcome.well
            if wrong and not given.go_on:
                break
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

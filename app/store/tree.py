"""The Merkle tree over releases: its complete subtrees, and the public keys that signed its roots."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.core.merkle import Subtree
from app.store.sql import Connection, Sql

READ_SIZE = Sql.of(int)("SELECT coalesce(max(place) + 1, 0) FROM tree_node WHERE level = 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    level: int
    place: int
    hash: bytes


READ_NODES = Sql.of(_Node)("""
    SELECT level, place, hash FROM tree_node
    JOIN unnest(CAST(:levels AS smallint[]), CAST(:places AS bigint[])) AS asked (level, place)
    USING (level, place)
""")

ADD_NODES = Sql("""
    INSERT INTO tree_node (level, place, hash)
    SELECT * FROM unnest(CAST(:levels AS smallint[]), CAST(:places AS bigint[]), CAST(:hashes AS bytea[]))
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chained:
    """A release as a leaf of the tree is made of it: its place, its link and what it says."""

    number: int
    link: bytes
    body: bytes


# The first one is taken however large it is.
READ_CHAINED = Sql.of(Chained)("""
    SELECT number, hash AS link, body FROM (
        SELECT number, hash, body, sum(octet_length(body)) OVER (ORDER BY number) AS bytes
        FROM (SELECT number, hash, body FROM release WHERE number > :after ORDER BY number LIMIT :limit) page
    ) counted WHERE bytes <= :most OR number = CAST(:after AS bigint) + 1 ORDER BY number
""")

FORGET = Sql("DELETE FROM tree_node")

KEY_FACT = "tree_key"
"""Name of the fact that hides links in the tree."""

FORGET_KEY = Sql("DELETE FROM installation WHERE key = :key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """A public key, and when something was first signed by it."""

    key: bytes
    since: datetime


CLAIM_SIGNER = Sql("""
    INSERT INTO signing_key (key, since) VALUES (:key, :since) ON CONFLICT (key) DO NOTHING
""")

READ_SIGNERS = Sql.of(Signer)("SELECT key, since FROM signing_key ORDER BY since, key")


async def read_size(connection: Connection) -> int:
    """How many leaves the tree has."""
    return await READ_SIZE.one(connection)


async def read_nodes(connection: Connection, subtrees: Iterable[Subtree]) -> Mapping[Subtree, bytes]:
    """The hashes of complete subtrees."""
    levels, places = _columns(subtrees)
    rows = await READ_NODES.all(connection, levels=levels, places=places)
    return {Subtree(row.level, row.place): row.hash for row in rows}


async def add_nodes(connection: Connection, nodes: Mapping[Subtree, bytes]) -> None:
    """Store the hashes of new complete subtrees."""
    levels, places = _columns(nodes)
    await ADD_NODES.run(connection, levels=levels, places=places, hashes=list(nodes.values()))


def _columns(subtrees: Iterable[Subtree]) -> tuple[list[int], list[int]]:
    found = list(subtrees)
    return [one.level for one in found], [one.place for one in found]


async def read_chained(connection: Connection, *, after: int, limit: int, most: int) -> Sequence[Chained]:
    """The releases after a number, in order: at most `limit`, and not more than `most` bytes but for one."""
    return await READ_CHAINED.all(connection, after=after, limit=limit, most=most)


async def forget(connection: Connection) -> None:
    """Begin another tree, under another key, when something is published next."""
    await FORGET.run(connection)
    await FORGET_KEY.run(connection, key=KEY_FACT)


async def claim_signer(connection: Connection, key: bytes, at: datetime) -> None:
    """Note that something is signed by a key."""
    await CLAIM_SIGNER.run(connection, key=key, since=at)


async def read_signers(connection: Connection) -> list[Signer]:
    """Every public key by which something was signed, the oldest first."""
    return await READ_SIGNERS.all(connection)

"""The Merkle tree of RFC 6962 over releases, of which only complete subtrees are kept.

A subtree is named by its level and its place: that of level l and place p is over the 2^l leaves from
p 2^l on. So a tree that grows by one leaf keeps every subtree that it had, and any root and any proof of
inclusion takes a number of them that is the square of the logarithm of the tree's size at most.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import NamedTuple


class Subtree(NamedTuple):
    """A complete subtree: over the leaves from `place * 2**level` on, `2**level` of them."""

    level: int
    place: int


Nodes = Mapping[Subtree, bytes]
"""Hashes of complete subtrees."""


def leaf_hash(content: bytes) -> bytes:
    """SHA-256 of a leaf, 32 bytes."""
    return hashlib.sha256(b"\0" + content).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """SHA-256 of a node over two others, 32 bytes."""
    return hashlib.sha256(b"\1" + left + right).digest()


def covering(first: int, end: int) -> list[Subtree]:
    """The complete subtrees that together are over the leaves from `first` up to `end`, from left to right.

    Args:
        first: A multiple of the largest power of two up to `end - first`.
        end: One behind the last leaf.

    >>> covering(0, 7)
    [Subtree(level=2, place=0), Subtree(level=1, place=2), Subtree(level=0, place=6)]
    """
    found = []
    while first < end:
        level = (end - first).bit_length() - 1
        found.append(Subtree(level, first >> level))
        first += 1 << level
    return found


def grown(size: int, frontier: Sequence[bytes], leaves: Sequence[bytes]) -> Iterator[tuple[Subtree, bytes]]:
    """What a tree has more of when it grows by leaves: every new complete subtree.

    Args:
        size: Leaves that it has.
        frontier: Hashes of `covering(0, size)`.
        leaves: Hashes of the new leaves.
    """
    stack = list(zip(covering(0, size), frontier, strict=True))
    for place, leaf in enumerate(leaves, start=size):
        one, hash_ = Subtree(0, place), leaf
        yield one, hash_
        while one.place % 2:
            _, left = stack.pop()
            one, hash_ = Subtree(one.level + 1, one.place // 2), node_hash(left, hash_)
            yield one, hash_
        stack.append((one, hash_))


def over(subtrees: Sequence[Subtree], nodes: Nodes) -> bytes:
    """The hash over neighboring complete subtrees, as `covering` gives them; there is at least one."""
    hashes = [nodes[one] for one in reversed(subtrees)]
    return reduce(lambda right, left: node_hash(left, right), hashes)


def path(place: int, size: int) -> list[list[Subtree]]:
    """The subtrees over which each hash of a proof of inclusion is, from the leaf to the root.

    Args:
        place: Of the leaf, from 0 on.
        size: Leaves of the tree.
    """
    found: list[list[Subtree]] = []
    first, end = 0, size
    while end - first > 1:
        middle = first + (1 << (end - first - 1).bit_length() - 1)
        if place < middle:
            found.append(covering(middle, end))
            end = middle
        else:
            found.append(covering(first, middle))
            first = middle
    return found[::-1]


def root_of(leaf: bytes, place: int, size: int, proof: Sequence[bytes]) -> bytes | None:
    """The root of the tree in which a proof shows a leaf; None where it is no proof for that place.

    Args:
        leaf: Its hash.
        place: From 0 on, below `size`.
        size: Leaves of the tree.
        proof: From the leaf to the root.
    """
    if not 0 <= place < size:
        return None
    last, found = size - 1, leaf
    for one in proof:
        if last == 0:
            return None
        if place % 2 or place == last:
            found = node_hash(one, found)
            while place and not place % 2:
                place, last = place // 2, last // 2
        else:
            found = node_hash(found, one)
        place, last = place // 2, last // 2
    return found if last == 0 else None

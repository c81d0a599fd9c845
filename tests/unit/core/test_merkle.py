"""The tree of releases against RFC 6962's own definition, leaf by leaf."""

import pytest

from app.core.merkle import Subtree, covering, grown, leaf_hash, node_hash, over, path, root_of

MOST = 66
LEAVES = [leaf_hash(bytes([number])) for number in range(MOST)]


def of_rfc(leaves: list[bytes]) -> bytes:
    """Merkle Tree Hash of RFC 6962, section 2.1, of the leaves' hashes."""
    if len(leaves) == 1:
        return leaves[0]
    split = 1 << ((len(leaves) - 1).bit_length() - 1)
    return node_hash(of_rfc(leaves[:split]), of_rfc(leaves[split:]))


@pytest.fixture(scope="module")
def nodes() -> dict[Subtree, bytes]:
    """All complete subtrees, of a tree that grew by different numbers of leaves."""
    found: dict[Subtree, bytes] = {}
    size = 0
    for more in (1, 2, 0, 5, 13, 1, 30, 14):
        frontier = [found[one] for one in covering(0, size)]
        found |= dict(grown(size, frontier, LEAVES[size : size + more]))
        size += more
    assert size == MOST
    return found


def test_every_root_is_that_of_the_rfc(nodes):
    for size in range(1, MOST + 1):
        assert over(covering(0, size), nodes) == of_rfc(LEAVES[:size])


def test_a_proof_shows_its_leaf_at_its_place_and_nothing_else(nodes):
    for size in range(1, MOST + 1):
        root = of_rfc(LEAVES[:size])
        for place in range(size):
            proof = [over(part, nodes) for part in path(place, size)]
            assert root_of(LEAVES[place], place, size, proof) == root
            assert root_of(LEAVES[place], place, size, [*proof, root]) != root
            assert root_of(LEAVES[place], place, size, proof[:-1]) != root or not proof
            assert root_of(LEAVES[place - 1], place, size, proof) != root or size == 1
            others = (place - 1, (place + 1) % size, size)
            assert all(root_of(LEAVES[place], one, size, proof) != root for one in others if one != place)


def test_a_proof_is_short():
    assert max(len(path(place, 10**6)) for place in (0, 1, 524_287, 524_288, 999_999)) <= 20


INPUTS = (
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
)
ROOTS = {
    1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    2: "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    8: "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
}
"""Of the reference implementation of Certificate Transparency."""


@pytest.mark.parametrize("size", ROOTS)
def test_leaves_and_nodes_have_the_hashes_of_the_reference(size: int):
    leaves = [leaf_hash(bytes.fromhex(text)) for text in INPUTS[:size]]
    assert of_rfc(leaves).hex() == ROOTS[size]

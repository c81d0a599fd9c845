"""How many forms an address may send, and for how long it is known."""

from uuid import uuid4

import pytest

from app.web.rate import RateLimited
from app.web.visitors import OF_A_LINK, OF_AN_ADDRESS, REMEMBERED_SECONDS, Visitors


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_addresses_are_counted_apart_and_one_of_ipv6_is_a_network():
    visitors = Visitors(Clock())
    for host in range(OF_AN_ADDRESS):
        visitors.take_address(f"2001:db8::{host:x}")
    with pytest.raises(RateLimited, match="your network address"):
        visitors.take_address("2001:db8::ffff")
    visitors.take_address("2001:db8:0:1::1")
    visitors.take_address("192.0.2.1")
    visitors.take_address("no address")


def test_an_address_may_send_again_after_a_while_and_is_forgotten_after_an_hour():
    clock = Clock()
    visitors = Visitors(clock)
    for _ in range(OF_AN_ADDRESS):
        visitors.take_address("192.0.2.1")
    clock.now = 1.0
    visitors.take_address("192.0.2.1")
    known = list(visitors._addresses._buckets)
    assert len(known) == 1
    assert "192.0.2.1" not in str(known[0])
    clock.now = REMEMBERED_SECONDS + 2
    visitors.take_address("192.0.2.1")
    assert list(visitors._addresses._buckets) != known, "under another key"
    assert len(visitors._addresses._buckets) == 1


def test_a_link_takes_so_many_forms_a_minute_from_all_addresses():
    visitors, one, other = Visitors(Clock()), uuid4(), uuid4()
    for _ in range(OF_A_LINK):
        visitors.take_link(one)
    with pytest.raises(RateLimited, match="with this link"):
        visitors.take_link(one)
    visitors.take_link(other)

"""How often people who bear no token may send and read: by their address, and by the link that they use."""

import hmac
import ipaddress
import time
from collections.abc import Callable
from uuid import UUID

from app.services.admin.tokens import new_secret
from app.web.rate import RateLimit

OF_AN_ADDRESS = 120
"""Forms a minute: room for thirty phones behind one router."""

OF_A_READER = 600
"""Published pages and files a minute that one address reads."""

OF_A_LINK = 600
"""Forms a minute, from all addresses."""

REMEMBERED_SECONDS = 3600.0
"""How long an address is known, and only by a keyed digest in the memory of this process."""


class Visitors:
    """Counts the forms of people without a token.

    Args:
        clock: Seconds that only ever grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._links = RateLimit(OF_A_LINK, clock, who="The people with this link")
        self._forget()

    def _forget(self) -> None:
        self._since = self._clock()
        self._secret = new_secret().encode()
        self._readers = RateLimit(OF_A_READER, self._clock, who="Those who read at your network address")
        self._addresses = RateLimit(OF_AN_ADDRESS, self._clock, who="The people at your network address")

    def take_address(self, address: str) -> None:
        """Count one form that comes from an address.

        Raises:
            RateLimited: it is one too many.
        """
        known = self._known(address)
        self._addresses.take(known)

    def take_reader(self, address: str) -> None:
        """Count one published page that an address reads.

        Raises:
            RateLimited: it is one too many.
        """
        known = self._known(address)
        self._readers.take(known)

    def _known(self, address: str) -> bytes:
        """What is known of an address for an hour."""
        if self._clock() - self._since > REMEMBERED_SECONDS:
            self._forget()
        return hmac.digest(self._secret, _network(address).encode(), "sha256")

    def take_link(self, invitation: UUID) -> None:
        """Count one form that comes by a link of an invitation.

        Raises:
            RateLimited: it is one too many.
        """
        self._links.take(invitation)


def _network(address: str) -> str:
    """Whose an address is: in IPv6 one customer has at least a /64.

    >>> _network("2001:db8:1:2:3::4"), _network("192.0.2.7")
    ('2001:db8:1:2::/64', '192.0.2.7')
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), 64), strict=False))

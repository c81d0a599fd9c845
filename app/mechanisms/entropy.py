"""Random bits from the operating system: the only source that `app.mechanisms.draw` knows."""

import secrets

from app.core.errors import InternalFault


def system_bits(count: int) -> int:
    """Random bits from the operating system (`getrandom`).

    Args:
        count: How many, at least 1.

    Returns:
        A uniform integer in [0, 2**count).

    Raises:
        InternalFault: there is no entropy. There is then no noise and must be no answer.
    """
    try:
        return secrets.randbits(count)
    except Exception as error:
        raise InternalFault("The noise source failed.") from error

"""What a source of noise must give; else there is no noise, and must be no answer."""

from collections.abc import Callable

from app.core.errors import InternalFault


def integers(source: Callable[[list[int]], object], count: int) -> list[int]:
    """Independent draws of a source that adds noise to integers. Draws entropy.

    Raises:
        InternalFault: it failed, or gave something else.
    """
    try:
        noise = source([0] * count)
    except Exception as error:
        raise InternalFault("The noise source failed.") from error
    if not (isinstance(noise, list) and len(noise) == count and all(type(one) is int for one in noise)):
        raise InternalFault("The noise source did not return integers.")
    return noise

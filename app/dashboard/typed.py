"""Numbers as people type them; `client/js/page/typed.ts` reads them the same way on a person's own device."""

import re
from typing import Literal

Mark = Literal[".", ","]

SPACES = str.maketrans(
    {
        "'": "",
        "\N{RIGHT SINGLE QUOTATION MARK}": "",
        " ": "",
        "\N{NO-BREAK SPACE}": "",
        "\N{NARROW NO-BREAK SPACE}": "",
        "\N{MINUS SIGN}": "-",
    }
)


def typed(text: str, mark: Mark) -> str | None:
    """What people mean by a text, with a point before decimals; None where it may be thousands or decimals.

    Args:
        text: As it was typed. What is no number comes back as it is, or nearly so.
        mark: What stands before decimals in the language of the page.

    >>> typed("12,5", "."), typed("12.5", ","), typed("1,234", "."), typed("1,234", ",")
    ('12.5', '12.5', None, '1.234')
    """
    own = text.translate(SPACES)
    other: Mark = "," if mark == "." else "."
    for decimal, group in ((mark, other), (other, mark)):
        if re.fullmatch(rf"[+-]?[1-9][0-9]{{0,2}}([{group}][0-9]{{3}})+[{decimal}][0-9]+", own):
            return own.replace(group, "").replace(decimal, ".")
    if re.fullmatch(rf"[+-]?[1-9][0-9]{{0,2}}([{other}][0-9]{{3}})+", own):
        return None
    if re.fullmatch(rf"[+-]?(0[{other}][0-9]+|[0-9]+[{other}]([0-9]{{1,2}}|[0-9]{{4,}}))", own):
        return own.replace(other, ".")
    return own if other in own or own.count(mark) > 1 else own.replace(mark, ".")

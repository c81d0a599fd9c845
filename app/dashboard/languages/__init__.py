"""Languages of the pages for people who answer: a catalog for each, and numbers as people write them there.

A catalog is a `.po` file in this folder, read as it is. English is in the templates and needs none, so that
a new language is a new file and nothing else.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path

from babel import Locale, UnknownLocaleError
from babel.dates import format_date, format_datetime
from babel.lists import format_list
from babel.messages.pofile import read_po
from babel.numbers import format_decimal, get_decimal_symbol

from app.dashboard.typed import Mark

HERE = Path(__file__).parent
ENGLISH = "en"
MOST_WISHES = 20
"""Of one browser that are looked at."""

_WISH = re.compile(
    r"\s*([A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*|\*)\s*(?:;\s*q\s*=\s*([01](?:\.[0-9]{0,3})?)\s*)?"
)


def N_(message: str) -> str:
    """Mark a text for the catalogs that is translated later."""
    return message


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """A language, as it is written in one region.

    Attributes:
        code: Of its catalog.
        locale: How numbers and lists are written.
        texts: From the English text.
    """

    code: str
    locale: Locale
    texts: Mapping[str, str]

    @property
    def name(self) -> str:
        """What its speakers call it."""
        own = Locale.parse(self.code).get_display_name(self.code) or self.code
        return own[0].upper() + own[1:]

    @property
    def mark(self) -> Mark:
        """What stands before decimals."""
        return "," if get_decimal_symbol(self.locale) == "," else "."

    def text(self, message: str) -> str:
        """A message in this language; in English where the catalog has none."""
        return self.texts.get(message, message)

    def number(self, value: str | float) -> str:
        """A number with all its digits.

        >>> catalogs()["de"].number("1234.5"), catalogs()["en"].number(0.000001)
        ('1.234,5', '0.000001')
        """
        return str(format_decimal(Decimal(str(value)), locale=self.locale, decimal_quantization=False))

    def typed(self, number: str) -> str:
        """A number with a decimal point as people would type it."""
        return number.replace(".", self.mark)

    def moment(self, at: datetime) -> str:
        """A moment in UTC."""
        return format_datetime(at, "medium", locale=self.locale)

    def day(self, on: date) -> str:
        """A day."""
        return format_date(on, "medium", locale=self.locale)

    def list(self, names: Sequence[str]) -> str:
        """Names in a row."""
        return format_list(list(names), locale=self.locale)


def load(folder: Path) -> dict[str, Language]:
    """English, and each language that has a catalog in a folder, by their codes."""
    found = {ENGLISH: Language(code=ENGLISH, locale=Locale.parse(ENGLISH), texts={})}
    for path in sorted(folder.glob("*.po")):
        with path.open("rb") as file:
            catalog = read_po(file, locale=path.stem)
        texts = {str(one.id): str(one.string) for one in catalog if one.id and one.string and not one.fuzzy}
        found[path.stem] = Language(code=path.stem, locale=Locale.parse(path.stem), texts=texts)
    return found


@cache
def catalogs() -> Mapping[str, Language]:
    """The languages of this installation."""
    return load(HERE)


def choose(known: Mapping[str, Language], named: str | None, accept: str) -> Language:
    """The language of a page.

    Args:
        known: By their codes, English among them.
        named: Code of the one that a person chose on the page; None, or one that is not known, for none.
        accept: What the browser asks for, as `Accept-Language` has it. Its region says how numbers are
            written.
    """
    wishes = _wishes(accept)
    codes = [named] if named is not None and named in known else [wish.split("-")[0] for wish in wishes]
    code = next((one for one in codes if one in known), ENGLISH)
    region = next((wish for wish in wishes if wish.split("-")[0] == code), code)
    try:
        return replace(known[code], locale=Locale.parse(region, sep="-"))
    except (ValueError, UnknownLocaleError):
        return known[code]


def _wishes(accept: str) -> list[str]:
    """Tags of languages, the most wanted first.

    >>> _wishes("fr;q=0.3, de-CH, *;q=0.1, en;q=0")
    ['de-CH', 'fr']
    """
    found = [_WISH.fullmatch(part) for part in accept.split(",")[:MOST_WISHES]]
    weighed = [(float(one[2] or 1), one[1]) for one in found if one is not None and one[1] != "*"]
    ordered = sorted(weighed, key=lambda one: -one[0])
    return [
        f"{head.lower()}{dash}{rest}"
        for q, tag in ordered
        if q > 0
        for head, dash, rest in [tag.partition("-")]
    ]

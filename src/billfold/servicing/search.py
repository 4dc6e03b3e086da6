"""The search of operators: what a text can mean decides what is looked for, each by one index."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID

from asyncpg import Record

from billfold.http.raw_request import is_uuid
from billfold.identity.users.contact_details import USERS, has_email
from billfold.identity.users.rules import normalize_email
from billfold.ledger.bank import Bank
from billfold.servicing.lists import ACH, CARDS, CUSTOMERS, WIRES, Listing
from billfold.servicing.lists import USERS as PEOPLE

SHOWN_MAX = 20
"""Maximum number of rows found of each kind."""
TEXT_MAX = 100
_WORDS_MAX = 6
_IMAD = re.compile(r"\d{8}[A-Z0-9]{8}\d{6}\d*")
_TRACE, _ACCOUNT, _LAST_FOUR = re.compile(r"\d{15}"), re.compile(r"\d{5,17}"), re.compile(r"\d{4}")
_MONEY = re.compile(r"\$?(\d{1,3}(?:,\d{3}){1,3}|\d{1,12})(?:\.(\d{2}))?")
_NUMBER = re.compile(r"[\d\s-]+")
Values = tuple[object, ...]


class Found(NamedTuple):
    """The rows of one kind that a search found."""

    listing: Listing
    rows: Sequence[Record]

    @property
    def only_page(self) -> str:
        """The page of the only row; empty for more."""
        return self.listing.page_of(self.rows[0]) if len(self.rows) == 1 else ""


class _Finder(NamedTuple):
    """A meaning of a text: the values that it stands for or None, and the condition that they fill in.

    One that `is_rare` finds a few rows of the whole bank, and is asked for those of one partner too.
    """

    listing: Listing
    read: Callable[[str, Bank], Values | None]
    condition: str
    is_rare: bool = False


def _words(text: str, _: Bank) -> Values | None:
    found = re.findall(r"[^\W_]{2,}", text.lower())[:_WORDS_MAX]  # one letter begins too many names
    named = any(not each.isdigit() for each in found) and "@" not in text and not is_uuid(text)
    return (" & ".join(f"{each}:*" for each in found),) if named else None


def _email(text: str, bank: Bank) -> Values | None:
    return (USERS.indexes(bank.vault, text), normalize_email(text)) if text.count("@") == 1 else None


def _id(text: str, _: Bank) -> Values | None:
    return (text.lower(),) if is_uuid(text) else None


def _account(text: str, bank: Bank) -> Values | None:
    routing, _, number = text.rpartition(":")
    number = _digits(number)
    return (
        (f"{_digits(routing) or bank.settings.bank_routing_number}:{number}",) if _ACCOUNT.fullmatch(number) else None
    )


def _digits(text: str) -> str:
    """Return the digits of a number however it is grouped; the text as it is if it is none."""
    return re.sub(r"[\s-]", "", text) if _NUMBER.fullmatch(text) else text


def _matching(pattern: re.Pattern[str]) -> Callable[[str, Bank], Values | None]:
    return lambda text, _: (_digits(text).upper(),) if pattern.fullmatch(_digits(text).upper()) else None


def _cents(text: str, _: Bank) -> Values | None:
    found = _MONEY.fullmatch(text)
    return found and (int(found[1].replace(",", "")) * 100 + int(found[2] or 0),)


_OBJECTS = ("customer", "pocket", "portal", "counterparty", "card", "card_order", "transfer")
_LIKE = "@@ to_tsquery('simple', $1)"


def _holder_of(*kinds: str) -> str:
    named = ", ".join(f"'{each}'" for each in kinds)
    return f"c.customer_id IN (SELECT d.customer_id FROM directory d WHERE d.kind IN ({named}) AND d.value = $1)"


_FINDERS = (
    _Finder(CUSTOMERS, _words, f"to_tsvector('simple', c.name) {_LIKE}"),
    _Finder(CUSTOMERS, _id, _holder_of(*_OBJECTS), is_rare=True),
    _Finder(CUSTOMERS, _account, _holder_of("account"), is_rare=True),
    _Finder(PEOPLE, _words, f"to_tsvector('simple', u.first_name || ' ' || u.last_name) {_LIKE}"),
    _Finder(PEOPLE, _email, has_email("$1", "$2")),
    _Finder(
        WIRES,
        _id,
        "(t.customer_id, t.wire_id) IN"
        " (SELECT d.customer_id, d.object_id FROM directory d WHERE d.kind = 'wire' AND d.value = $1)",
        is_rare=True,
    ),
    _Finder(WIRES, _id, "t.uetr = $1", is_rare=True),
    _Finder(WIRES, _matching(_IMAD), "(t.imad = $1 OR t.omad = $1)", is_rare=True),
    _Finder(WIRES, _cents, "t.amount = $1"),
    _Finder(ACH, _id, "t.ach_id = $1::text::uuid", is_rare=True),
    _Finder(ACH, _matching(_TRACE), "t.trace_number = $1", is_rare=True),
    _Finder(ACH, _cents, "t.amount = $1"),
    _Finder(CARDS, _matching(_LAST_FOUR), "t.last_four = $1"),
)


def _statement(each: _Finder, values: Values, partner_id: UUID | None) -> str:
    """Return the statement of a meaning: the newest payments and cards, any customers and people."""
    of_partner = "" if partner_id is None else f" AND c.partner_id = ${len(values) + 1}"
    newest = "" if each.listing in (CUSTOMERS, PEOPLE) else " ORDER BY t.created_at DESC"
    return f"{each.listing.rows}{each.condition}{of_partner}{newest} LIMIT {SHOWN_MAX}"


async def search(bank: Bank, text: str, partner_id: UUID | None = None) -> list[Found]:
    """Return what a text finds: customers, users, wires, ACH entries, cards, by every meaning that it can have.

    For one partner, what it stands for of that partner's, by ids and numbers alone.
    """
    found: dict[str, Found] = {}
    own = () if partner_id is None else (partner_id,)
    for each in _FINDERS:
        values = each.read(text, bank)
        if values is None or not (each.is_rare or partner_id is None):
            continue
        rows = await bank.pool.fetch(_statement(each, values, partner_id), *values, *own)
        if rows:
            before = found.get(each.listing.title)
            found[each.listing.title] = Found(each.listing, [*(before.rows if before else ()), *rows])
    return list(found.values())

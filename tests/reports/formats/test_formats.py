"""Every format is valid with any text of customers and other banks, and every reader finds the same figures."""

import asyncio
from datetime import UTC, date, datetime
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reports.formats.readers import assert_same, write_and_read

from billfold.accounts.transactions.settlement import SettledDocument
from billfold.reports.entries import rules
from billfold.reports.entries.types import (
    Account,
    AccountEntry,
    AccountStatement,
    AccountType,
    Balance,
    EntryKind,
    EntryTotals,
    Holding,
    LedgerPosition,
    References,
    Security,
)
from billfold.reports.formats.files import StatementFile
from billfold.reports.requests.renderers import WRITERS

POCKET = UUID("01890000-0000-8000-8000-0123456789ab")
BILL = Security("912797UZ8", "US912797UZ81", date(2026, 12, 1))
DAY, BOOKED_AT = date(2026, 11, 20), datetime(2026, 11, 20, 15, tzinfo=UTC)
HOLDING = Holding(BILL, 900, 99_123_456, 89_211_11)
OPENING = 10**12
HOSTILE = [
    "=cmd|'/c calc'!A1",
    "\n:61:2611201120C1,00NTRFNONREF",
    "a\r\n-\r\n:20:X",
    "-}{5:}",
    ",16,195,99/\r\n49,1,1/",
    "88,/",
    "]]><Ntry/>&amp;\x00\x1b[31m\ufffe\u202e",
    "\u0418\u0432\u0430\u043d \u5f20\u4f1f \u0645\u062d\u0645\u062f M\u00fcller \U0001f4b8",
    "?00?20SVWZ+x" * 30,
    "/ROC//x/",
]
TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
AMOUNTS = st.integers(1, 10**11) | st.integers(-(10**11), -1)
NAMES = TEXTS | st.none()
DOCUMENTS = st.builds(
    SettledDocument,
    type=NAMES | st.just("CINV"),
    date=st.just("2026-11-01") | st.none(),
    amount=st.just("12.345"),
    currency=st.just("EUR"),
    **dict.fromkeys(("number", "reference", "information"), NAMES),
)
ENTRIES = st.builds(
    AccountEntry,
    kind=st.sampled_from(EntryKind),
    amount=AMOUNTS,
    reference=st.uuids().map(lambda each: each.hex),
    booked_at=st.just(BOOKED_AT),
    booked_on=st.just(DAY),
    value_on=st.just(date(2026, 11, 23)),
    title=st.just("Wire received"),
    description=TEXTS,
    counterparty=TEXTS | st.none(),
    remittance=st.lists(TEXTS, max_size=2).map(tuple),
    documents=st.lists(DOCUMENTS, max_size=2).map(tuple),
    references=st.builds(References, **dict.fromkeys(("instruction", "end_to_end", "transaction", "clearing"), NAMES)),
    is_reversal=st.booleans(),
    security=st.just(BILL) | st.none(),
)


def statement_of(account, entries, *, name, closed):
    totals = EntryTotals().add(*(each.amount for each in entries))
    position = LedgerPosition(3, 5, bytes(32).hex())
    now = datetime(2026, 11, 21 if closed else 20, 20, tzinfo=UTC)
    held = (HOLDING,) if account == AccountType.BROKERAGE else ()
    return AccountStatement(
        account=Account(
            type=account,
            customer_id=POCKET,
            owner=name,
            pocket_id=POCKET,
            name=name,
            number="12345678901",
            routing_number="061199992",
            bank="Billfold Sandbox Bank",
        ),
        period=rules.period_of(DAY, DAY, now),
        opening=Balance(OPENING - sum(each.value for each in held), held),
        closing=Balance(OPENING + totals.net - sum(each.value for each in held), held),
        totals=totals,
        gains=(),
        entries_after=0,
        position=position,
    )


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=8, deadline=None)
@given(
    account=st.sampled_from(AccountType),
    entries=st.lists(ENTRIES, max_size=4),
    pocket_name=TEXTS.filter(lambda text: text.isprintable() and text.strip()),
    closed=st.booleans(),
)
def test_statement_figures_survive_arbitrary_texts_in_every_format(name, account, entries, pocket_name, closed):
    async def pages(_):
        yield entries

    file = StatementFile((statement_of(account, entries, name=pocket_name, closed=closed),), pages)
    _, found = asyncio.run(write_and_read(name, file))
    assert_same(name, file, found, [[each.amount for each in entries]])

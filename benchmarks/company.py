"""A company with many Pockets and a long past, and its members in the console.

Its last days are lived through: every Pocket is opened, receives money, and buys bills. What is before them is
copied from those rows with numbers and times of its own, as a million commands would have left them: only what
pages read, so that nothing of it can be verified.
"""

from __future__ import annotations

from contextlib import ExitStack
from datetime import time, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from benchmarks.dataset import (
    AS_OWNER,
    PARTNER,
    Location,
    OpenBank,
    create_bank,
    create_customers,
    customer_of,
    deposit,
    open_bank,
    pocket_of,
    submit_commands,
    vacuum_and_checkpoint,
)
from benchmarks.load_generator import Sessions
from benchmarks.worker_processes import Worker
from billfold.access.oauth import access_tokens, clients
from billfold.access.oauth.rules.scopes import PERSONAL_SCOPES, SCOPES
from billfold.access.oauth.types import CLIENT_CREDENTIALS, NewClient
from billfold.access.users import members, sessions
from billfold.access.users.types import ClientInfo
from billfold.accounts.commands import OpenPocket
from billfold.accounts.transactions.pages import TransactionQuery
from billfold.platform.clock import wall_now
from billfold.platform.dates import et_date, et_instant
from billfold.platform.ids import command_id
from billfold.sandbox.clock.stepper import ClockStepper

COMPANY: Final = 0
"""The number of the customer. Its first Pocket has half of all transactions."""
MEMBERS: Final = 10

_CALLER: Final = "bench"
_SCOPES: Final = tuple(SCOPES.keys() - PERSONAL_SCOPES)
_WEEKS: Final = 4
_DAYS: Final = 3
_CENTS: Final = 1_000_00
_BATCH: Final = 2_000
_AFTER_OPENING: Final = time(11)
_APART: Final = timedelta(seconds=20)
_LEAVE_ROOM: Final = "UPDATE ledger_head SET entry_no = entry_no + $2, serialized_book = NULL WHERE customer_id = $1"
_MODELS: Final = """
CREATE TEMP TABLE model AS
SELECT row_number() OVER (ORDER BY t.pocket_id <> $2, t.pocket_id) - 1 AS nth, t.pocket_id, t.entry_no,
       b.entry_no AS trade_entry_no, b.trade_no
  FROM (SELECT DISTINCT ON (pocket_id) * FROM transaction WHERE customer_id = $1 ORDER BY pocket_id, entry_no) t
  JOIN (SELECT DISTINCT ON (pocket_id) * FROM trade WHERE customer_id = $1 ORDER BY pocket_id, entry_no) b
       USING (pocket_id)
"""
_PAST: Final = """
CREATE TEMP TABLE past AS
SELECT n, $1::bigint + n AS entry_no, $2::timestamptz - ($3 - n) * $4::interval AS at, gen_random_uuid()::text AS id,
       m.pocket_id, m.entry_no AS model_no, m.trade_entry_no, m.trade_no
  FROM generate_series(1::bigint, $3) n
  JOIN model m ON m.nth = CASE WHEN n % 2 = 0 THEN 0 ELSE n / 2 % $5 END
"""
_TRANSACTIONS: Final = """
INSERT INTO transaction (customer_id, pocket_id, entry_no, posting_no, activity_id, transaction_id, partner_id, type,
                         direction, amount, swept, title, description, booked_at, business_date, settles_at, details,
                         remittance)
SELECT t.customer_id, t.pocket_id, p.entry_no, t.posting_no, (left(p.id, 32) || '0001')::uuid,
       (left(p.id, 32) || '0000')::uuid, t.partner_id, t.type, t.direction, t.amount, t.swept, t.title, t.description,
       p.at, p.at::date, p.at, t.details, t.remittance
  FROM past p JOIN transaction t ON t.customer_id = $1 AND t.pocket_id = p.pocket_id AND t.entry_no = p.model_no
 ORDER BY p.n
"""
_ENTRIES: Final = """
INSERT INTO journal_entry (customer_id, entry_no, kind, command_id, booked_at, business_date, effective_date,
                           settles_on, postings)
SELECT $1, entry_no, 'PAYMENT', id::uuid, at, at::date, at::date, at::date, '{}' FROM past ORDER BY n
"""
_TRADES: Final = """
INSERT INTO trade (customer_id, pocket_id, entry_no, trade_no, trade_id, partner_id, activity, incoming, cusip, units,
                   price_micros, notional, tax_basis, earnings_basis, traded_at, book_date, settles_on)
SELECT t.customer_id, t.pocket_id, p.entry_no, 1, gen_random_uuid(), t.partner_id, t.activity, t.incoming, t.cusip,
       t.units, t.price_micros, t.notional, t.tax_basis, t.earnings_basis, p.at, p.at::date, p.at::date + 1
  FROM past p JOIN trade t ON t.customer_id = $1 AND t.pocket_id = p.pocket_id
                         AND (t.entry_no, t.trade_no) = (p.trade_entry_no, p.trade_no)
 ORDER BY p.n
"""
_SNAPSHOTS: Final = """
INSERT INTO snapshot
SELECT (jsonb_populate_record(NULL::snapshot,
                              to_jsonb(s) || jsonb_build_object('business_date', p.day, 'entry_no', p.entry_no))).*
  FROM (SELECT pocket_id, at::date AS day, max(entry_no) AS entry_no FROM past GROUP BY 1, 2) p
  JOIN (SELECT DISTINCT ON (pocket_id) * FROM snapshot WHERE customer_id = $1 ORDER BY pocket_id, business_date) s
       USING (pocket_id)
 WHERE p.day < s.business_date
"""
_COUNTS: Final = """
SELECT (SELECT count(*) FROM pocket WHERE customer_id = $1) AS pockets,
       (SELECT count(*) FROM transaction WHERE customer_id = $1) AS transactions,
       (SELECT count(*) FROM transaction WHERE customer_id = $1 AND pocket_id = $2) AS of_first_pocket,
       (SELECT count(*) FROM trade WHERE customer_id = $1 AND pocket_id = $2) AS trades_of_first_pocket
"""
_NEWEST_TRADE: Final = """
SELECT trade_id FROM trade WHERE customer_id = $1 AND pocket_id = $2 ORDER BY entry_no DESC, trade_no DESC LIMIT 1
"""
_LAST_PAGE: Final = """
SELECT entry_no, posting_no FROM transaction WHERE customer_id = $1 ORDER BY entry_no, posting_no OFFSET $2 LIMIT 1
"""


class CompanyPast(msgspec.Struct, frozen=True):
    """What the company has behind it, in rows, and places in it that a page shows."""

    pockets: int
    transactions: int
    of_first_pocket: int
    trades_of_first_pocket: int
    newest_trade: UUID
    first_day: str
    last_page: str
    member: UUID


class CompanySessions(msgspec.Struct, frozen=True):
    """What members open pages with, and what they read the API with."""

    pages: Sessions
    api: Sessions


class CompanyWorkload:
    """Makes the past of a company, and sessions of its members."""

    def __init__(self, opened: OpenBank) -> None:
        self._opened = opened
        self._bank = opened.bank
        self._users: list[UUID] = []
        self._client = ""

    async def prepare(self, task: tuple[str, int]) -> Any:
        """Open so many Pockets, live and copy so many transactions, or let the members in for another run."""
        verb, number = task
        if verb == "open":
            return await self._open(number)
        if verb == "live":
            return await self._live(number)
        return await self._sessions()

    async def run(self) -> None:
        """Nothing is timed."""

    async def close(self) -> None:
        """Stop the engine."""
        await self._opened.close()

    async def _open(self, pockets: int) -> None:
        await create_customers(self._bank, (COMPANY,), weeks=_WEEKS)
        await submit_commands(
            self._bank,
            [
                OpenPocket(
                    caller=_CALLER,
                    key=command_id("open another", str(nth)),
                    customers=(customer_of(COMPANY),),
                    partner_id=PARTNER,
                    name=f"Branch {nth:04d}",
                    deposit_weeks=_WEEKS,
                    reinvestment_weeks=_WEEKS,
                )
                for nth in range(1, pockets)
            ],
        )

    async def _live(self, rows: int) -> CompanyPast:
        bank, company = self._bank, customer_of(COMPANY)
        room = rows + 1
        async with bank.pool.acquire() as conn:
            first = await conn.fetchval("SELECT entry_no FROM ledger_head WHERE customer_id = $1", company)
            await conn.execute(_LEAVE_ROOM, company, room)
        portals = await bank.pool.fetch("SELECT pocket_id, portal_id FROM portal WHERE customer_id = $1", company)
        began = await self._advance()
        for day in range(_DAYS):
            await submit_commands(
                bank,
                [
                    msgspec.structs.replace(
                        deposit(COMPANY, row["portal_id"], _CENTS + day, occasion=f"{day}.{row['pocket_id']}"),
                        pocket_id=row["pocket_id"],
                    )
                    for row in portals
                ],
            )
            await self._advance()
        async with bank.pool.acquire() as conn, conn.transaction():
            await conn.execute(AS_OWNER)
            await conn.execute(_MODELS, company, pocket_of(COMPANY), timeout=None)
            await conn.execute(_PAST, first, began, rows, _APART, len(portals), timeout=None)
            await conn.execute(_TRANSACTIONS, company, timeout=None)
            await conn.execute(_ENTRIES, company, timeout=None)
            await conn.execute(_TRADES, company, timeout=None)
            await conn.execute(_SNAPSHOTS, company, timeout=None)
        await vacuum_and_checkpoint(bank.pool)
        member = await self._join()
        key = (company, pocket_of(COMPANY))
        return CompanyPast(
            **_row(await bank.pool.fetchrow(_COUNTS, *key)),
            newest_trade=await bank.pool.fetchval(_NEWEST_TRADE, *key),
            first_day=str(et_date(began - (rows - 1) * _APART) + timedelta(days=1)),
            last_page=await self._last_page(),
            member=member,
        )

    async def _advance(self) -> Any:
        day = self._bank.calendars.next_settlement_day(et_date(await self._bank.now()))
        at = et_instant(day, _AFTER_OPENING)
        await ClockStepper(self._bank).set_to(at)
        return at

    async def _last_page(self) -> str:
        """Return the cursor of the last rows of the list of all transactions."""
        row = await self._bank.pool.fetchrow(_LAST_PAGE, customer_of(COMPANY), 20)
        filters = {**msgspec.to_builtins(TransactionQuery()), "descending": True, "order": ("entry_no", "posting_no")}
        scope = f"transactions:customer:{customer_of(COMPANY)}"
        return self._bank.pager.seal(scope, filters, "next", place=(*_row(row).values(), 0))

    async def _join(self) -> UUID:
        bank, company, now, member_id = self._bank, customer_of(COMPANY), wall_now(), UUID(int=0)
        for nth in range(MEMBERS):
            user_id = await members.create_user(
                bank.pool, bank.vault, email=f"member{nth}@example.com", first_name="Ann", last_name="Bench", now=now
            )
            member_id = await members.add_member(bank.pool, company, user_id, role="ADMIN", now=now)
            self._users.append(user_id)
        new = NewClient(name="Bench", scopes=_SCOPES, grant_types=(CLIENT_CREDENTIALS,), customer_id=company)
        async with bank.pool.acquire() as conn:
            self._client = (await clients.register_client(conn, new, now=now)).client_id
        return member_id

    async def _sessions(self) -> CompanySessions:
        """Sign every member in anew, their requests not counted yet: the limits stay, and are not reached."""
        bank, now = self._bank, wall_now()
        await bank.pool.execute("DELETE FROM rate_limit_window")
        cookies, tokens = [], []
        for user_id in self._users:
            cookies.append(
                await sessions.open_session(
                    bank.pool,
                    user_id,
                    auth_methods=("pwd", "otp"),
                    complete=True,
                    client_info=ClientInfo(address="127.0.0.1", device="Bench"),
                    now=now,
                )
            )
            tokens.append(
                await access_tokens.issue_access(
                    bank.pool,
                    client_id=self._client,
                    customer_id=customer_of(COMPANY),
                    user_id=user_id,
                    scopes=_SCOPES,
                    now=now,
                )
            )
        settings = bank.settings
        return CompanySessions(
            Sessions(_host(settings.auth_origin), [f"Cookie: __Host-session={each}" for each in cookies]),
            Sessions(_host(settings.customer_origin), [f"Authorization: Bearer {each}" for each in tokens]),
        )


def _row(found: Any) -> dict[str, Any]:
    return dict(found)


def _host(origin: str) -> str:
    return origin.removeprefix("https://")


async def open_empty_company(location: Location) -> CompanyWorkload:
    """Found the bank of an empty database."""
    return CompanyWorkload(await create_bank(location, batch_limit=_BATCH))


async def open_company(location: Location) -> CompanyWorkload:
    """Open the bank whose Pockets are open."""
    return CompanyWorkload(await open_bank(location, batch_limit=_BATCH))


def fill(location: Location, pockets: int, rows: int, *, stack: ExitStack) -> tuple[Worker, CompanyPast]:
    """Make the company; return the process that lets its members in, and what is there."""
    opener = Worker(open_empty_company, location=location)
    try:
        opener.prepare(("open", pockets))
    finally:
        opener.close()
    workload = Worker(open_company, location=location)
    stack.callback(workload.close)
    past: CompanyPast = workload.prepare(("live", rows))
    return workload, past

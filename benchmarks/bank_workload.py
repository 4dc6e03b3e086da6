"""A bank in a separate process: its customers, its partner, its clock. Benchmarks add what they time."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from random import Random
from typing import Any
from uuid import UUID

import asyncpg

from benchmarks import dataset
from benchmarks.dataset import PARTNER, Location, OpenBank, customer_of, pocket_of, submit_commands
from benchmarks.load_generator import Credentials
from benchmarks.worker_processes import Worker
from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.accounts.customers.commands import EnrolCustomer
from billfold.identity.partners import credentials
from billfold.ledger.bank import Bank
from billfold.ledger.types import DERIVED_BALANCES
from billfold.platform.clock import wall_now
from billfold.platform.crypto import new_token
from billfold.platform.ids import command_id, derive
from billfold.verify.runner import verify_bank

SLUG = "bench"
LIMIT_PER_MINUTE = 1_000_000
"""The limiter is on the path of every request; only its limit is raised."""

_CALLER = "bench"
# Every account that keeps a balance against the fold of its legs and of what they reserve, and every bank account at
# zero. Transfers between customers neither create nor lose anything.
_BALANCES = """
WITH side AS (
  SELECT customer_id, debit AS account_no, CASE phase WHEN 0 THEN amount ELSE 0 END AS debits, 0::bigint AS credits,
         CASE phase WHEN 0 THEN 0 WHEN 1 THEN amount ELSE -amount END AS reserved FROM posting
   UNION ALL
  SELECT customer_id, credit, 0, amount, 0 FROM posting WHERE phase = 0
), folded AS (
  SELECT customer_id, account_no, sum(debits) AS debits, sum(credits) AS credits, sum(reserved) AS reserved
    FROM side GROUP BY customer_id, account_no
)
SELECT count(*) FILTER (WHERE a.kind IS NULL OR CASE
         WHEN a.kind = 'bank' THEN f.debits <> f.credits
         WHEN a.kind = ANY($1) THEN false
         ELSE (a.debits, a.credits, a.reserved)
              IS DISTINCT FROM (coalesce(f.debits, 0), coalesce(f.credits, 0), coalesce(f.reserved, 0)) END) AS wrong,
       coalesce(sum(f.credits - f.debits) FILTER (WHERE a.kind = 'on_us'), 0)::bigint AS made
  FROM account a FULL JOIN folded f USING (customer_id, account_no)
"""


class BankWorkload:
    """One engine. Methods that a benchmark times are those of its own subclass."""

    def __init__(self, opened: OpenBank) -> None:
        self._opened = opened
        self._bank = opened.bank
        self._portals: dict[int, UUID] = {}

    async def create(self, customers: int, cents: int = dataset.DEPOSIT_CENTS) -> None:
        """Enrol so many customers with a pocket each, and fund them unless `cents` is 0."""
        self._portals = await dataset.create_customers(self._bank, range(customers))
        if cents:
            deposits = [dataset.deposit(nth, portal, cents, "first") for nth, portal in self._portals.items()]
            await submit_commands(self._bank, deposits)
        await dataset.vacuum_and_checkpoint(self._bank.pool)

    async def counterparties(self) -> list[tuple[int, UUID]]:
        """Give every customer another as payee; return payers with the counterparty each may pay."""
        people = list(self._portals)
        Random(4).shuffle(people)
        circle = list(zip(people, [*people[1:], people[0]], strict=True))
        counterparties = await add_counterparties(self._bank, circle)
        await dataset.vacuum_and_checkpoint(self._bank.pool)
        return [(payer, known) for (payer, _), known in zip(circle, counterparties, strict=True)]

    async def partner(self) -> Credentials:
        """Make the partner of every customer; return how it calls."""
        return await create_partner(self._bank)

    async def morning(self) -> None:
        """Walk the clock to the next business day."""
        await dataset.advance_to_next_morning(self._bank)

    async def fetch(self, query: str, *arguments: Any) -> Any:
        """Return one value of the database, such as a count of rows."""
        return await self._bank.pool.fetchval(query, *arguments)

    async def close(self) -> None:
        """Stop the engine."""
        await self._opened.close()

    def _forget_books(self) -> None:
        """Have every book read from the database next time."""
        self._bank.engine.books.clear()
        gc.collect()


async def open_workload(
    location: Location, kind: type[BankWorkload], settings: dict[str, Any], *, first: bool
) -> BankWorkload:
    """Open a workload on a bank; the `first` founds that."""
    return kind(await (dataset.create_bank if first else dataset.open_bank)(location, **settings))


def bank_process(location: Location, kind: type[BankWorkload], *, first: bool, **settings: Any) -> Worker:
    """Return a workload in a separate process, under settings of a default installation but for some."""
    return Worker(open_workload, location=location, kind=kind, settings=settings, first=first)


async def create_partner(bank: Bank) -> Credentials:
    """Make the partner whose customers everybody is, and return what it calls with."""
    own = derive(bank.seed, command_id(_CALLER, "partner"), 1)
    enrol = EnrolCustomer(
        caller=_CALLER,
        key=command_id("enrol", "partner"),
        customers=(own,),
        partner_id=PARTNER,
        role="partner",
        type="BUSINESS",
        name="Bench",
        profile=None,
    )
    await submit_commands(bank, [enrol])
    now = wall_now()
    async with bank.pool.acquire() as conn:
        partner = await credentials.create_partner(
            conn,
            bank.vault,
            slug=SLUG,
            name="Bench",
            own_customer_id=own,
            rate_per_minute=LIMIT_PER_MINUTE,
            money_per_minute=LIMIT_PER_MINUTE,
            now=now,
            partner_id=PARTNER,
        )
        password, _ = new_token()  # nobody logs in with it
        user = await credentials.create_partner_user(conn, PARTNER, username=SLUG, password=password, now=now)
        bearer, _ = await credentials.issue_token(conn, partner_id=PARTNER, user_id=user, now=now)
    return Credentials(f"{SLUG}.localhost", bearer, partner.shared_secret)


async def add_counterparties(bank: Bank, pairs: Sequence[tuple[int, int]]) -> list[UUID]:
    """Give each payer his payee as a counterparty; return the counterparties in order."""
    rows = await bank.pool.fetch("SELECT pocket_id, network_address FROM portal")
    addresses = {row["pocket_id"]: row["network_address"] for row in rows}
    commands = [
        AddCounterparty(
            caller=_CALLER,
            key=command_id("introduce", f"{payer}:{payee}"),
            customers=(customer_of(payer),),
            counterparty_name={"type": "business", "business_name": f"Customer {payee}"},
            display_name=None,
            type="on_us",
            details={"account_number": addresses[pocket_of(payee)]},
            holder=f"Customer {payee}",
            target_customer_id=customer_of(payee),
            target_pocket_id=pocket_of(payee),
            is_screened=True,
        )
        for payer, payee in pairs
    ]
    return [UUID(str(outcome["counterparty_id"])) for outcome in await submit_commands(bank, commands)]


def check_sums(location: Location) -> None:
    """Fold the whole log against the balances. Raises AssertionError when a cent is missing."""

    async def check() -> None:
        conn = await asyncpg.connect(location.dsn)
        try:
            wrong, made = await conn.fetchrow(_BALANCES, [*DERIVED_BALANCES]) or (None, None)
        finally:
            await conn.close()
        assert wrong == 0, "balances are not the fold of the log"
        assert made == 0, "money or bills were made or lost"

    asyncio.run(check())


def verify_ledger(location: Location) -> int:
    """Verify the ledger as `billfold verify` does; return how many rows it has.

    Raises AssertionError with the first bad row.
    """

    async def verify() -> int:
        conn = await asyncpg.connect(location.dsn)
        try:
            report = await verify_bank(conn)
        finally:
            await conn.close()
        assert report.first is None, str(report.first)
        return sum(report.checked.values())

    return asyncio.run(verify())

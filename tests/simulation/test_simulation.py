"""A seeded history of a bank: thousands of steps in memory, the first 1,500 through Postgres as well."""

import gc
import os
from contextlib import suppress
from datetime import UTC, datetime

import asyncpg
import msgspec
import pytest
from tests.simulation.invariants import (
    check_bank,
    check_book,
    check_cards,
    check_chains,
    check_earnings,
    check_nothing_for_free,
    dealer_position,
    picture,
)
from tests.simulation.life import Life, WalkTo
from tests.simulation.memory_bank import MemoryBank
from tests.simulation.on_chains import PATH
from tests.support.statements import assert_chained, periods_between
from tests.support.whole_bank import SEED, close_bank, engine_beside, open_bank

from billfold.accounts.customers.commands import EnrolCustomer
from billfold.bills.rules.market import Market
from billfold.bills.types import BillSettlement
from billfold.ledger.book.postings import (
    EventEntry,
    JournalEntry,
    PocketSnapshot,
    Posting,
    TradeEntry,
    TransactionEntry,
)
from billfold.ledger.context import BankPolicy
from billfold.ledger.types import DERIVED_BALANCES
from billfold.payments.ach.commands import OriginateAch, ReceiveAch, ReceiveAchReturn, ReturnAchEntry
from billfold.payments.clearing.rules import RailSettlement
from billfold.payments.crypto.deposits.rules import CryptoDepositRow, DepositStatus
from billfold.payments.crypto.withdrawals.rules import WithdrawalRow, WithdrawalStatus
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_date
from billfold.platform.errors import BillfoldError
from billfold.platform.settings.settings import Settings
from billfold.reports.entries.types import AccountType
from billfold.sandbox.chain.faucet import DEPOSIT_XPUB
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.sandbox.simulated_providers import SimulatedScreening
from billfold.verify.runner import verify_bank

SIMULATION_SEED = int(os.environ.get("BILLFOLD_SIMULATION_SEED", "20250602"))
STEPS = int(os.environ.get("BILLFOLD_SIMULATION_STEPS", "7500"))
THROUGH_POSTGRES = 1_500
LOOK_EVERY = 2_500
UNDO_EVERY = 3
START = datetime(2025, 6, 2, 13, tzinfo=UTC)
CHAINS_SAY = (
    """INSERT INTO chain_transfer SELECT chain, tx_hash, log_index, block_number, block_hash, token, sender, recipient,
         units, CASE status WHEN 'REORGED' THEN 'REORGED' ELSE 'FINAL' END, created_at FROM crypto_deposit""",
    "INSERT INTO crypto_wallet (chain, address, first_nonce, next_nonce) VALUES ('ETHEREUM', '0x', 0, 1000)",
    """INSERT INTO crypto_transaction (customer_id, withdrawal_id, chain, state, wallet, nonce, token, gas_limit,
         reason, transaction_hash, block_number, block_hash, reserved_at, updated_at)
       SELECT customer_id, withdrawal_id, chain,
         CASE status WHEN 'COMPLETED' THEN 'CONFIRMED' WHEN 'REJECTED' THEN 'REVERTED' ELSE 'SUBMITTED' END, '0x',
         row_number() OVER (ORDER BY withdrawal_id), '0x', 1, reason, transaction_hash, 1, '0x', created_at, created_at
       FROM crypto_withdrawal WHERE status <> 'PENDING'""",
    """INSERT INTO crypto_signature (customer_id, withdrawal_id, attempt, intent, transaction_hash, max_fee,
         priority_fee, raw, signed_at)
       SELECT customer_id, withdrawal_id, 1, 'PAY', coalesce(transaction_hash, withdrawal_id::text), 1, 0, '',
         reserved_at FROM crypto_transaction""",
)
"""What watcher and sender would have stored: no chain is there, and verification compares with it."""
TERMS = BankPolicy(
    aum_fee_bps=Settings().aum_fee_bps,
    routing_number=Settings().bank_routing_number,
    ach_credit_hold_days=2,
    screening=SimulatedScreening(),
)


@pytest.fixture
def life():
    """A new life; a failing test prints its seed."""
    print(f"BILLFOLD_SIMULATION_SEED={SIMULATION_SEED}")
    calendars = Calendars()
    bank = MemoryBank(Market.packaged(calendars), calendars, TERMS, seed=SEED, now=START)
    begun = Life(bank, SIMULATION_SEED)
    bank.submit(begun.found())
    # A million rows that all stay: looking through them again and again frees nothing.
    gc.disable()
    yield begun
    gc.enable()


def check_invariants(bank):
    """Check every invariant over every book."""
    for book in bank.books.values():
        check_book(book)
        for pocket in book.pockets.values():
            check_earnings(pocket, bank.market, bank.now)
    check_bank(bank)
    check_cards(bank)
    check_chains(bank)


def step_checked(life):
    """Execute a step. While the clock stands still the dealer position falls only by sales that settle tomorrow."""
    bank, step = life.bank, life.draw()
    before, trades = dealer_position(bank), len(bank.tables[TradeEntry])
    is_new = not isinstance(step, WalkTo) and (step.customers[0], step.command_id) not in bank.commands
    if is_new and life.count % UNDO_EVERY == 0 and not isinstance(step, EnrolCustomer):
        check_undo(bank, step)
    life.live(step)
    if not isinstance(step, WalkTo | OriginateAch | ReceiveAch | ReceiveAchReturn | ReturnAchEntry):
        check_nothing_for_free(bank, before, len(bank.tables[TradeEntry]) - trades)


def check_undo(bank, command):
    """Plan a command and roll it back: nothing is left of it."""
    own = {customer: bank.books[customer] for customer in command.customers}
    ctx = bank._moment()
    for book in own.values():
        book.referenced = bank.seen.of(book.customer_id) if command.references else {}
        book.savepoint()
    before = [picture(book) for book in own.values()]
    ctx.serve(command.command_id)
    with suppress(BillfoldError):
        command.decide(own, ctx)
    for book in own.values():
        book.undo()
    assert [picture(book) for book in own.values()] == before, command


def test_invariants_hold_over_thousands_of_random_steps(life):
    for count in range(STEPS):
        step_checked(life)
        if count % LOOK_EVERY == 0:
            check_invariants(life.bank)
    check_invariants(life.bank)
    # It was a life with everything in it.
    assert {"Shortfall carried", "Shortfall repaid", "Correction", "Adjustment"} <= {
        row.title for row in life.bank.tables[TransactionEntry]
    }
    assert {"replayed", "idempotency-key-reused", "COMPLETED", "REJECTED", "PENDING"} <= set(life.outcomes)
    rows = [row for book in life.bank.books.values() for row in life.bank.seen.of(book.customer_id).values()]
    assert {row.status for row in rows if isinstance(row, CryptoDepositRow)} == set(DepositStatus)
    assert {row.status for row in rows if isinstance(row, WithdrawalRow)} == set(WithdrawalStatus)
    assert {row.kind for row in life.bank.tables[JournalEntry]} == {
        "adjustment",
        "clearing",
        "custody",
        "deposit",
        "ach",
        "card",
        "fee",
        "invest",
        "maturity",
        "on_us",
        "payment",
        "return",
        "settlement",
        "suspense",
    }
    kinds = {row.activity for row in life.bank.tables[TradeEntry]}
    assert kinds == {"BUY", "SELL", "MATURITY", "SAME_ENTITY_SECURITY_TRANSFER", "EXTERNAL_SECURITY_TRANSFER"}


async def test_postgres_and_the_memory_bank_agree_to_the_last_hash_over_the_same_steps(life, bank_dsn):
    life.files = False
    lived = [life.step() for _ in range(THROUGH_POSTGRES)]
    bank = await open_bank(bank_dsn)
    bank.engine.terms = TERMS
    await bank.pool.execute("INSERT INTO wallet_xpub (xpub, derivation_path) VALUES ($1, $2)", DEPOSIT_XPUB, PATH)
    bank.job_runners = {}  # who would answer from outside speaks in this life
    # Two engines on one database, each with books that the other has made stale.
    other = engine_beside(bank, lanes=1)
    await other.start()
    engines = [bank.engine, other]
    for number, (step, answer) in enumerate(lived):
        bank.engine = engines[number % 2]
        if isinstance(step, WalkTo):
            await ClockStepper(bank).set_to(step.to)
        else:
            assert await outcome_of(bank.engine, step) == seen_by_caller(answer), (number, step)
    bank.engine = engines[0]
    for statement in CHAINS_SAY:
        await bank.pool.execute(statement)
    async with bank.pool.acquire() as conn:
        await must_be_the_same(conn, life.bank)
        report = await verify_bank(conn, market=bank.market)
    assert report.is_clean, report.findings
    await statements_must_balance(bank)
    await other.stop()
    await close_bank(bank)


async def statements_must_balance(bank):
    """Check the accounts of every Pocket over all days, and each day of one Pocket."""
    last = et_date(await bank.now())
    keys = await bank.pool.fetch("SELECT customer_id, pocket_id FROM pocket ORDER BY inflow DESC")
    for nth, key in enumerate(keys):
        for account in AccountType:
            days = 1 if nth == 0 else (last - et_date(START)).days + 1
            await assert_chained(bank, key, account, periods_between(et_date(START), last, days=days))


async def outcome_of(engine, command):
    try:
        return seen_by_caller(await engine.submit(command))
    except BillfoldError as refused:
        return seen_by_caller(refused)


def seen_by_caller(answer):
    """The answer as a caller sees it."""
    if isinstance(answer, BillfoldError):
        return answer.code, answer.detail
    return answer.outcome, answer.replayed


async def must_be_the_same(conn: asyncpg.Connection, bank):
    """Heads, chain, balances, and every row of the log."""
    heads = await conn.fetch(
        "SELECT customer_id, version, entry_no, event_no, account_no, booked_at, business_date,"
        " due_at, chain FROM ledger_head"
    )
    assert {row["customer_id"]: tuple(row)[1:] for row in heads} == {
        customer_id: (
            book.version,
            book.entry_no,
            book.event_no,
            book.account_no,
            book.booked_at,
            book.business_date,
            book.due_at,
            book.chain,
        )
        for customer_id, book in bank.books.items()
    }
    accounts = await conn.fetch("SELECT customer_id, account_no, debits, credits, reserved FROM account")
    assert {tuple(row) for row in accounts} == {
        (*key, *((0, 0) if balance.kind in DERIVED_BALANCES else (balance.debits, balance.credits)), balance.reserved)
        for key, balance in bank.balances.items()
    }
    links = await conn.fetch("SELECT * FROM chain_entry")
    assert {tuple(row) for row in links} == set(bank.links.values())
    for kind, order in (
        (TransactionEntry, (0, 2, 3)),
        (TradeEntry, (0, 2, 3)),
        (Posting, (0, 1, 2)),
        (EventEntry, (0, 1)),
        (JournalEntry, (0, 1)),
        (PocketSnapshot, (0, 1, 2)),
        (BillSettlement, (0, 1, 2, 3, 4)),
        (RailSettlement, (0, 1)),
    ):
        # The database adds a column or two of its own.
        columns = ", ".join(kind.__struct_fields__)
        rows = [tuple(row) for row in await conn.fetch(f"SELECT {columns} FROM {kind.table}")]
        made = [msgspec.structs.astuple(row) for row in bank.tables[kind]]
        assert sorted(rows, key=sort_key(order)) == sorted(made, key=sort_key(order)), kind


def sort_key(order):
    return lambda row: tuple(row[index] for index in order)

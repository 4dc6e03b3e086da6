"""Initializes a bank in a database once, and opens it in every process."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import TYPE_CHECKING

import asyncpg

import billfold
from billfold.accounts.counterparties import store as counterparty_store
from billfold.accounts.counterparties.store import notify_changes
from billfold.accounts.customers import store as customer_store
from billfold.accounts.holds import store as hold_store
from billfold.accounts.notes import store as note_store
from billfold.accounts.portals.store import load_portals
from billfold.accounts.transactions.store import find_bank_bookings
from billfold.audit.record import record_commands
from billfold.bills.rules.market import Market
from billfold.bills.store import load_market
from billfold.cli.context import CliError
from billfold.data_keys.keys import DataKeys, bank_key
from billfold.data_keys.kms import MasterKeys
from billfold.data_keys.store import list_one_of_each
from billfold.documents import store as document_store
from billfold.events import sequencer
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Reference
from billfold.ledger.context import BankPolicy, NoScreening, Screening
from billfold.ledger.engine.engine import Engine
from billfold.ledger.engine.pending_command import BatchRecorder, IdentifierLoader, ReferenceReaders
from billfold.migrations import runner
from billfold.onboarding.agreements.store import run_agreements_refresher
from billfold.payments.ach import store as ach_store
from billfold.payments.cards import store as card_store
from billfold.payments.cards.authorizations import store as authorization_store
from billfold.payments.cards.authorizations.disputes import store as dispute_store
from billfold.payments.cards.processor import CardProcessor
from billfold.payments.crypto.deposits import store as deposit_store
from billfold.payments.crypto.withdrawals.signing import Signer
from billfold.payments.crypto.withdrawals.store import load_open_withdrawals
from billfold.payments.crypto.withdrawals.store import load_references as load_withdrawals
from billfold.payments.custody import worker
from billfold.payments.on_us.reversals import store as reversal_store
from billfold.payments.on_us.store import load_pending
from billfold.payments.suspense import store as suspense_store
from billfold.payments.wires.store import load_open_wires
from billfold.payments.wires.store import load_references as look_up_wires
from billfold.platform.calendars import WireHours
from billfold.platform.clock import wall_now
from billfold.platform.crypto import KEY_BYTES, Vault
from billfold.platform.database.connection import Connection, Pool, connect, find_owner
from billfold.platform.database.paging import Pager
from billfold.platform.database.pool import APP_ROLE, create_pool
from billfold.platform.database.replica import Replica, open_replica
from billfold.platform.errors import InvariantError
from billfold.platform.settings.kinds import NO_ADAPTER
from billfold.platform.settings.settings import Settings
from billfold.reconciliation import store as reconciliation_store
from billfold.screening import hits
from billfold.trading import store as trading_store
from billfold.trading.settlement import store as settlement_store
from billfold.treasury.market_log import run_market_refresher
from billfold.treasury.rules.catch_up import catch_up
from billfold.wiring import initialize, providers
from billfold.wiring.scheduled_jobs import job_runners

_APART = ("billfold.sandbox", "billfold.wiring")


@cache
def load_rules() -> None:
    """Import every module named `rules`, or in a folder `rules`, so that the engine can decide every command."""
    for each in walk_packages(billfold.__path__, "billfold."):
        if not each.name.startswith(_APART) and "rules" in each.name.split("."):
            import_module(each.name)


def reference_readers() -> ReferenceReaders:
    """Return the reader of each kind of reference."""
    return {
        Reference.ACH_ENTRY: ach_store.load_references,
        Reference.CARD: card_store.load_references,
        Reference.CARD_AUTHORIZATION: authorization_store.load_references,
        Reference.CARD_DAY: authorization_store.load_days,
        Reference.CARD_DISPUTE: dispute_store.load_references,
        Reference.COUNTERPARTY: counterparty_store.find_payees,
        Reference.CUSTOMER_PROFILE: customer_store.find_profiles,
        Reference.CRYPTO_WITHDRAWAL: load_withdrawals,
        Reference.CRYPTO_DEPOSIT: deposit_store.load_references,
        Reference.DEALER_ORDER: trading_store.load_orders,
        Reference.DOCUMENT: document_store.find_referenced,
        Reference.EXECUTION: trading_store.load_executions,
        Reference.HOLD: hold_store.load_references,
        Reference.NOTE: note_store.load_references,
        Reference.ON_US_TRANSFER: reversal_store.load_references,
        Reference.OPEN_ACH_ENTRIES: ach_store.load_open_entries,
        Reference.OPEN_DISPUTES: dispute_store.load_open,
        Reference.OPEN_WIRES: load_open_wires,
        Reference.OPEN_WITHDRAWALS: load_open_withdrawals,
        Reference.RECONCILED_DAY: reconciliation_store.load_days,
        Reference.RECONCILIATION_BREAK: reconciliation_store.load_breaks,
        Reference.SANCTIONS_HIT: hits.find_standing_of_customers,
        Reference.SECURITY_TRANSFER: worker.load_references,
        Reference.SETTLEMENT_DIFFERENCE: settlement_store.load_differences,
        Reference.SETTLEMENT_INSTRUCTION: settlement_store.load_instructions,
        Reference.SUSPENSE_ITEM: suspense_store.load_references,
        Reference.TRADING_DESK: trading_store.load_desks,
        Reference.TRANSACTION: find_bank_bookings,
        Reference.WIRE: look_up_wires,
    }


def identifier_loaders() -> Sequence[IdentifierLoader]:
    """Return the loader of portals, counterparties and pending transfers."""
    return load_portals, counterparty_store.load_payees, load_pending


def batch_recorders(vault: Vault) -> Sequence[BatchRecorder]:
    """Return the recorders of audit entries and of notifications."""
    return partial(record_commands, vault=vault), partial(notify_changes, vault=vault)


if TYPE_CHECKING:
    from billfold.sandbox.simulated_providers import Simulation

POOL_MAX = 12
SEED_BYTES = 32
MIN_BATCH_FOR_EXTRA_LANE = 30
"""Batches of this size cost hardly more per command than batches of hundreds."""
_KEY_FILE = "encryption.key"
_MIGRATE = "Run `billfold migrate up`."
_MEMBER = f"Log in as a member of {APP_ROLE}: docs/operate/install.md."
_DIRECT = "Give its address to BILLFOLD_DATABASE_POOLER_URL, and PostgreSQL's own to BILLFOLD_DATABASE_URL."
_LOST_KEY = "Restore it from the backup, set BILLFOLD_ENCRYPTION_KEY, or start over with `billfold sandbox --fresh`."


@asynccontextmanager
async def open_bank(
    settings: Settings, dsn: str, *, pool_max: int = POOL_MAX, by_pooler: bool = False
) -> AsyncIterator[Bank]:
    """Open the bank in a database, or behind a transaction pooler; its engine runs until the context ends.

    Raises CliError if there is no bank, or if its schema belongs to another release.
    """
    async with providers.bank_lease_of(settings), await _pool(dsn, pool_max, by_pooler=by_pooler) as pool:
        settings = providers.current_settings_of(settings)
        async with pool.acquire() as conn:
            seed, vault, master = await _check_and_read_keys(conn, settings)
            market = await _market(conn, settings)
        simulation = providers.simulation_of(settings, seed)
        engine = engine_of(pool, market, seed, settings=settings, vault=vault, screening=_screening(simulation))
        bank = Bank(
            pool=pool,
            engine=engine,
            market=market,
            terms=engine.terms,
            seed=seed,
            settings=settings,
            pager=Pager(hashlib.blake2b(seed, person=b"billfold.pager").digest()),
            vault=vault,
            job_runners=job_runners(simulation),
            ports=providers.ports_of(settings, pool, DataKeys(master), simulation),
        )
        await engine.start()
        try:
            async with _kept_fresh(bank), _replica(settings, pool, pool_max) as bank.replica:
                yield bank
        finally:
            await bank.close()
            for outside in (bank.ports.get(CardProcessor), bank.ports.get(Signer)):
                if outside is not None:
                    await outside.close()
            await engine.stop()


@asynccontextmanager
async def _kept_fresh(bank: Bank) -> AsyncIterator[None]:
    """Load market data and agreements that other processes write, until the context ends."""
    async with run_market_refresher(bank.pool, bank.market), run_agreements_refresher(bank.pool, bank.terms.agreements):
        yield


async def _check_and_read_keys(conn: Connection, settings: Settings) -> tuple[bytes, Vault, MasterKeys]:
    """Compare the settings with the bank; return its seed and its keys. Raises CliError."""
    identity, vault = await check_bank(conn, settings)
    master = await check_master_keys(conn, settings, vault)
    await initialize.reseal_key_check(conn, identity, vault)
    await sequencer.repair_positions(conn)
    return identity.seed, vault, master


def _screening(simulation: Simulation | None) -> Screening:
    return simulation.screening if simulation else NoScreening()


def engine_of(
    pool: Pool, market: Market, seed: bytes, *, settings: Settings, vault: Vault, screening: Screening
) -> Engine:
    """Return the bank's single writer, configured by the settings."""
    load_rules()
    return Engine(
        pool,
        market=market,
        terms=policy_of(settings, screening),
        seed=seed,
        references=reference_readers(),
        identifiers=identifier_loaders(),
        catch_up=catch_up,
        recorders=batch_recorders(vault),
        test_clock=not settings.is_production,
        lanes=settings.engine_concurrency,
        min_batch=extra_lane_threshold(settings),
        batch_limit=settings.batch_limit,
    )


async def initialize_database(settings: Settings, dsn: str, *, new_domain: bool = False) -> None:
    """Create the bank in a migrated database; existing data stays. May be repeated."""
    conn = await connect(dsn)
    try:
        identity = await initialize.find_bank_identity(conn)
        seed = settings.seed or (identity.seed if identity else secrets.token_bytes(SEED_BYTES))
        vault = vault_of(settings, may_make=identity is None)
        await initialize.initialize_bank(conn, settings, seed=seed, vault=vault, wall=wall_now(), new_domain=new_domain)
    finally:
        await conn.close()
    async with open_bank(settings, dsn, pool_max=4) as bank:
        await initialize.create_bank_customer(bank)
        await bank_key(bank)  # now, since a read on a replica could not create it


def extra_lane_threshold(settings: Settings) -> int:
    """Return how many commands must wait before a process opens a second lane.

    Lanes of one process overlap its planning with the database's writing. If several processes
    answer, they overlap with each other, and another lane would only make every batch smaller.
    """
    return 1 if settings.workers == 1 else MIN_BATCH_FOR_EXTRA_LANE


async def _pool(dsn: str, most: int, *, by_pooler: bool = False) -> Pool:
    """Return connections in the application's role. Raises CliError if there is no such role.

    A transaction pooler keeps no role: the login user there must be a member of it and nothing else.
    """
    try:
        pool = await create_pool(dsn, min_size=1, max_size=most, role=APP_ROLE, by_pooler=by_pooler)
    except asyncpg.InvalidParameterValueError as error:
        raise CliError(f"The database has no role {APP_ROLE}.", _MIGRATE) from error
    except asyncpg.ProtocolViolationError as error:
        raise CliError(f"That address is a transaction pooler: {error}.", _DIRECT) from error
    if by_pooler:
        async with pool.acquire() as conn:
            owner = await find_owner(conn, "ledger_head")
        if owner is not None:
            await pool.close()
            raise CliError(f"{owner}, as whom BILLFOLD_DATABASE_POOLER_URL logs in, owns the tables.", _MEMBER)
    return pool


@asynccontextmanager
async def _replica(settings: Settings, primary: Pool, most: int) -> AsyncIterator[Replica | None]:
    """Return the reader of replicas, or None if there are none."""
    if settings.database_replica_url is None:
        yield None
        return
    async with open_replica(primary, settings.database_replica_url, most=most, role=APP_ROLE) as replica:
        yield replica


async def _market(conn: Connection, settings: Settings) -> Market:
    async with conn.transaction(isolation="repeatable_read", readonly=True):
        return await load_market(
            conn, age_max_days=settings.traded_rates_max_age_days, quotes_age_max=settings.quotes_age_max
        )


async def check_start(settings: Settings, dsn: str) -> None:
    """Check that a process can open the bank with these settings. Raises CliError."""
    async with await _pool(dsn, 1) as pool, pool.acquire() as conn:
        _, vault = await check_bank(conn, settings)
        await check_master_keys(conn, settings, vault)
    providers.check_adapters(settings)
    await providers.check_file_store(settings)


async def check_bank(conn: Connection, settings: Settings) -> tuple[initialize.BankIdentity, Vault]:
    """Return the bank and its vault; write nothing. Raises CliError if none can be opened with these settings."""
    try:
        pending = await runner.pending(conn)
    except asyncpg.InsufficientPrivilegeError:  # a shape older than the role
        pending = [APP_ROLE]
    if pending:
        raise CliError("The database does not match this release.", _MIGRATE)
    identity = await initialize.find_bank_identity(conn)
    if identity is None:
        raise CliError("There is no bank in the database yet.", _MIGRATE)
    vault = vault_of(settings)
    initialize.check_identity(identity, settings, vault)
    return identity, vault


async def check_master_keys(conn: Connection, settings: Settings, vault: Vault) -> MasterKeys:
    """Return the master keys after one data key of each has been unwrapped. Raises CliError, Unavailable."""
    master = providers.master_keys_of(settings, vault)
    for subject_id, stored in await list_one_of_each(conn):
        try:
            await master.unwrap(subject_id, stored)
        except InvariantError as error:
            raise initialize.BankConfigMismatch(
                f"The data keys under master key {stored.master_key} do not unwrap: {error}",
                "Name it in BILLFOLD_MASTER_KEYS after the current one (an encryption key in"
                " BILLFOLD_RETIRED_ENCRYPTION_KEYS), or restore it.",
            ) from None
    return master


def policy_of(settings: Settings, screening: Screening) -> BankPolicy:
    """Return the settings that affect money."""
    return BankPolicy(
        aum_fee_bps=settings.aum_fee_bps,
        haircut_bps=settings.same_day_haircut_bps,
        stale_haircut_bps=settings.stale_haircut_bps,
        ach_credit_hold_days=settings.ach_credit_hold_days,
        screening=screening,
        routing_number=settings.bank_routing_number,
        ach_review_above_cents=settings.ach_review_above_cents,
        ach_cutoff=settings.ach_cutoff,
        wire_hours=WireHours(settings.wires_open, settings.wire_cutoff, settings.international_wire_cutoff),
        wire_fee_cents=settings.wire_fee_cents,
        usdc_minimum_cents=settings.usdc_minimum_cents,
        correspondent=settings.correspondent_routing_number,
        card_blocked_categories=frozenset(settings.card_blocked_categories),
        dispute_days=settings.dispute_days,
        dispute_credit_max_cents=settings.dispute_credit_max_cents,
        reversal_days=settings.reversal_days,
        reversal_request_days=settings.reversal_request_days,
        delivers_bills=settings.custodian != NO_ADAPTER,
        dealers=settings.dealers,
        desk_max_slippage_bps=settings.desk_max_slippage_bps,
        desk_quotes_wanted=settings.desk_quotes_wanted,
        desk_quote_seconds=settings.desk_quote_seconds,
    )


def vault_of(settings: Settings, *, may_make: bool = False) -> Vault:
    """Return the vault that seals and signs: with the key of the settings, or the one a sandbox keeps.

    `may_make`: a new bank creates its key. Raises CliError if an existing bank's key file is missing.
    """
    key = settings.encryption_key or _sandbox_key(settings.state_dir, may_make=may_make)
    return Vault(key, retired=settings.retired_encryption_keys)


def _sandbox_key(state_dir: Path, *, may_make: bool) -> bytes:
    """Return the key a sandbox keeps for itself, created with its bank."""
    path = state_dir / _KEY_FILE
    if may_make:
        state_dir.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            draft = path.with_name(f"{_KEY_FILE}.{os.getpid()}")
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as out:
                out.write(secrets.token_bytes(KEY_BYTES))
            try:
                os.link(draft, path)  # atomic, and never replacing an existing key
            finally:
                draft.unlink()
    try:
        key = path.read_bytes()
    except OSError as error:
        raise CliError(f"The bank's key {path} cannot be read: {error.strerror}.", _LOST_KEY) from None
    if len(key) != KEY_BYTES:
        raise CliError(f"{path} is not a key: it has {len(key)} bytes, not {KEY_BYTES}.", _LOST_KEY)
    return key

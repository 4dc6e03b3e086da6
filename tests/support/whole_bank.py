"""A whole bank on its own database, and the commands of its customers."""

import asyncio
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from tests.support.databases import as_application, fresh_database, make_template
from typing_extensions import override

from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.accounts.counterparties.types import format_name
from billfold.accounts.customers.commands import EnrolCustomer
from billfold.accounts.pockets.commands import OpenPocket
from billfold.bills.rules.market import Market
from billfold.bills.store import load_market
from billfold.data_keys.keys import DataKeys
from billfold.data_keys.kms import FileMasterKey
from billfold.ledger.bank import Bank
from billfold.ledger.context import BankPolicy
from billfold.ledger.engine.engine import Engine
from billfold.ledger.types import Agreements
from billfold.onboarding.agreements.store import load_terms
from billfold.payments.cards.processor import CardProcessor
from billfold.payments.crypto.withdrawals.signing import Signer
from billfold.payments.deposits.rules import ReceiveMoney
from billfold.payments.on_us.commands import TransferOnUs
from billfold.platform import ids
from billfold.platform.calendars import Calendars, WireHours
from billfold.platform.clock import wall_now
from billfold.platform.crypto import Vault
from billfold.platform.database.paging import Pager
from billfold.platform.database.pool import APP_ROLE, create_pool
from billfold.platform.ids import command_id, derive, new
from billfold.platform.settings.settings import Settings
from billfold.sandbox.simulated_providers import SimulatedScreening
from billfold.treasury.rules.catch_up import catch_up
from billfold.verify.runner import verify_bank
from billfold.wiring.initialize import create_bank_customer, find_bank_identity, initialize_bank
from billfold.wiring.open_bank import batch_recorders, identifier_loaders, load_rules, reference_readers
from billfold.wiring.providers import ports_of, simulation_of
from billfold.wiring.scheduled_jobs import job_runners

load_rules()  # also in processes that pytest does not start
PARTNER = UUID("8f3b6f60-0000-4000-8000-00000000aaaa")
BETA = {"type": "business", "business_name": "Beta LLC"}
ADDRESS = {"street_address": "1 Main St", "city": "Reno", "postal_code": "89501", "state": "NV", "country": "US"}
DETAILS: dict[str, dict[str, Any]] = {
    "wire": {"routing_number": "121182904", "identifier": "5647772655", "address": ADDRESS},
    "ach": {"routing_number": "021000021", "account_number": "5647772655", "account_type": "CHECKING"},
}
"""Accounts at other banks, by the type of their counterparty."""


class Place(NamedTuple):
    """A pocket: its customer, its id and the id of its first portal."""

    customer: UUID
    id: UUID
    portal: UUID


class Commands:
    """Every method returns what `submit` returns."""

    def submit(self, kind: Any, *customers: UUID, **fields: Any) -> Any:
        """Carry out a command of this kind; return its outcome, or what can be awaited for it."""
        raise NotImplementedError

    def enrol(self, customer, name="Somebody", *, partner_id=PARTNER, role="customer"):
        return self.submit(
            EnrolCustomer, customer, partner_id=partner_id, role=role, type="BUSINESS", name=name, profile=None
        )

    def open_pocket(self, customer, *, weeks=4, reinvest=4, name="A pocket", partner_id=PARTNER, **fields):
        return self.submit(
            OpenPocket,
            customer,
            partner_id=partner_id,
            name=name,
            deposit_weeks=weeks,
            reinvestment_weeks=reinvest,
            **fields,
        )

    def receive_money(self, place, cents, *, rail="WIRE", **fields):
        """Let money arrive at a portal."""
        return self.submit(
            ReceiveMoney,
            place.customer,
            rail=rail,
            portal_id=place.portal,
            pocket_id=place.id,
            amount=cents,
            description="a deposit",
            details={},
            **fields,
        )

    def transfer(self, origin, destination, cents, **fields):
        """Move money or bills between two places."""
        customers = tuple(dict.fromkeys((origin[0], destination[0])))
        return self.submit(
            TransferOnUs,
            *customers,
            **{"transfer_id": None, **fields},
            type="INTERNAL_REALLOCATION" if len(customers) == 1 else "PEER_TO_PEER",
            from_pocket_id=origin[1],
            to_pocket_id=destination[1],
            amount=cents,
            partner_id=PARTNER,
        )

    def add_counterparty(self, customer, kind, *, name=BETA, details=None, verification="pre_verified", **fields):
        """Link an account at another bank, or a Pocket of this one by its owner's name."""
        if kind == "on_us":
            fields.setdefault("holder", format_name(name))
        return self.submit(
            AddCounterparty,
            customer,
            type=kind,
            counterparty_name=name,
            details=details or DETAILS[kind],
            verification=verification,
            is_screened=True,
            **fields,
        )


def opened(customer, outcome):
    """Return the place that `open_pocket` led to."""
    return Place(customer, UUID(outcome["pocket_id"]), UUID(outcome["portal_id"]))


class EngineCommands(Commands):
    """Awaits the engine of a bank. A caller that is named has the same keys in every run."""

    def __init__(self, bank, caller=None):
        self.bank, self.count = bank, 0
        self.caller, self._names = (caller or "test"), (caller or str(new()))

    @override
    async def submit(self, kind, *customers, **fields):
        self.count += 1
        key = command_id(self._names, str(self.count))
        command = kind(caller=self.caller, key=key, customers=customers, request_hash=key.bytes, **fields)
        return (await self.bank.engine.submit(command)).outcome

    def id_of(self, name):
        return derive(self.bank.seed, command_id(self._names, name), 0)

    async def new_customer(self, name="Somebody", **fields):
        """Enrol a customer; return the id."""
        customer = self.id_of(name)
        await self.enrol(customer, name, **fields)
        return customer

    async def new_pocket(self, customer, **fields):
        """Open a pocket; return the place."""
        return opened(customer, await self.open_pocket(customer, **fields))


SEED = b"a seed for tests of the engine"
VAULT = Vault(bytes(range(32)))


_SAME_IN_POLICY = (
    *("wire_fee_cents", "usdc_minimum_cents", "ach_review_above_cents", "ach_cutoff"),
    *("dealers", "desk_max_slippage_bps", "desk_quotes_wanted", "desk_quote_seconds"),
)


async def open_bank(dsn, **changes):
    """Return a running bank on a migrated database, founded there if need be; close it with `close_bank`."""
    folder = Path(tempfile.gettempdir()) / f"billfold-{ids.new()}"
    own: dict[str, Any] = {"state_dir": folder, "rails_dir": folder / "rails", "files_dir": folder / "files"}
    settings = replace(Settings(), **own | changes)
    pooler = settings.database_pooler_url
    address = pooler or as_application(dsn)
    pool = await create_pool(address, min_size=2, max_size=8, role=APP_ROLE, by_pooler=pooler is not None)
    async with pool.acquire() as conn:
        is_founded = await find_bank_identity(conn) is not None
        if not is_founded:
            sandbox = replace(settings, environment="sandbox")
            await initialize_bank(conn, sandbox, seed=SEED, vault=VAULT, wall=wall_now())
        market = await _known_market(conn)
    terms = BankPolicy(
        aum_fee_bps=settings.aum_fee_bps,
        routing_number=settings.bank_routing_number,
        screening=SimulatedScreening(),
        **{name: getattr(settings, name) for name in _SAME_IN_POLICY},
        wire_hours=WireHours(settings.wires_open, settings.wire_cutoff, settings.international_wire_cutoff),
        correspondent=settings.correspondent_routing_number,
        card_blocked_categories=frozenset(settings.card_blocked_categories),
        agreements=Agreements(await load_terms(pool)),
    )
    engine = Engine(
        pool,
        market=market,
        terms=terms,
        seed=SEED,
        test_clock=True,
        references=reference_readers(),
        identifiers=identifier_loaders(),
        catch_up=catch_up,
        recorders=batch_recorders(VAULT),
    )
    await engine.start()
    simulation = simulation_of(settings, SEED)
    bank = Bank(
        pool=pool,
        engine=engine,
        market=market,
        terms=terms,
        seed=SEED,
        settings=settings,
        pager=Pager(SEED),
        vault=VAULT,
        job_runners=job_runners(simulation),
        ports=ports_of(settings, pool, DataKeys(FileMasterKey(VAULT)), simulation),
    )
    if not is_founded:
        await create_bank_customer(bank)
    return bank


def with_limits(bank, limits):
    """Let a running bank have other limits, by their names."""
    bank.settings = replace(bank.settings, usage_limits=tuple(limits.items()))


def engine_beside(bank, **changes):
    """Return another engine on a bank's database, as another process has it."""
    common = ("market", "terms", "seed", "references", "identifiers", "catch_up", "test_clock")
    return Engine(bank.pool, **{name: getattr(bank.engine, name) for name in common} | changes)


_COUNTS = """
SELECT (SELECT count(*) FROM calendar_override), (SELECT count(*) FROM security),
       (SELECT count(*) FROM auction), (SELECT count(*) FROM bill_rate)
"""
_markets: dict[tuple[int, ...], tuple[Market, Calendars]] = {}


async def _known_market(conn):
    """Return the market of this database; the packaged one is read once for all tests."""
    counts = tuple(await conn.fetchrow(_COUNTS))
    if counts[0]:
        return await load_market(conn)
    if counts not in _markets:
        loaded = await load_market(conn)
        _markets[counts] = (loaded, loaded.calendars)
    market, usual = _markets[counts]
    market.calendars = usual  # the test before may have declared days closed
    return market


async def close_bank(bank):
    await bank.engine.stop()
    await bank.pool.close()
    for outside in (bank.ports.get(CardProcessor), bank.ports.get(Signer)):
        if outside is not None:
            await outside.close()
    shutil.rmtree(bank.settings.state_dir, ignore_errors=True)
    shutil.rmtree(bank.settings.rails_dir, ignore_errors=True)
    shutil.rmtree(bank.settings.files_dir, ignore_errors=True)


async def expect_clean(bank):
    """Verify the whole bank: no row is wrong."""
    async with bank.pool.acquire() as conn:
        report = await verify_bank(conn, market=bank.market, vault=bank.vault)
    assert report.is_clean, report.findings[:5]


@pytest.fixture(scope="session")
def founded_template(pg_server, database_template):
    """The name of a database with a founded bank: founding one takes ten times as long as cloning."""

    async def found(dsn):
        await close_bank(await open_bank(dsn))

    return asyncio.run(make_template(pg_server, "billfold_founded_template", found, base=database_template))


@pytest.fixture
async def bank_dsn(pg_server, founded_template):
    """The address of a database of this test alone: a bank with the packaged market and no customers."""
    async with fresh_database(pg_server, founded_template) as dsn:
        yield dsn


@pytest.fixture
async def bank(bank_dsn):
    """A founded bank at 2025-06-02 09:00 ET, with its house and no customers."""
    opened = await open_bank(bank_dsn)
    yield opened
    await close_bank(opened)


class Holder(EngineCommands):
    """A customer with one Pocket, as tests of the engine need it."""

    def __init__(self, bank, customer_id, pocket_id, portal_id):
        super().__init__(bank)
        self.place = Place(customer_id, pocket_id, portal_id)
        self.customer_id, self.pocket_id, self.portal_id = self.place

    def receipt(self, cents, *, rail="WIRE"):
        """The command by which money arrives."""
        return ReceiveMoney(
            caller="test",
            key=ids.new(),
            customers=(self.customer_id,),
            rail=rail,
            portal_id=self.portal_id,
            pocket_id=self.pocket_id,
            amount=cents,
            description="a deposit",
            details={},
        )

    async def deposit(self, cents, *, rail="WIRE"):
        return await self.receive_money(self.place, cents, rail=rail)


@pytest.fixture
def new_holder(bank):
    """Make a customer with a Pocket: `await new_holder(weeks=4, reinvest=4)`."""

    async def make(*, weeks=4, reinvest=4, name="A holder", at=bank):
        commands = EngineCommands(at)
        customer = await commands.new_customer(name)
        place = await commands.new_pocket(customer, weeks=weeks, reinvest=reinvest, name="Reserve")
        return Holder(at, *place)

    return make

"""Every damaged row of the desk is named by `verify`."""

from datetime import date

import asyncpg
import pytest
from tests.trading.desk_by_hand import OLGA

from billfold.platform.dates import et_instant
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.sandbox.custodian import FOLDER, Plan, SimulatedCustodian
from billfold.trading.decisions import record_quote
from billfold.verify.runner import verify_bank

DAMAGES = {
    "UPDATE execution SET money = money + 1": "execution",
    "UPDATE execution SET units = units + 1": "execution",
    "UPDATE execution SET dealer = 'jpm'": "execution",
    "UPDATE execution SET reference = 'another ' || reference": "execution",
    "UPDATE dealer_order SET filled_units = filled_units - 1": "dealer_order",
    "UPDATE dealer_order SET status = 'CANCELLED'": "dealer_order",
    "UPDATE dealer_quote SET price_micros = price_micros - 1": "dealer_quote",
    "UPDATE trading_desk SET paused = true": "trading_desk",
    "UPDATE dealer_settlement SET money = money + 1": "dealer_settlement",
    "UPDATE dealer_settlement SET units = units + 1": "dealer_settlement",
    "DELETE FROM dealer_settlement": "settlement_instruction",
    "UPDATE settlement_instruction SET settled_money = settled_money + 1": "settlement_instruction",
    "UPDATE settlement_instruction SET withdrawn = true": "account",
    "UPDATE settlement_instruction SET status = 'SENT'": "settlement_instruction",
    "DELETE FROM settlement_difference": "settlement_difference",
    "UPDATE settlement_difference SET money = money + 1": "settlement_difference",
    "UPDATE inventory_position SET units = units + 1": "inventory_position",
    "UPDATE inventory_position SET mark_micros = mark_micros + 1": "inventory_position",
    "DELETE FROM inventory_position WHERE closed_on = (SELECT max(closed_on) FROM inventory_position)": "account",
    "UPDATE settlement SET from_inventory = false": "settlement",
    "UPDATE account SET credits = credits + 1 WHERE kind = 'trading_gains'": "account",
    "UPDATE account SET debits = debits + 1 WHERE kind LIKE 'dealer:%'": "account",
}


@pytest.fixture
async def lived_desk(bank, desk, new_holder):
    """A bank with a settled execution, one whose confirmation differs, a quote, and an inventory at two closes."""
    await (await new_holder()).deposit(100_000_00)
    [order] = await desk.send_orders()
    await record_quote(bank, order.order_id, dealer="jpm", price_micros=order.mark_micros, units=9, by=OLGA)
    custodian = SimulatedCustodian(bank.settings.state_dir / FOLDER)
    custodian.plan(Plan())
    custodian.plan(Plan(money_off_cents=1))
    await desk.book(await desk.fill_of(order, units=order.units - 60, off=-4_000))
    await ClockStepper(bank).set_to(et_instant(date(2025, 6, 2), 12))
    await desk.book(await desk.fill_of(order, units=50))
    await ClockStepper(bank).set_to(et_instant(date(2025, 6, 3), 18))


async def test_verify_names_the_table_of_every_damaged_row_of_the_desk(bank, bank_dsn, lived_desk):
    conn = await asyncpg.connect(bank_dsn)
    try:
        for damage, table in DAMAGES.items():
            transaction = conn.transaction()
            await transaction.start()
            assert await conn.execute(damage) not in {"UPDATE 0", "DELETE 0"}, damage
            report = await verify_bank(conn, market=bank.market, vault=bank.vault)
            await transaction.rollback()
            assert table in {each.table for each in report.findings}, (damage, report.findings)
    finally:
        await conn.close()

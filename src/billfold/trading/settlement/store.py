"""Queries of instructions to the custodian and of confirmations that differ from them."""

from datetime import date
from uuid import UUID

from billfold.platform.database.connection import Db
from billfold.platform.database.rows import Table
from billfold.trading.settlement.types import SettlementDifference, SettlementInstruction

_instructions, _differences = Table(SettlementInstruction), Table(SettlementDifference)
find_instruction = _instructions.find
get_instruction = _instructions.get
get_difference = _differences.get
load_instructions = _instructions.load_references
load_differences = _differences.load_references
OPEN_IN_SQL = "status NOT IN ('SETTLED', 'CANCELLED')"
_OPEN = f"{_instructions.select} WHERE customer_id = $1 AND {OPEN_IN_SQL} ORDER BY settles_on, counterparty, cusip"
_CLOSED = f"""
{_instructions.select} WHERE customer_id = $1 AND NOT {OPEN_IN_SQL} ORDER BY updated_at DESC, instruction_id LIMIT $2
"""
_HELD = f"{_differences.select} WHERE customer_id = $1 AND status = 'HELD' ORDER BY held_at, difference_id"
UNSETTLED_BY_DEALER = f"""
SELECT substr(counterparty, 8), sum(abs(money))::bigint FROM (
  SELECT counterparty, settles_on, sum(money - settled_money) AS money FROM settlement_instruction
   WHERE {OPEN_IN_SQL} AND NOT withdrawn AND counterparty LIKE 'dealer:%' GROUP BY counterparty, settles_on) dated
 GROUP BY counterparty HAVING sum(abs(money)) <> 0 ORDER BY counterparty
"""
"""The unsettled money with each dealer, in cents, payments and receipts of different dates added up."""


async def list_due(conn: Db, bank_id: UUID, by: date) -> list[SettlementInstruction]:
    """Return what is due by a date and not confirmed. What was corrected or busted is not due."""
    return [each for each in await list_open(conn, bank_id) if each.settles_on <= by and not each.withdrawn]


async def list_open(conn: Db, bank_id: UUID) -> list[SettlementInstruction]:
    """Return the instructions that are not settled or cancelled, the one due first first."""
    return await _instructions.all(conn, _OPEN, bank_id)


async def list_closed(conn: Db, bank_id: UUID, limit: int) -> list[SettlementInstruction]:
    """Return the instructions that were settled or cancelled last."""
    return await _instructions.all(conn, _CLOSED, bank_id, limit)


async def list_held(conn: Db, bank_id: UUID) -> list[SettlementDifference]:
    """Return the confirmations that wait for two people, the oldest first."""
    return await _differences.all(conn, _HELD, bank_id)

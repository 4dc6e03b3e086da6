"""Damages rows of the rails column by column; the checks must name each."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

import asyncpg
import pytest
from tests.support.citus_cluster import ONE_SERVER
from tests.support.whole_bank import VAULT
from tests.verify.test_damage import CHANGES, COLUMNS, same_key

from billfold.data_keys.keys import DataKeys
from billfold.data_keys.kms import FileMasterKey
from billfold.platform.database.checks import Findings, run_checks
from billfold.platform.database.distribution import is_distributed

LISTS = {"ARRAY": "ARRAY['x']"}
IDS = "ARRAY['01234567-89ab-8def-8123-456789abcdef']::uuid[]"
OTHERWISE = {
    ("counterparty", "status"): "'VERIFIED'",
    ("wire_case", "status"): "'REFUSED'",
    ("transfer_request", "reviewers"): IDS,
    ("batch", "reviewers"): IDS,
    ("approval_rule", "approver_ids"): IDS,
}
Check = Callable[[Any, Findings], Awaitable[None]]


def checks_of(*modules: ModuleType) -> Check:
    """The checks of these modules as one, with the bank's own key."""
    checks = [check for module in modules for check in module.CHECKS]

    async def check(conn, found):
        await run_checks(conn, found, checks)
        bank_id = await conn.fetchval("SELECT bank_customer_id FROM bank")
        bank_key = (await DataKeys(FileMasterKey(VAULT)).load(conn, (bank_id,))).get(bank_id)
        for module in modules:
            if bank_key is not None and hasattr(module, "check_opened"):
                await module.check_opened(conn, found, bank_key)

    return check


async def report_of(conn, *checks: Check):
    """The findings of these checks, in the open transaction."""
    found = Findings()
    for check in checks:
        await check(conn, found)
    return found.report()


async def undetected(conn, table, *checks: Check, where="true", undetectable=()):
    """Damage every column of a row, delete it; return what no constraint refused and no check named."""
    if await is_distributed(conn):
        pytest.skip(ONE_SERVER)  # a place is one of each shard
    types = dict(await conn.fetch(COLUMNS, table))
    before = await conn.fetchrow(f"SELECT ctid::text AS place, * FROM {table} WHERE {where} ORDER BY 1 LIMIT 1")
    assert before is not None, (table, where)
    damages = {"deleted": f"DELETE FROM {table} WHERE ctid = $1::text::tid RETURNING *"}
    for column, kind in types.items():
        change = OTHERWISE.get((table, column)) or (CHANGES | LISTS)[kind].format(c=column)
        damages[column] = f"UPDATE {table} SET {column} = {change} WHERE ctid = $1::text::tid RETURNING *"
    missed = []
    for what, damage in damages.items():
        if what in undetectable:
            continue
        transaction = conn.transaction()
        await transaction.start()
        with suppress(asyncpg.IntegrityConstraintViolationError):
            after = await conn.fetchrow(damage, before["place"])
            first = (await report_of(conn, *checks)).first
            if first is None or first.table != table or not _is_one(first.key, before, after):
                missed.append((what, first))
        await transaction.rollback()
    return missed


def _is_one(key, *rows):
    """Is this the key of one of the rows?"""
    return any(set(key) <= set(row.keys()) and same_key(key, row) for row in rows if row is not None)

"""`billfold due-work`: customers whose due work fails are listed, and done once the cause is mended."""

import asyncio

import asyncpg
from tests.fixtures.cli import fetch

from billfold.wiring import open_bank

_FAILS = """
INSERT INTO failed_work (kind, item, tries, error, failed_at, again_at)
SELECT 'due work', customer_id::text, 3, 'LookupError()', now(), now() + interval '1 hour'
  FROM customer WHERE role = 'partner' RETURNING item
"""
_DUE = "UPDATE ledger_head SET due_at = '2020-01-01' WHERE customer_id IN (SELECT item::uuid FROM failed_work)"


def test_failing_due_work_is_listed_and_retried_by_an_operator(founded, database_dsn, monkeypatch):
    assert founded("due-work", "list") == (0, "✓ No customer's due work fails.")
    founded("partner", "create", "acme")
    ((customer,),) = asyncio.run(fetch(database_dsn, _FAILS))
    asyncio.run(fetch(database_dsn, _DUE))
    status, said = founded("due-work", "list")
    assert (status, customer in said, "LookupError" in said, "yes" in said) == (0, True, True, True)
    assert founded("due-work", "retry", "00000000-0000-4000-8000-000000000000")[0] == 1

    def fail(*_):
        raise asyncpg.DataError("still wrong")

    with monkeypatch.context() as broken:
        broken.setattr(open_bank, "catch_up", fail)
        status, said = founded("due-work", "retry", customer)
    assert (status, "still wrong" in said) == (1, True)
    assert founded("due-work", "retry") == (0, "✓ Up to date: 1.")
    assert founded("due-work", "list") == (0, "✓ No customer's due work fails.")

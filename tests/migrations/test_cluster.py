"""Statements that a Citus cluster takes; the plans need BILLFOLD_TEST_CITUS_URL (docs/operate/distributed.md)."""

import asyncio
import hashlib
import importlib
import os
import pkgutil
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path

import asyncpg
import pytest

import billfold
from billfold.ledger.scheduler import run_scheduled_jobs, schedule
from billfold.ledger.types import ScheduledJob

SOURCES = Path(billfold.__file__).parent
STATEMENT = re.compile(r"\s*(WITH|SELECT|INSERT|UPDATE|DELETE)\b")
NOT_FOR_THE_CLUSTER = re.compile(r"\.(checks|migrations|verify|__main__)\b")
"""`verify` also takes statements that Citus refuses."""
REFUSED = {
    "billfold.ledger.engine.load_books": "a cluster locks by shard, with another statement",
}
UNUSED = {"billfold.accounts.explain.store:_trades", "billfold.accounts.explain.store:_money"}
"""Tables that are only read have an INSERT of their own, which nobody runs."""
NOT_EXPLAINED = {"billfold.approvals.store.reviews:_RECORD"}
"""Citus 13 loses the parameters of an INSERT that reads its own table when it explains it, not when it runs it."""
PLANNED = Path(__file__).with_name("planned_statements.txt")
"""Digests of the statements that a cluster took, one a line."""
MOMENT = datetime(2026, 6, 2, tzinfo=UTC)
VALUES = {
    **dict.fromkeys(("int2", "int4", "int8", "numeric"), 1),
    "text": "x",
    "varchar": "x",
    "bool": True,
    "bytea": b"x",
    "json": "{}",
    "jsonb": "{}",
    "inet": "127.0.0.1",
    "timestamptz": MOMENT,
    "date": date(2026, 6, 2),
    "float8": 1.0,
}
CUSTOMERS = """
SELECT DISTINCT ON (get_shard_id_for_distribution_column('ledger_head', id)) id
  FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, 64)) ids LIMIT 2
"""
REPARTITIONED = "re-partition"
needs_cluster = pytest.mark.skipif("BILLFOLD_TEST_CITUS_URL" not in os.environ, reason="no Citus cluster is named")


def test_no_statement_selects_nothing_in_exists():
    files = [path for path in SOURCES.rglob("*.py") if re.search(r"\bSELECT FROM\b", path.read_text())]
    assert not files, "SELECT 1 FROM: a cluster fails at a statement without columns, when it runs"


def statements():
    """Every constant of a module that is a statement, also in lists of pages; not templates, which are filled later."""
    found: dict[str, str] = {}
    for info in pkgutil.walk_packages(billfold.__path__, "billfold."):
        if NOT_FOR_THE_CLUSTER.search(info.name):
            continue
        for name, value in vars(importlib.import_module(info.name)).items():
            for text in texts_of(value):
                if STATEMENT.match(text) and not re.search(r"\{\w+\}", text):
                    found.setdefault(text, f"{info.name}:{name}")
    return found


def texts_of(value, depth=4):
    if isinstance(value, str):
        yield value
    elif depth and not isinstance(value, type):
        held = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
        if not held and type(value).__module__.startswith("billfold."):
            parts = [(name, each) for kind in type(value).__mro__ for name, each in vars(kind).items()]
            composed = {name for name, each in parts if isinstance(each, cached_property)}
            slots = {slot for name, each in parts if name == "__slots__" for slot in each}
            held = [getattr(value, name, None) for name in slots | composed | getattr(value, "__dict__", {}).keys()]
        for each in held:
            yield from texts_of(each, depth - 1)


def digests():
    """Return the place of each statement by the digest of its text."""
    return {hashlib.sha256(text.encode()).hexdigest()[:12]: where for text, where in statements().items()}


def test_statements_that_no_cluster_has_planned_are_shown():
    found = digests()
    unplanned = sorted({found[key] for key in found.keys() - PLANNED.read_text().split()})
    if unplanned:
        pytest.skip(f"plan on a cluster (docs/operate/distributed.md): {', '.join(unplanned)}")


@needs_cluster
async def test_a_cluster_plans_every_statement(conn):
    customers = [row["id"] for row in await conn.fetch(CUSTOMERS)]
    texts = ("x", "{{{},{}}}".format(*customers), "{1,2}", "{}", "1:2:")  # lists of ids are sent as one text
    meaningless, refused = set(), []
    for text, where in statements().items():
        try:
            statement = await conn.prepare(text)
        except asyncpg.PostgresError:
            continue  # part of a statement, or one for another database
        parameters = statement.get_parameters()
        for values in ([value_of(each, customers, list_text) for each in parameters] for list_text in texts):
            try:
                async with conn.transaction():
                    plan = await conn.fetch(f"EXPLAIN {text}", *values)
                if any(REPARTITIONED in line for (line,) in plan):
                    refused.append(f"{where}: rows are sent from node to node, a second and more")
            except asyncpg.FeatureNotSupportedError as error:
                if where.partition(":")[0] not in REFUSED:
                    refused.append(f"{where}: {error}")
            except asyncpg.PostgresError:
                continue
            break
        else:
            meaningless.add(where)
    assert not refused
    assert meaningless == UNUSED | NOT_EXPLAINED
    PLANNED.write_text("".join(f"{each}\n" for each in sorted(digests())))


def value_of(parameter, customers, list_text):
    name = parameter.name.removeprefix("_").removesuffix("[]")
    is_array = name != parameter.name
    if name == "text" and not is_array:
        return list_text
    if name == "uuid":
        return customers if is_array else customers[0]
    value = VALUES.get(name)
    return [value, value] if is_array else value


@needs_cluster
async def test_a_write_to_the_coordinator_and_one_worker_is_committed_in_two_phases(conn):
    said = []
    conn.add_log_listener(lambda _, message: said.append(message.message))
    await conn.execute("SET citus.log_remote_commands = on")
    statements = [
        "DELETE FROM directory WHERE kind = 'x' AND value = 'x'",
        "DELETE FROM session WHERE false",
    ]
    for order in (statements, statements[::-1]):
        async with conn.transaction():
            for each in order:
                await conn.execute(each)
        assert any("COMMIT PREPARED" in each for each in said), order
        said.clear()


@needs_cluster
async def test_a_job_waits_for_what_a_node_has_prepared(bank, bank_dsn):
    ran = []

    async def look(_, job):
        ran.append(job)

    bank.job_runners = {"look": look}
    await schedule(bank.pool, [ScheduledJob("look", bank.own_id, bank.own_id, await bank.now())])
    at, port = await bank.pool.fetchrow("SELECT nodename, nodeport FROM pg_dist_node WHERE groupid = 1")
    node = await asyncpg.connect(bank_dsn, host=at, port=port)
    await node.execute("BEGIN; CREATE TABLE prepared (); PREPARE TRANSACTION 'prepared'")
    working = asyncio.create_task(run_scheduled_jobs(bank, await bank.now()))
    await asyncio.sleep(0.5)
    assert not ran
    await node.execute("COMMIT PREPARED 'prepared'")
    await node.close()
    assert (await working).happened == {"look": 1}

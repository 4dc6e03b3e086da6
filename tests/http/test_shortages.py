"""A database that is unreachable, full or exhausted: retried, then 503 on every route and one line in the log."""

from contextlib import asynccontextmanager

import asyncpg
import pytest
from structlog.testing import capture_logs
from tests.support.citus_cluster import ONE_SERVER

from billfold.platform.database import shortage
from billfold.platform.database.distribution import is_distributed

SQLSTATES = ("08006", "53200", "53300", "57P01", "57P03", "25006", "57014")
SHORT = """
CREATE SEQUENCE calls;
CREATE FUNCTION run_short() RETURNS boolean LANGUAGE plpgsql AS $f$
BEGIN
  IF nextval('calls') <= {calls} THEN
    RAISE 'could not extend file' USING ERRCODE = '{sqlstate}';
  END IF;
  RETURN true;
END $f$;
CREATE FUNCTION run_short_on_write() RETURNS trigger LANGUAGE plpgsql AS
  $f$ BEGIN PERFORM run_short(); RETURN NEW; END $f$;
CREATE TRIGGER short BEFORE INSERT ON rate_limit_window EXECUTE FUNCTION run_short_on_write();
"""
READ = "ALTER TABLE {table} RENAME TO whole; CREATE VIEW {table} AS SELECT * FROM whole WHERE (SELECT run_short())"
READ_AGAIN = "DROP VIEW {table}; ALTER TABLE whole RENAME TO {table};"
WELL = """
DROP TRIGGER short ON rate_limit_window;
DROP FUNCTION run_short_on_write;
DROP FUNCTION run_short;
DROP SEQUENCE calls;
"""
ROUTES = [
    ("rate_limit_window", "GET", "acme", "/api/v1/customers/"),
    ("customer", "GET", "acme", "/api/v1/customers/"),
    ("partner_token", "GET", "acme", "/api/v1/customers/"),
    ("rate_limit_window", "POST", "acme", "/api/v1/login/"),
    ("partner_user", "POST", "acme", "/api/v1/login/"),
    ("rate_limit_window", "POST", "acme", "/token/"),
    ("rate_limit_window", "POST", "auth", "/api/oauth2/token"),
    ("rate_limit_window", "GET", "auth", "/api/oauth2/authorize"),
    ("session", "GET", "auth", "/sign-in"),
    ("rate_limit_window", "POST", "auth", "/sign-in"),
    ("access_token", "GET", "api", "/api/v2/pockets/"),
]


@asynccontextmanager
async def short(dsn, table, *, calls, sqlstate="53100"):
    """Make the database fail for this many calls that count requests or read a table."""
    owner = await asyncpg.connect(dsn)
    if table == "customer" and await is_distributed(owner):
        await owner.close()
        pytest.skip(ONE_SERVER)  # a table in shards cannot be made a view
    reads = table != "rate_limit_window"
    await owner.execute(SHORT.format(calls=calls, sqlstate=sqlstate) + READ.format(table=table) * reads)
    yield
    await owner.execute(READ_AGAIN.format(table=table) * reads + WELL)
    await owner.close()


@pytest.mark.parametrize(
    ("route", "sqlstate"), [*((each, "53100") for each in ROUTES), *((ROUTES[1], each) for each in SQLSTATES)]
)
async def test_every_route_answers_503_while_the_database_lacks_resources(bank_dsn, send, monkeypatch, route, sqlstate):
    table, *where = route
    monkeypatch.setattr(shortage, "PATIENCE_SECONDS", -1)
    async with short(bank_dsn, table, calls=1_000_000, sqlstate=sqlstate):
        with capture_logs() as lines:
            answer = await send(*where)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1"), answer.text
    assert "Temporarily" in answer.text or answer.json()["code"] == "unavailable"
    assert {(each["event"], each["log_level"], "exc_info" in each) for each in lines} == {
        ("database_unavailable", "warning", False)
    }
    assert len(lines) <= 2


async def test_transient_database_errors_are_retried(bank_dsn, send):
    for table, *where in ROUTES:
        if table != "partner_user":
            before = await send(*where)
            async with short(bank_dsn, table, calls=2):
                after = await send(*where)
            assert (after.status_code, after.status_code < 500) == (before.status_code, True)


def test_a_node_that_its_coordinator_lost_is_a_shortage_and_another_internal_error_is_not():
    lost = [
        "failure on connection marked as essential: 10.0.0.2:5432",
        "postmaster was shut down, exiting",
        "server closed the connection unexpectedly\n\tThis probably means",
        "terminating connection due to unexpected postmaster exit",
    ]
    assert all(shortage.is_shortage(asyncpg.InternalServerError(each)) for each in lost)
    assert shortage.is_shortage(asyncpg.DeadlockDetectedError("involved in a distributed deadlock"))
    assert not shortage.is_shortage(asyncpg.InternalServerError("duplicate key value violates unique constraint"))

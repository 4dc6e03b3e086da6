"""Processes that answer requests share a few sessions of the database by PgBouncer, a transaction at a time."""

import asyncio
import getpass
import pwd
import shutil
import subprocess
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest
from tests.support.databases import as_application
from tests.support.sandbox_process import free_ports
from tests.support.whole_bank import close_bank, expect_clean, open_bank
from tests.support.world import PartnerClient, new_partner

from billfold.cli.context import CliError
from billfold.platform.clock import monotonic
from billfold.platform.settings.settings import Settings
from billfold.wiring import open_bank as wiring_open_bank
from billfold.wiring.server import make_host_router

pytestmark = pytest.mark.skipif(shutil.which("pgbouncer") is None, reason="pgbouncer is not installed")
UP_SECONDS = 10
SESSIONS = 3


@asynccontextmanager
async def pooler(dsn, owner_of_socket, folder):
    """Run PgBouncer in front of a database; yield its address for any user."""
    server = urlsplit(dsn)
    socket_folder = parse_qs(server.query)["host"][0]
    (port,) = free_ports(1)
    (folder / "users.txt").write_text('"billfold_app" ""\n"postgres" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = host={socket_folder} port=5432\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
        f"auth_type = trust\nauth_file = {folder}/users.txt\npool_mode = transaction\nunix_socket_dir =\n"
        f"default_pool_size = {SESSIONS}\nmax_client_conn = 200\nserver_reset_query =\n"
    )
    folder.chmod(0o755)
    command = ["pgbouncer", *(() if owner_of_socket == getpass.getuser() else ("-u", owner_of_socket))]
    with subprocess.Popen([*command, str(folder / "pgbouncer.ini")], stderr=subprocess.DEVNULL) as process:
        address = f"postgresql://{{}}@127.0.0.1:{port}{server.path}"
        try:
            await until_up(address.format("billfold_app"), process)
            yield address
        finally:
            process.terminate()


async def until_up(address, process):
    until = monotonic() + UP_SECONDS
    while True:
        try:
            return await (await asyncpg.connect(address)).close()
        except OSError:
            assert process.poll() is None
            assert monotonic() < until
            await asyncio.sleep(0.05)


async def test_processes_behind_a_pooler_share_a_few_sessions(pg_server, bank_dsn, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp().parent / "pooler"
    folder.mkdir(exist_ok=True)
    owner = pwd.getpwuid(pg_server.data_dir.stat().st_uid).pw_name
    async with pooler(bank_dsn, owner, folder) as address:
        with pytest.raises(CliError, match="postgres, as whom BILLFOLD_DATABASE_POOLER_URL logs in, owns the tables"):
            async with wiring_open_bank.open_bank(Settings(), address.format("postgres"), by_pooler=True):
                pytest.fail("an owner got in")
        with pytest.raises(CliError, match="That address is a transaction pooler: unsupported startup parameter"):
            async with wiring_open_bank.open_bank(Settings(), address.format("billfold_app")):
                pytest.fail("a worker got in")
        through = address.format("billfold_app")
        banks = [await open_bank(bank_dsn, database_pooler_url=through) for _ in range(2)]
        partner = await new_partner(banks[0], rate=100)
        routers = [make_host_router(bank) for bank in banks]
        clients = [PartnerClient(router, partner) for router in routers]
        await tell_story(clients, f"/api/v2/customers/{partner.own_customer_id}/pockets/")
        await look_into_sessions(bank_dsn)
        await expect_clean(banks[0])
        for client, router, bank in zip(clients, routers, banks, strict=True):
            await client.close()
            async with router.lifespan():
                pass
            await close_bank(bank)


async def tell_story(clients, path):
    """Use both servers at once: open Pockets, repeat a request, and exceed a shared limit."""
    bodies = [{"pocket_name": f"Pocket {n}", "trading_strategy_id": "UST-4W"} for n in range(24)]
    made = await asyncio.gather(*(clients[n % 2].post(path, body) for n, body in enumerate(bodies)))
    assert [each.status_code for each in made] == [201] * len(bodies)
    asked = len(bodies) + 1
    key = made[0].request.headers["x-service-idempotency"]
    while (repeated := await clients[1].post(path, bodies[0], key=key)).status_code == 409:  # until it is stored
        asked += 1
    assert (repeated.json(), repeated.headers["idempotent-replayed"]) == (made[0].json(), "true")
    listed = await asyncio.gather(*(clients[n % 2].get(path) for n in range(90)))
    answers = {each.status_code for each in listed}
    assert answers == {200, 429}
    assert sum(each.status_code == 200 for each in listed) == 100 - asked


async def look_into_sessions(dsn):
    """Check that a few sessions in the application's role serve all connections."""
    conn = await asyncpg.connect(as_application(dsn))
    sessions = await conn.fetch(
        "SELECT usename FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND backend_type = 'client backend'"
    )
    await conn.close()
    assert len(sessions) <= SESSIONS
    assert {each["usename"] for each in sessions} == {"billfold_app"}

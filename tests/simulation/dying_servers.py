"""Servers that kill themselves in the middle of an upload, after a number of steps.

A step is a call of the database or the disk, or half of the file. As a program it forks a server for each line
of input (number of steps, key) and writes its exit status.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from tests.simulation.dying_workers import die_after
from tests.simulation.forks import Spawner
from tests.support.apps import lend_partner_app
from tests.support.whole_bank import close_bank, open_bank
from tests.support.world import Acme, PartnerClient

from billfold.documents.ports import FileInspector
from billfold.platform.telemetry.logs import configure_logging

FILE = b"%PDF-1.7\n" + b"a page\n" * 20_000 + b"%%EOF\n"
KINDS = {"content-type": "application/pdf", "content-disposition": 'attachment; filename="a.pdf"'}


class DyingServers(Spawner):
    """Starts servers of one bank; each receives one upload."""

    def __init__(self, dsn, folder, partner, path):
        super().__init__(__name__, dsn, folder, partner.slug, partner.secret, partner.token, path)

    def upload(self, steps, key):
        """Return whether the server responded before it died after this many steps."""
        status = self.ask(steps, key)
        assert status in {0, -signal.SIGKILL}, status
        return status == 0


class Unlooked:
    """Accepts every file uninspected, because an inspection takes a second and leaves no trace."""

    async def inspect(self, content, kind):
        """Accept the file."""


async def open_server_bank(dsn, folder):
    """Return a bank whose files are in the folder."""
    bank = await open_bank(dsn, files_dir=Path(folder, "files"), rails_dir=Path(folder, "rails"))
    bank.ports[FileInspector] = Unlooked()
    return bank


async def send(client, path, key, step):
    """Send the file in two halves with a step between them."""

    async def halves():
        yield FILE[:50_000]
        step()
        yield FILE[50_000:]

    headers = client.headers(path, FILE, key=key) | KINDS | {"content-length": str(len(FILE))}
    return await client.http.post(path, content=halves(), headers=headers)


async def work(steps, key, told):
    """Receive one upload."""
    dsn, folder, slug, secret, token, path = told
    bank = await open_server_bank(dsn, folder)
    partner = Acme(slug, None, None, user_id=None, username="", secret=secret, token=token)
    client = PartnerClient(lend_partner_app(bank), partner)
    answer = await send(client, path, key, step=die_after(steps))
    os._exit(0 if answer.status_code == 201 else 1)


async def warm_up(dsn):
    """Open the bank once before forking, so that the forked processes share its market and its API."""
    bank = await open_bank(dsn)
    lend_partner_app(bank)
    await close_bank(bank)


if __name__ == "__main__":
    configure_logging("ERROR")
    asyncio.run(warm_up(sys.argv[1]))
    for line in sys.stdin:
        steps, key = line.split()
        server = os.fork()
        if not server:
            asyncio.run(work(int(steps), key, sys.argv[1:]))
        print(os.waitstatus_to_exitcode(os.waitpid(server, 0)[1]), flush=True)

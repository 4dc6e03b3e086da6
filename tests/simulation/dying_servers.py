"""Servers that die by themselves in the middle of an upload: after a number of steps, a step being a
word with the database or the disk, or half of the file.

Run as a program it forks a server for every line it reads, of how many steps and under which key,
and writes the status with which it has ended.
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
    """Starts servers of one bank, each of which takes one upload."""

    def __init__(self, dsn, folder, partner, path):
        super().__init__(__name__, dsn, folder, partner.slug, partner.secret, partner.token, path)

    def upload(self, steps, key):
        """Tell whether a server that dies after so many steps has answered before."""
        status = self.ask(steps, key)
        assert status in {0, -signal.SIGKILL}, status
        return status == 0


class Unlooked:
    """Looks into no file: that takes a second and leaves nothing behind."""

    async def inspect(self, content, kind):
        """Let it pass."""


async def open_server_bank(dsn, folder):
    """Return a bank whose files are in the folder."""
    bank = await open_bank(dsn, files_dir=Path(folder, "files"), rails_dir=Path(folder, "rails"))
    bank.ports[FileInspector] = Unlooked()
    return bank


async def send(client, path, key, step):
    """Send the file in two halves, and make a step between them."""

    async def halves():
        yield FILE[:50_000]
        step()
        yield FILE[50_000:]

    headers = client.headers(path, FILE, key=key) | KINDS | {"content-length": str(len(FILE))}
    return await client.http.post(path, content=halves(), headers=headers)


async def work(steps, key, told):
    """Take one upload."""
    dsn, folder, slug, secret, token, path = told
    bank = await open_server_bank(dsn, folder)
    partner = Acme(slug, None, None, user_id=None, username="", secret=secret, token=token)
    client = PartnerClient(lend_partner_app(bank), partner)
    answer = await send(client, path, key, step=die_after(steps))
    os._exit(0 if answer.status_code == 201 else 1)


async def warm_up(dsn):
    """Open the bank once, so that its market and its API are known to all that are forked."""
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

"""Operators who decide hits, and lists that are imported."""

from dataclasses import replace
from pathlib import Path

from tests.support.applications import run_jobs

from billfold import sandbox
from billfold.onboarding.applications.rescreening import screen_backlog
from billfold.screening import cli
from billfold.screening.types import HitStatus

LIST = (Path(sandbox.__file__).parent / "scenarios" / "sanctions.xml").read_text()
NOTE = "Born in another country."


async def act(bank, operator, command, *arguments, **options):
    """Call a command in an operator's name."""
    bank.settings = replace(bank.settings, operator=operator)
    return await command(bank, *arguments, **options)


async def only_hit(bank, status=HitStatus.OPEN):
    """Return the one hit of a status, as it is listed."""
    (hit,) = await cli.hits(bank, status=status)
    return hit


async def clear(bank, hit_id):
    """Let two operators clear a hit, and the worker do what follows."""
    for operator in ("anna", "ben"):
        await act(bank, operator, cli.clear, hit_id, note=NOTE)
    await run_jobs(bank)


async def import_list(bank, folder, content):
    """Import a list as the command does, and screen everybody."""
    (folder / "SDN.XML").write_text(content)
    async with bank.pool.acquire() as conn, conn.transaction():
        await cli.import_list(conn, folder / "SDN.XML")
    while await screen_backlog(bank):
        pass
    await run_jobs(bank)


def listing(name, day):
    """Return the list of a day of February 2025, in which an entity of this name is an entry."""
    return LIST.replace("BRACHMOND INDUSTRIAL GROUP", name).replace("01/02/2025", f"02/{day:02}/2025")

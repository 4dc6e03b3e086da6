"""A bank in use is backed up, and restored to a moment between two transfers; what cannot be restored is refused."""

import asyncio
import base64
import os
import subprocess
import sys
from datetime import timedelta

import pytest
from tests.fixtures.cli import fetch
from tests.support.commands import EngineCommands

from billfold.cli.app import run
from billfold.platform.clock import wall_now
from billfold.wiring.cli_context import Wiring
from billfold.wiring.open_bank import open_bank


def environment(state_dir, **more):
    return {"BILLFOLD_STATE_DIR": str(state_dir), "PATH": os.environ["PATH"], **more}


async def transfers(settings, dsn, backup):
    """Transfer before a backup, after it, and after the moment that is returned."""
    async with open_bank(settings, dsn) as bank:
        play = EngineCommands(bank, "backup")
        anna, bert = [await play.new_customer(name) for name in ("Anna", "Bert")]
        origin, target = await play.new_pocket(anna), await play.new_pocket(bert)
        await play.receive_money(origin, 1_000_00)
        await play.transfer(origin, target, 100_00)
        await asyncio.to_thread(backup)
        await play.transfer(origin, target, 20_00)
        moment = wall_now()
        await play.transfer(origin, target, 3_00)
        return moment


def amounts_of(context):
    async def read(dsn):
        return [row["amount"] for row in await fetch(dsn, "SELECT amount FROM transfer ORDER BY amount DESC")]

    with context.database(context.settings(), lambda _: None) as database:
        return asyncio.run(read(database.dsn))


@pytest.fixture
def billfold(tmp_path, capsys):
    """Run a command on the bank of a folder; return (status, what was said)."""

    def call(*words, into=tmp_path / "state", **more):
        status = run(Wiring(environment(into, **more)), arguments=[*map(str, words)])
        said = capsys.readouterr()
        return status, " ".join((said.out + said.err).split())

    return call


def test_a_bank_is_restored_to_a_moment_between_two_transfers(billfold, tmp_path):
    state, backups = tmp_path / "state", tmp_path / "backups"
    assert billfold("migrate", "up")[0] == 0
    assert "There is no bank" in billfold("backup", backups, into=tmp_path / "none")[1]
    context = Wiring(environment(state))
    settings = context.settings()
    with context.database(settings, lambda _: None) as database:

        def back_up():
            words = [sys.executable, "-m", "billfold", "backup", str(backups), "--continuous"]
            subprocess.run(words, env=environment(state), check=True, capture_output=True, timeout=120)

        moment = asyncio.run(transfers(settings, database.dsn, back_up))
        assert "and its database runs" in billfold("restore", backups)[1]
        assert billfold("backup", backups, "--continuous", "--keep", "2")[0] == 0
    assert "It is never overwritten" in billfold("restore", backups)[1]

    key = {"BILLFOLD_ENCRYPTION_KEY": base64.b64encode(os.urandom(32)).decode()}
    for words, more, reason in (
        ([], key, "not the key of the bank"),
        (["--to", (moment + timedelta(days=1)).isoformat()], {}, "does not reach"),
        (["--to", (moment - timedelta(days=1)).isoformat()], {}, "the earliest moment is"),
    ):
        status, said = billfold("restore", backups, *words, into=tmp_path / "refused", **more)
        assert (status, reason in said) == (1, True), said
        assert not [*tmp_path.glob("refused*")]

    for to, expected in ((["--to", moment.isoformat()], [100_00, 20_00]), ([], [100_00, 20_00, 3_00])):
        restored = tmp_path / f"restored-{len(expected)}"
        status, said = billfold("restore", backups, *to, into=restored)
        assert (status, "the ledger and the audit log are intact" in said) == (0, True), said
        assert amounts_of(Wiring(environment(restored))) == expected

    newest = max(backups.glob("2*"))
    with (newest / "base.tar.gz").open("r+b") as file:
        file.seek(-50_000, os.SEEK_END)
        file.write(b"damaged")
    status, said = billfold("restore", backups, into=tmp_path / "refused")
    assert (status, "The backup is damaged" in said) == (1, True), said
    assert not [*tmp_path.glob("refused*")]

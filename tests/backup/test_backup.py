"""A bank in use is backed up and restored to a moment between two transfers; invalid backups are refused."""

import asyncio
import base64
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.fixtures.cli import fetch
from tests.support.whole_bank import EngineCommands

from billfold.backup.folder import Backup, BackupFolder, write_about
from billfold.backup.restore import replay_log
from billfold.cli.context import CliError
from billfold.platform.clock import wall_now
from billfold.platform.database.embedded_programs import MAJOR, ServerUser
from billfold.wiring.cli.app import run
from billfold.wiring.cli_context import Wiring
from billfold.wiring.open_bank import open_bank


def environment(state_dir, **more):
    return {"BILLFOLD_STATE_DIR": str(state_dir), "PATH": os.environ["PATH"], **more}


async def transfers(settings, dsn, backup):
    """Transfer before and after a backup, and after the returned moment."""
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


def running(state_dir):
    context = Wiring(environment(state_dir))
    return context.database(context.settings(), lambda _: None)


async def amounts(dsn):
    return [row["amount"] for row in await fetch(dsn, "SELECT amount FROM transfer ORDER BY amount DESC")]


@pytest.fixture
def tmp_path(memory_folder):
    """A folder in memory: what copies databases again and again waits for a disk."""
    with tempfile.TemporaryDirectory(dir=memory_folder) as name:
        yield Path(name)


@pytest.fixture
def billfold(tmp_path, capsys):
    """Run a command on the bank of a folder; return (status, output)."""

    def call(*words, into=tmp_path / "state", **more):
        status = run(Wiring(environment(into, **more)), arguments=[*map(str, words)])
        said = capsys.readouterr()
        return status, " ".join((said.out + said.err).split())

    return call


def test_a_bank_is_restored_to_a_point_in_time_between_two_transfers(billfold, tmp_path):
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
        with running(restored) as database:
            assert asyncio.run(amounts(database.dsn)) == expected
            assert "log of the bank before" in billfold("backup", backups, "--continuous", into=restored)[1]

    newest = max(backups.glob("2*"))
    with (newest / "base.tar.gz").open("r+b") as file:
        file.seek(-50_000, os.SEEK_END)
        file.write(b"damaged")
    status, said = billfold("restore", backups, into=tmp_path / "refused")
    assert (status, "The backup is damaged" in said) == (1, True), said
    assert not [*tmp_path.glob("refused*")]


def test_a_backup_folder_inside_the_backed_up_folders_is_refused(billfold, tmp_path):
    state, documents = tmp_path / "state", tmp_path / "documents"
    (state / "postgres").mkdir(parents=True)
    for folder in (state / "backups", documents / "backups", tmp_path):
        status, said = billfold("backup", folder, "--continuous", BILLFOLD_FILES_DIR=str(documents))
        assert (status, "is not apart from" in said) == (1, True), said
        assert not (folder / "wal").exists()


def day(number):
    return datetime(2026, 11, number, tzinfo=UTC)


def make_backup(folder, number):
    with folder.new(day(number)) as partial:
        about = Backup(
            label=partial.stem,
            began_at=day(number),
            ended_at=day(number),
            release="0.1.0",
            schema_version=1,
            postgres=MAJOR,
            environment="sandbox",
            key_check="",
            has_key=False,
            first_segment=f"{1:08X}{0:08X}{number:08X}",
            size_bytes=0,
        )
        write_about(partial, about)
    return about.label


def test_an_incomplete_backup_is_ignored_and_later_removed_without_touching_foreign_files(tmp_path, monkeypatch):
    folder = BackupFolder(tmp_path)
    (tmp_path / "photos.partial").mkdir()
    labels = [make_backup(folder, number) for number in (1, 2, 3)]

    def interrupted(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            folder.remove_older(1)
    assert [each.label for each in folder.list_backups()] == labels[1:]
    assert [each.label for each in folder.remove_older(1)] == [labels[1]]

    newest = make_backup(folder, 4)
    assert {each.name for each in tmp_path.iterdir()} == {"photos.partial", labels[2], newest}


def test_wal_replay_of_many_days_is_given_hours(tmp_path, monkeypatch):
    data_dir, ran = tmp_path / "postgres", []
    data_dir.mkdir()
    (data_dir / "PG_VERSION").write_text(f"{MAJOR}\n")
    monkeypatch.setattr(ServerUser, "run", lambda _, *words, seconds: ran.append((words, seconds)))

    with pytest.raises(CliError, match="ended right after its start"):
        replay_log(data_dir, tmp_path / "wal", None)

    [(words, seconds)] = ran
    assert seconds > int(words[words.index("-t") + 1]) > timedelta(hours=12).total_seconds()

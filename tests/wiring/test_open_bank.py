"""Opening a bank in a database according to its settings."""

import stat
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest

from billfold.cli.context import CliError
from billfold.ledger.context import NoScreening
from billfold.payments.wires.rules.cut_offs import send_time
from billfold.platform.calendars import Calendars
from billfold.platform.settings.settings import Settings
from billfold.wiring.initialize import BankConfigMismatch
from billfold.wiring.open_bank import (
    MIN_BATCH_FOR_EXTRA_LANE,
    extra_lane_threshold,
    initialize_database,
    open_bank,
    policy_of,
)


@pytest.fixture
def settings(tmp_path):
    return replace(Settings(), state_dir=tmp_path)


@pytest.mark.parametrize(("workers", "crowd"), [(1, 1), (2, MIN_BATCH_FOR_EXTRA_LANE), (8, MIN_BATCH_FOR_EXTRA_LANE)])
def test_an_extra_lane_needs_a_larger_batch_when_several_processes_serve(workers, crowd):
    assert extra_lane_threshold(replace(Settings(), workers=workers)) == crowd


async def test_reinitializing_a_bank_without_a_seed_keeps_its_seed(settings, database_dsn):
    await initialize_database(replace(settings, seed=b"a seed"), database_dsn)
    await initialize_database(settings, database_dsn)
    async with open_bank(settings, database_dsn) as bank:
        assert bank.seed == b"a seed"
    with pytest.raises(BankConfigMismatch):
        await initialize_database(replace(settings, seed=b"another"), database_dsn)


async def test_opening_an_uninitialized_bank_is_refused_with_a_next_step(settings, database_dsn, empty_database_dsn):
    for dsn in (database_dsn, empty_database_dsn):
        with pytest.raises(CliError) as gap:
            async with open_bank(settings, dsn):
                pass
        assert "migrate up" in gap.value.next_step


async def test_all_processes_of_a_sandbox_share_its_stored_encryption_key(settings, database_dsn):
    await initialize_database(settings, database_dsn)
    async with open_bank(settings, database_dsn) as one, open_bank(settings, database_dsn) as two:
        assert two.vault.open(one.vault.seal(b"secret", b"here"), b"here") == b"secret"
    mode = stat.S_IMODE((settings.state_dir / "encryption.key").stat().st_mode)
    assert mode == 0o600


def test_a_bank_uses_the_hours_and_limits_of_its_settings():
    settings = replace(Settings(), wires_open=time(10), wire_cutoff=time(11), ach_review_above_cents=5)
    terms, calendars = policy_of(settings, NoScreening()), Calendars()
    assert terms.ach_review_above_cents == 5
    at_ten = datetime(2025, 6, 2, 14, tzinfo=UTC)
    for asked, leaves in (
        (at_ten - timedelta(hours=1), at_ten),
        (at_ten + timedelta(hours=1), at_ten + timedelta(days=1)),
    ):
        assert send_time(asked, calendars, terms.wire_hours, international=False) == leaves

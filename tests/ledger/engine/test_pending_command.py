"""The rows a command depends on are those of its commit, although they are read before."""

from datetime import timedelta
from uuid import UUID

import pytest
from tests.payments.on_us.test_routes import PATH, account, payee, requested_amount
from tests.support.whole_bank import engine_beside

from billfold.accounts.counterparties.commands import UpdateCounterparty
from billfold.http.admission import IdempotencyStore
from billfold.ledger.engine.write_batch import write_books
from billfold.platform import ids
from billfold.platform.clock import ClockState, wall_now
from billfold.platform.database.business_clock import read_clock, write_clock

pytestmark = pytest.mark.one_server  # which reads without locks
WRITES = "billfold.ledger.engine.engine.write_books"


@pytest.fixture
async def paid(partner_desk):
    """A transfer to a linked counterparty, as its body."""
    pocket, target = await partner_desk.funded(5_000_00), await partner_desk.pocket()
    linked = await payee(partner_desk, pocket, target)
    return pocket, {
        "type": "PEER_TO_PEER",
        "from_account": account(pocket),
        "amount": requested_amount(100_00),
        "counterparty_id": linked,
    }


@pytest.fixture
def before_write(monkeypatch):
    """Runs something once when a command is decided, before it is written."""

    def run(step):
        async def write_after(conn, *args, **options):
            monkeypatch.setattr(WRITES, write_books)
            await step()
            await write_books(conn, *args, **options)

        monkeypatch.setattr(WRITES, write_after)

    return run


async def test_a_transfer_to_a_counterparty_unlinked_while_it_is_decided_is_refused(partner_desk, paid, before_write):
    pocket, body = paid
    other = engine_beside(partner_desk.bank)
    unlinks = UpdateCounterparty(
        caller="test",
        key=ids.new(),
        customers=(UUID(pocket.customer),),
        counterparty_id=UUID(body["counterparty_id"]),
        unlink=True,
    )

    async def unlink():
        await other.start()
        await other.submit(unlinks)
        await other.stop()

    before_write(unlink)
    await partner_desk.refused("POST", PATH, body, status=422, code="counterparty-not-verified")
    assert (await partner_desk.counts())["transfer"] == 0


async def test_a_transfer_decided_before_the_clock_was_set_is_booked_at_the_new_time(partner_desk, paid, before_write):
    pool = partner_desk.bank.pool
    async with pool.acquire() as conn:
        clock = await read_clock(conn)
        assert clock is not None
        later = clock.at(wall_now()) + timedelta(hours=1)

    async def set_clock():
        async with pool.acquire() as conn, conn.transaction():
            await write_clock(conn, ClockState(later, wall_now(), frozen=True))

    before_write(set_clock)
    made = await partner_desk.post(PATH, paid[1])
    assert await pool.fetchval("SELECT created_at FROM transfer WHERE transfer_id = $1", UUID(made["id"])) == later


async def test_the_response_of_a_lone_transfer_is_in_the_commit_of_its_command(partner_desk, paid, monkeypatch):
    async def fail(*_):
        raise AssertionError("the response was to be kept by its command")

    monkeypatch.setattr(IdempotencyStore, "_store_all", fail)
    made = await partner_desk.post(PATH, paid[1])
    kept = await partner_desk.bank.pool.fetchrow(
        "SELECT k.status, k.xmin = t.xmin AS together FROM idempotency_key k, transfer t"
        " WHERE t.transfer_id = $1 ORDER BY k.claimed_at DESC LIMIT 1",
        UUID(made["id"]),
    )
    assert tuple(kept) == (201, True)
    assert await partner_desk.get(f"{PATH}{made['id']}/") == made


async def test_a_second_transfer_between_books_in_the_cache_reads_no_heads(partner_desk, paid, monkeypatch):
    await partner_desk.post(PATH, paid[1])
    monkeypatch.delattr("billfold.ledger.engine.engine.read_heads")
    monkeypatch.delattr("billfold.ledger.engine.engine.lock_heads")
    await partner_desk.post(PATH, paid[1])
    assert (await partner_desk.counts())["transfer"] == 2

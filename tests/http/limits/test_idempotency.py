"""Limits and keys shared by several processes over one database."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.support.whole_bank import VAULT

from benchmarks.replicated_servers import ReplicatedServers
from billfold.http import admission as admissions
from billfold.http.admission import AdmissionRequest, IdempotencyStore
from billfold.http.responses import HttpResponse
from billfold.migrations import runner
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import connect
from billfold.platform.database.pool import create_pool
from billfold.platform.errors import InvariantError

ANSWER = HttpResponse(201, "application/json", b'{"run":1}')


@pytest.fixture
async def pools(database_dsn):
    opened = [await create_pool(database_dsn, max_size=4) for _ in range(2)]
    yield opened
    for pool in opened:
        await pool.close()


@pytest.fixture
async def two(pools):
    """The admissions of two processes."""
    made = [IdempotencyStore(pool, VAULT, lease=timedelta(seconds=1)) for pool in pools]
    yield made
    for each in made:
        await each.close()


@pytest.fixture
def still(monkeypatch):
    """The wall clock stands in the middle of a minute."""
    now = wall_now().replace(second=30)
    monkeypatch.setattr(admissions, "wall_now", lambda: now)
    return now


def caller(*, rate=100, money=100):
    who = ids.new()
    return {"caller": who, "key_owner": who, "per_minute": rate, "money_per_minute": money}


def asked(who, *, key=None, fingerprint=b"one", claims=True, money=False, kind="all"):
    return AdmissionRequest(
        **who, key=key or ids.new(), fingerprint=fingerprint, claims=claims, moves_money=money, kind=kind
    )


def again(request, fingerprint):
    """Another request of the same caller under the same key."""
    return replace(request, fingerprint=fingerprint)


async def verdicts(requests):
    """Admit (admission, request) pairs at once and count what became of them."""
    answers = await asyncio.gather(*(one.admit(request) for one, request in requests))
    return Counter(answer.verdict for answer in answers)


async def test_two_processes_grant_exactly_the_limit_together(two, still):
    who = caller(rate=100)
    found = await verdicts([(two[n % 2], asked(who)) for n in range(150)])
    assert found == {"run": 100, "limited": 50}


async def test_two_processes_grant_exactly_the_limit_of_money_together(two, still):
    who = caller(rate=1000, money=60)
    found = await verdicts([(two[n % 2], asked(who, money=n % 3 > 0)) for n in range(150)])
    assert found == {"run": 60 + 50, "limited": 40}


async def test_callers_and_groups_of_operations_are_counted_apart(two, still):
    callers = [caller(rate=5) for _ in range(10)]
    found = await verdicts([(two[n % 2], asked(callers[n % 10])) for n in range(100)])
    assert found == {"run": 50, "limited": 50}
    who = caller(rate=5)
    asks = [(two[n % 2], asked(who, kind="pockets" if n % 3 else "trades")) for n in range(30)]
    assert await verdicts(asks) == {"run": 10, "limited": 20}


async def test_room_is_counted_down_until_the_minute_is_over(two, still):
    who = caller(rate=3)
    rooms = [(await two[0].admit(asked(who))).remaining for _ in range(4)]
    assert rooms == [2, 1, 0, 0]
    last = await two[1].admit(asked(who))
    assert last.verdict == "limited"
    assert last.resets_at == int(still.timestamp()) // 60 * 60 + 60


async def test_the_next_minute_begins_anew(two, still, monkeypatch):
    who = caller(rate=1)
    assert await verdicts([(two[0], asked(who)), (two[1], asked(who))]) == {"run": 1, "limited": 1}
    monkeypatch.setattr(admissions, "wall_now", lambda: still + timedelta(minutes=1))
    assert (await two[0].admit(asked(who))).verdict == "run"


@pytest.mark.parametrize("claims", [True, False])
async def test_a_key_beyond_the_limit_is_bound_and_its_request_runs_later(two, still, monkeypatch, claims):
    who = caller(rate=1)
    await two[0].admit(asked(who))
    refused = asked(who, claims=claims)
    assert (await two[0].admit(refused)).verdict == "limited"
    monkeypatch.setattr(admissions, "wall_now", lambda: still + timedelta(minutes=1))
    who = who | {"per_minute": 9}
    assert (await two[1].admit(asked(who, key=refused.key, fingerprint=b"two"))).verdict == "reused"
    assert (await two[1].admit(replace(refused, per_minute=9))).verdict == "run"


async def test_far_beyond_the_limit_no_key_is_written_down(two, still, pools):
    who = caller(rate=2)
    await verdicts([(two[n % 2], asked(who)) for n in range(30)])
    assert await pools[0].fetchval("SELECT count(*) FROM idempotency_key") == 4


async def test_a_key_is_its_owners_whoever_of_them_sends_it(two):
    who, key = caller(), ids.new()
    colleague = who | {"caller": ids.new()}
    assert await verdicts([(two[0], asked(who, key=key)), (two[1], asked(colleague, key=key))]) == {
        "run": 1,
        "running": 1,
    }
    assert (await two[0].admit(asked(colleague, key=key, fingerprint=b"two"))).verdict == "reused"


async def test_one_of_many_wins_a_key_across_processes(two):
    who, key = caller(), ids.new()
    found = await verdicts([(two[n % 2], asked(who, key=key)) for n in range(20)])
    assert found == {"run": 1, "running": 19}


async def test_another_process_replays_what_was_kept(two, pools):
    who, key = caller(), ids.new()
    request = asked(who, key=key)
    assert (await two[0].admit(request)).verdict == "run"
    assert (await two[1].admit(request)).verdict == "running"
    two[0].keep_response(request, ANSWER)
    await two[0]._stored.settle()
    assert ANSWER.body not in await pools[0].fetchval("SELECT response_body FROM idempotency_key")
    for one in two:
        again = await one.admit(request)
        assert (again.verdict, again.stored) == ("replay", ANSWER)
        assert (await one.admit(asked(who, key=key, fingerprint=b"two"))).verdict == "reused"


async def test_an_answer_that_was_moved_is_not_replayed(two, pools):
    first, second = asked(caller()), asked(caller())
    for request in (first, second):
        await two[0].admit(request)
        two[0].keep_response(request, ANSWER)
    await two[0]._stored.settle()
    swap = """UPDATE idempotency_key k SET response_body = o.response_body FROM idempotency_key o
 WHERE k.key = $1 AND o.key = $2"""
    await pools[0].execute(swap, first.key, second.key)
    with pytest.raises(InvariantError, match="moved"):
        await two[1].admit(first)


async def test_an_answer_is_known_at_once_where_it_was_given(two):
    request = asked(caller())
    await two[0].admit(request)
    two[0].keep_response(request, ANSWER)
    assert (await two[0].admit(request)).stored == ANSWER


async def test_a_read_is_kept_though_it_was_never_claimed(two, pools):
    request = asked(caller(), claims=False)
    assert await verdicts([(two[0], request), (two[1], request)]) == {"run": 2}
    assert await pools[0].fetchval("SELECT count(*) FROM idempotency_key") == 0
    two[0].keep_response(request, ANSWER)
    two[1].keep_response(request, HttpResponse(200, "text/plain", b"another"))
    await two[0]._stored.settle()
    assert (await two[0].admit(request)).stored is not None
    assert await pools[0].fetchval("SELECT count(*) FROM idempotency_key") == 1


async def test_a_read_is_not_kept_under_a_key_that_another_request_has_claimed(two):
    read = asked(caller(), claims=False)
    other = replace(again(read, b"two"), claims=True)
    assert (await two[0].admit(read)).verdict == "run"
    assert (await two[1].admit(other)).verdict == "run"
    two[0].keep_response(read, ANSWER)
    await two[0]._stored.settle()
    assert (await two[0].admit(other)).verdict == "running"


@pytest.mark.parametrize("claims", [True, False])
async def test_a_released_key_runs_again_and_stays_bound_to_its_request(two, claims):
    request = asked(caller(), claims=claims)
    await two[0].admit(request)
    await two[0].release(request)
    for one in two:
        assert (await one.admit(again(request, b"two"))).verdict == "reused"
    assert (await two[1].admit(request)).verdict == "run"


async def test_a_key_runs_again_when_its_lease_is_over_without_an_answer(two, pools):
    request = asked(caller())
    gone = IdempotencyStore(pools[0], VAULT, lease=timedelta(seconds=1))
    await gone.admit(request)
    await gone.close()
    assert (await two[1].admit(request)).verdict == "running"
    other = again(request, b"two")
    assert (await two[1].admit(other)).verdict == "reused"
    await asyncio.sleep(1.1)
    assert (await two[1].admit(other)).verdict == "reused"
    assert (await two[1].admit(request)).verdict == "run"


async def test_a_key_is_forgotten_after_a_day(two, pools, monkeypatch):
    request = asked(caller())
    await two[0].admit(request)
    two[0].keep_response(request, ANSWER)
    await two[0]._stored.settle()
    later = wall_now() + timedelta(hours=24, seconds=1)
    monkeypatch.setattr(admissions, "wall_now", lambda: later)
    other = again(request, b"two")
    assert (await two[1].admit(other)).verdict == "run"


async def test_many_keys_in_one_batch_are_all_claimed(two, pools):
    who = caller(rate=5000)
    found = await verdicts([(two[n % 2], asked(who)) for n in range(1200)])
    assert found == {"run": 1200}
    assert await pools[0].fetchval("SELECT count(*) FROM idempotency_key") == 1200


async def test_a_connection_that_breaks_is_replaced(two, pools):
    request = asked(caller())
    await two[0].admit(request)
    await pools[1].execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND datname = current_database()"
    )
    assert (await two[0].admit(asked(caller()))).verdict == "run"


@pytest.fixture
def servers(tmp_path_factory):
    """A primary and a replica that does not wait for it."""
    made = ReplicatedServers(tmp_path_factory.mktemp("replicated"), durable=False)
    made.start(synchronous=False)
    yield made
    made.stop()


async def test_an_answer_to_what_was_lost_with_the_primary_is_not_kept_by_the_next_one(servers):
    dsn = servers.address("billfold")
    conn = await connect(dsn)
    await runner.up(conn)
    await conn.close()
    pool = await create_pool(dsn)
    store = IdempotencyStore(pool, VAULT, lease=timedelta(0))
    stored, repeated = asked(caller()), asked(caller())
    for request in (stored, repeated):
        assert (await store.admit(request)).verdict == "run"
    servers.kill_primary()
    for request in (stored, repeated):
        store.keep_response(request, ANSWER)
    again = asyncio.create_task(store.admit(repeated))  # while its answer is in memory alone
    await asyncio.to_thread(servers.promote_replica)
    assert (await again).verdict == "running"
    await store._stored.settle()
    for request in (stored, repeated):
        assert (await store.admit(request)).verdict == "run"
    await store.close()
    await pool.close()

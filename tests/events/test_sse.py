"""The event stream over both APIs: in order, resumable, and only while the token is valid."""

from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from tests.support.databases import as_owner
from tests.support.events import Listener
from tests.support.world import token_for

from billfold.events import broadcaster
from billfold.platform import ids

PATH = "/api/v1/events/stream/"


@pytest.fixture
def listen(customer_app, customer_world):
    """Open streams with `listen(desk, query)`."""

    def open_stream(customer_desk, query="", *, token=0, headers=None):
        if customer_desk is customer_world:
            sent = customer_world.client.headers(PATH, b"")
            return Listener(customer_world.app, "acme.localhost", sent | (headers or {}), query=query)
        token = customer_desk.token if token == 0 else token
        sent = customer_desk.headers("GET", PATH, token) | (headers or {})
        return Listener(customer_app, urlsplit(customer_desk.base).netloc, sent, query=query)

    return open_stream


async def test_an_event_is_streamed_when_it_is_raised(customer_world, customer_desk, listen):
    pocket = await customer_desk.pocket()
    await customer_world.wire(pocket, 100_00)
    async with listen(customer_desk) as mine, listen(customer_world) as partners:
        first = [await each.message() for each in (mine, partners)]
        assert [(event, data["sequence"]) for _, event, data in first] == [("heartbeat", 3)] * 2
        await customer_world.wire(pocket, 200_00)
        for stream, sees_himself in ((mine, True), (partners, False)):
            number, event, data = await stream.event()
            assert (number, event) == ("4", None)
            assert (data["sequence"], data["previous_sequence"]) == (4, 3)
            assert data["event_type"] == "transfers.wire.in.success"
            assert ("customer_id" in data) is sees_himself


async def test_an_event_stream_resumes_after_the_last_event_id(customer_world, customer_desk, listen):
    pocket = await customer_desk.pocket()
    for _ in range(4):
        await customer_world.wire(pocket, 100_00)
    async with listen(customer_desk, "after_sequence=0", headers={"last-event-id": "4"}) as stream:
        assert [(await stream.event())[0] for _ in range(2)] == ["5", "6"]
        await customer_world.wire(pocket, 100_00)
        assert (await stream.event())[2]["previous_sequence"] == 6
    async with listen(customer_desk, "after_sequence=99") as stream:
        # A sequence that was never reached counts as now.
        assert (await stream.message())[2]["sequence"] == 7
        await customer_world.wire(pocket, 1_00)
        assert (await stream.event())[0] == "8"


async def test_an_event_stream_has_the_same_events_as_the_list(customer_world, customer_desk, listen):
    pocket, other = await customer_desk.pocket(), await customer_desk.pocket()
    await customer_world.wire(pocket, 9_000_00)
    await customer_world.ach(pocket, 100_00)
    await customer_world.transfer(pocket, other, 50_00)
    async with listen(customer_desk, "after_sequence=0&follow=false") as stream:
        told = []
        while (message := await stream.event()) is not None and message[1] != "end":
            told.append(message[2])
    async with listen(customer_desk, f"after_sequence=0&follow=false&object_id={pocket.id}") as stream:
        assert (await stream.event())[2]["object_id"] == pocket.id
        assert (await stream.event())[1] == "end"
    listed = (await customer_desk.get("/api/v1/events/", {"order": "asc"}))["items"]
    assert told == [each["event"] for each in listed]
    assert [each["sequence"] for each in told] == [*range(1, 8)]


async def test_only_the_requested_kinds_are_streamed_without_a_gap(
    customer_world, customer_desks, customer_desk, listen
):
    pocket, other = await customer_desk.pocket(), await customer_desk.pocket()
    stranger = await customer_desks()
    await customer_world.wire(pocket, 9_000_00)
    query = "event_type[]=transfers.on-us.success&after_sequence=0"
    async with listen(customer_desk, query) as stream:
        for cents in (1_00, 2_00):
            await customer_world.wire(pocket, 100_00)
            await customer_world.transfer(pocket, other, cents)
        links = [(await stream.event())[2] for _ in range(2)]
        assert [(each["previous_sequence"], each["sequence"]) for each in links] == [(0, 7), (7, 9)]
    async with listen(stranger, "after_sequence=0&follow=false") as stream:
        assert (await stream.event())[1] == "end"


async def test_an_event_stream_ends_when_its_token_expires(bank, customer_desk, listen):
    token = await token_for(bank, customer_desk.team, age=timedelta(seconds=899))
    async with listen(customer_desk, token=token) as stream:
        assert (await stream.event())[1:] == ("end", {"reason": "token-expired", "sequence": 0})
        assert await stream.message() is None


async def test_opening_a_stream_requires_the_scope_and_a_free_slot(bank, customer_desk, listen, monkeypatch):
    token = await token_for(bank, customer_desk.team, scopes=("pockets.read",))
    async with listen(customer_desk, token=token) as stream:
        await stream._chunks.get()
        assert stream.status == 403
    async with listen(customer_desk, token=None) as stream:
        await stream._chunks.get()
        assert stream.status == 401
    monkeypatch.setattr(broadcaster, "LISTENERS_PER_READER_MAX", 1)
    async with listen(customer_desk) as stream:
        await stream.message()
        await customer_desk.refused("GET", PATH, status=429, code="too-many-streams")
    await customer_desk.ask("GET", PATH, status=200, filters={"follow": "false"})


async def test_a_simulated_event_is_streamed_without_a_sequence(customer_world, customer_desk, listen):
    event = {
        "event_id": str(ids.new()),
        "event_type": "trades.maturity",
        "timestamp": "2025-06-02T09:00:00-04:00",
        "customer_id": customer_desk.team.customer,
        "payload": {"trade_id": str(ids.new()), "pocket_id": str(ids.new()), "cusip": "912797PX6"},
    }
    async with listen(customer_desk) as stream:
        await stream.message()
        await customer_world.ask("POST", "/api/v1/sandbox/webhook/", event, status=202)
        number, _, data = await stream.event()
        assert number is None
        assert data["sequence"] is data["previous_sequence"] is None
        assert data["payload"] == event["payload"]
    assert (await customer_desk.get("/api/v1/events/"))["items"] == []


async def test_a_slow_stream_reader_falls_back_to_the_log_without_gaps(
    customer_world, customer_desk, listen, monkeypatch
):
    monkeypatch.setattr(broadcaster, "CHANNEL_EVENTS_MAX", 2)
    monkeypatch.setattr(broadcaster, "PAGE_SIZE", 2)
    pocket = await customer_desk.pocket()
    async with listen(customer_desk) as stream:
        await stream.message()
        for _ in range(7):
            await customer_world.wire(pocket, 1_00)
        assert [(await stream.event())[0] for _ in range(7)] == list("3456789")


async def test_an_invalid_event_stream_query_is_refused(customer_desk):
    for query, place in (
        ({"after_sequence": "-1"}, "query.after_sequence"),
        ({"after_sequence": "x"}, "query.after_sequence"),
        ({"after_sequence": "9" * 19}, "query.after_sequence"),
        ({"event_type[]": "proofs.daily-root.published"}, "query.event_type[]"),
        ({"follow": "perhaps"}, "query.follow"),
        ({"since": "2025-06-02"}, "query.since"),
    ):
        await customer_desk.invalid("GET", PATH, loc=place, filters=query)
    headers = {"last-event-id": "latest"}
    await customer_desk.invalid("GET", PATH, loc="header.last-event-id", headers=headers)


@pytest.mark.parametrize(
    "ending",
    [
        "UPDATE membership SET status = 'DEACTIVATED', changed_at = now() WHERE user_id = $1",
        "DELETE FROM access_token WHERE user_id = $1",
        "UPDATE access_token SET expires_at = now() WHERE user_id = $1",
        "UPDATE access_token SET scopes = '{pockets.read}' WHERE user_id = $1",
        "UPDATE user_account SET status = 'DEACTIVATED' WHERE user_id = $1",
        "UPDATE oauth_client SET revoked_at = now() WHERE $1::uuid IS NOT NULL",
    ],
    ids=["deactivated", "revoked", "expired", "without its scope", "shut out", "of a revoked client"],
)
async def test_an_event_stream_ends_immediately_when_its_token_is_revoked(
    bank, customer_world, customer_desk, listen, ending
):
    pocket = await customer_desk.pocket()
    async with listen(customer_desk) as stream:
        await stream.message()
        await as_owner(bank, ending, customer_desk.team.user_id)
        assert (await stream.event())[1] == "end"
        await customer_world.wire(pocket, 100_00)
        assert await stream.message() is None

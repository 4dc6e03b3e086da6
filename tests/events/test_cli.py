"""The export of the event log."""

import json

from billfold.events import cli


def lines(printed):
    """Return the events among what was printed."""
    return [json.loads(line) for line in printed.out.splitlines() if line.startswith(b"{")]


async def test_the_export_has_every_event_once_and_continues_after_a_sequence(world, capsysbinary):
    pocket, other = await world.funded(1_000_00), await world.funded(1_000_00)
    await cli.export(world.bank, after=0)
    events = lines(capsysbinary.readouterr())
    assert len(events) == await world.bank.pool.fetchval("SELECT count(*) FROM event")
    assert [each["partner_sequence"] for each in events] == [1, 2]
    assert {each["payload"]["service_account_id"] for each in events} == {pocket.id, other.id}
    await cli.export(world.bank, after=events[0]["global_sequence"])
    assert lines(capsysbinary.readouterr()) == events[1:]

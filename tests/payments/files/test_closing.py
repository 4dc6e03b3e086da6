"""A file with lines that can never be booked is closed by two operators."""

import asyncio
import json

import pytest
from msgspec.structs import replace
from tests.fixtures.cli import fetch
from tests.payments.ach.test_inbound_files import entry, file_of
from tests.payments.cli_bank import prepare
from tests.support.approvals import proposed
from tests.support.fedwire import changed

from billfold.dual_control.decisions import confirm
from billfold.identity.operators import Operator
from billfold.ledger.scheduler import run_scheduled_jobs
from billfold.payments.ach.inbound_files import AchFileProcessor
from billfold.payments.ach.nacha.writer import write_file
from billfold.payments.cards.settlement.inbound import CardSettlementFiles
from billfold.payments.fedwire.inbound_files import FedwireFileProcessor
from billfold.payments.files import retries, store
from billfold.payments.files.exchange import RailExchanges
from billfold.payments.files.retries import propose_close
from billfold.platform import ids
from billfold.platform.errors import InvalidInput, NotFound, Refused
from billfold.verify.runner import verify_bank

__all__ = ["prepare"]
OLGA, OTTO = (Operator.of_command_line(name) for name in ("olga", "otto"))
BY_HAND = "Returned by hand in FedLine"


async def close(bank, file):
    """Close a file by two operators and the worker; return the closed file."""
    proposal = await propose_close(bank, file.file_id, reason=BY_HAND, by=OLGA)
    await confirm(bank, proposal.proposal_id, by=OTTO)
    await run_scheduled_jobs(bank, await bank.now())
    return await store.find_file(bank.pool, file.file_id)


@pytest.fixture
async def partly_booked_file(fedwire, holder):
    """A file with one booked payment, and one for another bank that cannot be booked."""
    account = await fedwire.account_of(holder)
    good = await fedwire.payment("good", account, 5_00)
    astray = changed(await fedwire.payment("astray", account, 7_00), receiver="021000021")
    raw = await fedwire.drop("both.xml", good, astray)
    (waiting,) = await retries.list_failing(fedwire.bank.pool)
    return raw, astray, waiting


async def test_a_wire_file_is_closed_by_two_operators_with_a_reason(fedwire, partly_booked_file):
    _, _, waiting = partly_booked_file
    with pytest.raises(InvalidInput):
        await propose_close(fedwire.bank, waiting.file_id, reason=" ", by=OLGA)
    proposal = await propose_close(fedwire.bank, waiting.file_id, reason=BY_HAND, by=OLGA)
    assert "both.xml, of which this is never booked: line 4: InstdAgt" in proposal.words
    with pytest.raises(Refused, match="another operator"):
        await confirm(fedwire.bank, proposal.proposal_id, by=OLGA)
    with pytest.raises(Refused, match="open proposal"):
        await propose_close(fedwire.bank, waiting.file_id, reason=BY_HAND, by=OTTO)
    assert await retries.list_failing(fedwire.bank.pool) == [waiting]


async def test_a_closed_wire_file_keeps_its_booked_and_stuck_messages(fedwire, partly_booked_file):
    _, astray, waiting = partly_booked_file
    closed = await close(fedwire.bank, waiting)
    told = json.loads(closed.report or "")
    outcomes = [each["outcome"] for each in told["items"]]
    assert (closed.state, told["state"], outcomes) == ("PROCESSED", "PROCESSED", ["COMPLETED"])
    assert [(each["line"], each["trace"]) for each in told["stuck"]] == [(4, astray.message.message_id)]
    closer = {name: told["closed"][name] for name in ("reason", "proposed_by", "decided_by")}
    assert closer == {"reason": BY_HAND, "proposed_by": "olga", "decided_by": "otto"}
    assert json.loads((fedwire.folder / "done" / "both.xml.report.json").read_text()) == told
    assert await retries.list_failing(fedwire.bank.pool) == []
    with pytest.raises(Refused, match="nothing of it waits") as refused:
        await propose_close(fedwire.bank, waiting.file_id, reason=BY_HAND, by=OLGA)
    assert refused.value.code == "file-not-waiting"
    await fedwire.prove()


async def test_a_repeated_closed_wire_file_or_message_is_a_duplicate(fedwire, partly_booked_file):
    raw, astray, waiting = partly_booked_file
    await close(fedwire.bank, waiting)
    legs = await fedwire.legs()
    await fedwire.drop("again.xml", raw)
    assert "The same content arrived as both.xml" in fedwire.refused("again.xml")[0][2]
    # What was returned by hand is not booked either when it comes in another file and fits now.
    await fedwire.drop("mended.xml", changed(astray, receiver="061199992"))
    assert "came in the file both.xml already" in fedwire.refused("mended.xml")[0][2]
    assert await fedwire.legs() == legs
    await fedwire.prove()


async def test_a_file_booked_before_its_closing_is_confirmed_is_unchanged(fedwire, holder):
    paid = await fedwire.payment("one", await fedwire.account_of(holder))
    late = replace(
        paid, message=replace(paid.message, settles_on=fedwire.bank.calendars.add_fed_days(paid.message.settles_on, 2))
    )
    other = await fedwire.payment("two", await fedwire.account_of(holder))
    await fedwire.drop("early.xml", late, other)
    (waiting,) = await retries.list_failing(fedwire.bank.pool)
    proposal = await propose_close(fedwire.bank, waiting.file_id, reason=BY_HAND, by=OLGA)
    await fedwire.clock.advance_business_days(2)
    await fedwire.room.gate.process(fedwire.bank, waiting)
    assert fedwire.taken("early.xml") == ["COMPLETED"] * 2
    await confirm(fedwire.bank, proposal.proposal_id, by=OTTO)
    await run_scheduled_jobs(fedwire.bank, await fedwire.bank.now())
    done = await store.find_file(fedwire.bank.pool, waiting.file_id)
    assert (done.state, "closed" in json.loads(done.report or "")) == ("PROCESSED", False)
    await fedwire.prove()


@pytest.mark.parametrize("processor", [FedwireFileProcessor(), AchFileProcessor(), CardSettlementFiles()])
async def test_a_file_that_fails_as_a_whole_can_be_closed_on_every_rail(bank, processor, monkeypatch):
    async def fail(*_):
        reason = "nobody can read it"
        raise RuntimeError(reason)

    monkeypatch.setattr(type(processor), "book", fail)
    exchange = bank.ports[RailExchanges].of(processor.rail)
    await exchange.network_side().transmit("odd", b"odd")
    await processor.process_all(bank)
    (waiting,) = await retries.list_failing(bank.pool)
    closed = await close(bank, waiting)
    told = json.loads(closed.report or "")
    assert (closed.state, told["closed"]["reason"], "nobody can read it" in told["error"]) == (
        "PROCESSED",
        BY_HAND,
        True,
    )
    assert (await exchange.list_inbound(), await processor.process_all(bank)) == ([], 0)
    assert await retries.list_failing(bank.pool) == []
    async with bank.pool.acquire() as conn:
        report = await verify_bank(conn, market=bank.market, vault=bank.vault)
    assert report.is_clean, report.findings[:3]


async def test_closing_an_unknown_file_raises_not_found(bank):
    with pytest.raises(NotFound):
        await propose_close(bank, ids.new(), reason=BY_HAND, by=OLGA)


def test_doctor_does_not_report_a_file_closed_by_two_operators(billfold, founded, prepare, tmp_path, database_dsn):
    folder = tmp_path / "rails" / "ach" / "inbox"
    folder.mkdir(parents=True)
    (folder / "odd.ach").write_bytes(write_file(file_of(entry(1), entry(2, amount=6_66))))
    asyncio.run(fetch(database_dsn, "ALTER TABLE suspense_item ADD CONSTRAINT odd CHECK (amount <> 666)"))
    billfold("files", "ingest")
    (file_id,) = [word for word in billfold("files", "list")[1].split() if word.count("-") == 4]
    assert "`close` it" in billfold("doctor")[1]
    made = proposed(billfold("files", "close", file_id, "--reason", BY_HAND, BILLFOLD_OPERATOR="olga"))
    assert "Close ACH file odd.ach" in billfold("proposals", "list")[1]
    status, said = billfold("proposals", "confirm", made, BILLFOLD_OPERATOR="Olga")
    assert (status, "same-operator" in said) == (1, True), said
    assert billfold("proposals", "confirm", made, BILLFOLD_OPERATOR="otto")[0] == 0

    async def work(bank):
        await run_scheduled_jobs(bank, await bank.now())

    prepare(work)
    assert "rail files none fails" in billfold("doctor")[1]
    assert "waits" not in billfold("files", "list")[1]
    said = billfold("files", "show", file_id)[1]
    assert ('"stuck"' in said, f'"reason": "{BY_HAND}"' in said, '"decided_by": "otto"' in said) == (True, True, True)
    assert billfold("files", "close", file_id, "--reason", BY_HAND)[0] == 1
    assert billfold("verify")[0] == 0

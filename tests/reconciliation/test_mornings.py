"""Mornings on a real database: statements are matched, breaks are opened, and close themselves or by two people."""

import msgspec
import pytest
from tests.reconciliation.books import MONDAY, THURSDAY, TUESDAY, WEDNESDAY, recap_line
from tests.reconciliation.files import BOMB, camt053, entry, recap, semt002
from tests.support.whole_bank import expect_clean
from tests.trading.desk_by_hand import OLGA, OTTO

from billfold.dual_control.decisions import confirm
from billfold.identity.operators import Operator
from billfold.ledger.types import Origin, Rail
from billfold.platform.errors import InvalidInput, Refused
from billfold.reconciliation import decisions, worker
from billfold.reconciliation.types import Resolution

WIRED = 100_000_00


@pytest.fixture
async def fills(morning, new_holder):
    """Two fills of Monday, of which Tuesday has settled; Monday's wire has."""
    fills = await morning.buy(await new_holder(), WIRED)
    await morning.close(TUESDAY)
    return fills


def monday(*more, cents=WIRED, **options):
    return camt053(MONDAY, [entry(cents, MONDAY, "W-1", code="FEDWIRE"), *more], **options)


def tuesday(fills, *more, opening=WIRED, **options):
    paid = [entry(-each.money, TUESDAY, f"DVP-{each.dealer}") for each in fills]
    return camt053(TUESDAY, [*paid, *more], opening=opening, **options)


def units_of(fills):
    return {fills[0].cusip: sum(each.units for each in fills)}


async def test_days_on_which_everything_matches_leave_no_break(bank, morning, fills):
    for content in (
        monday(),
        semt002(MONDAY, {}),
        tuesday(fills),
        semt002(TUESDAY, units_of(fills)),
        recap(recap_line(fills[0])),
    ):
        file = await morning.arrive(content)
        assert file.state == "PROCESSED", file.report
    assert await morning.look(after=TUESDAY) == 0
    assert await morning.breaks() == []
    days = await bank.pool.fetch("SELECT source, day, lines, matched FROM reconciled_day ORDER BY source, day")
    assert [tuple(each) for each in days] == [
        ("CUSTODIAN", MONDAY, 0, 0), ("CUSTODIAN", TUESDAY, 1, 1), ("DEALER", MONDAY, 1, 1),
        ("RESERVE", MONDAY, 1, 1), ("RESERVE", TUESDAY, 2, 2),
    ]  # fmt: skip
    await expect_clean(bank)


async def test_each_difference_of_the_reserve_is_a_break_with_both_sides(morning, fills):
    await morning.arrive(monday(cents=WIRED - 1))
    assert await morning.breaks() == [("DIFFERENT_AMOUNT", WIRED - 1, WIRED)]
    first = [entry(-fills[0].money, TUESDAY)]
    odd = entry(100, TUESDAY, currency="EUR"), entry(100, TUESDAY, status="PDNG")
    lines = [*first, entry(777, TUESDAY, "X-1", code="FEDWIRE"), *odd]
    await morning.arrive(camt053(TUESDAY, lines, opening=WIRED))
    found = await morning.rows()
    assert sorted((each.cause, each.stated, each.booked) for each in found if each.day == TUESDAY) == [
        ("BALANCE", WIRED, WIRED - 1),
        ("MISSING_LINE", None, -fills[1].money),
        ("UNKNOWN_LINE", 777, None),
        ("UNREADABLE_LINE", None, None),
        ("UNREADABLE_LINE", None, None),
    ]
    assert {each.detail for each in found if each.cause == "UNREADABLE_LINE"} == {
        "its currency is EUR",
        "its status is PDNG: only booked entries are reconciled",
    }


async def test_a_line_that_comes_a_day_later_closes_its_break(morning, fills):
    await morning.arrive(monday())
    await morning.arrive(tuesday(fills[:1]))
    assert await morning.breaks() == [("MISSING_LINE", None, -fills[1].money)]
    await morning.close(WEDNESDAY)
    left = WIRED - fills[0].money
    await morning.arrive(camt053(WEDNESDAY, [entry(-fills[1].money, WEDNESDAY)], opening=left))
    assert await morning.breaks() == []
    [row] = await morning.rows("CLOSED")
    assert row.resolution == Resolution.MATCHED


async def test_holdings_short_of_one_unit_are_a_break_until_they_agree(morning, fills):
    [(cusip, units)] = units_of(fills).items()
    await morning.arrive(semt002(TUESDAY, {cusip: units - 1}))
    await morning.close(WEDNESDAY)
    await morning.arrive(semt002(WEDNESDAY, {cusip: units - 2}))
    [row] = await morning.rows()
    assert (row.cause, row.subject, row.stated, row.booked) == ("DIFFERENT_UNITS", cusip, units - 2, units)
    assert row.day == TUESDAY, "the age counts from when it was first seen"
    await morning.close(THURSDAY)
    await morning.arrive(semt002(THURSDAY, {cusip: units}))
    assert await morning.breaks() == []


async def test_a_report_within_the_day_opens_no_breaks_and_names_what_is_unknown(morning, fills):
    paid = [entry(-each.money, TUESDAY) for each in fills]
    file = await morning.arrive(camt053(TUESDAY, [*paid, entry(5, TUESDAY, "X-1")], within=True))
    assert file.state == "PROCESSED"
    [told] = msgspec.json.decode(file.report)["items"]
    assert (told["matched"], told["unknown"]) == (2, [{"line": 3, "amount": 5, "reference": "X-1"}])
    assert await morning.breaks() == []
    assert (await morning.arrive(tuesday(fills))).state == "PROCESSED", "the statement of the day comes all the same"


async def test_a_recap_is_compared_term_by_term(morning, fills):
    other = recap_line(fills[0], reference="T-9")
    wrong = recap_line(fills[0], money=f"{(fills[0].money + 1) / 100:.2f}")
    unreadable = recap_line(fills[0], cusip="912797")
    await morning.arrive(recap(wrong, other, unreadable))
    assert sorted(await morning.breaks()) == [
        ("DIFFERENT_TERMS", fills[0].money + 1, fills[0].money),
        ("UNKNOWN_LINE", fills[0].money, None),
        ("UNREADABLE_LINE", None, None),
    ]


async def test_a_trade_that_a_dealer_reports_late_is_compared_with_the_next_recap(morning, fills):
    missing = recap_line(fills[0], reference="T-8")
    await morning.arrive(recap(missing))
    assert sorted(each[0] for each in await morning.breaks()) == ["MISSING_LINE", "UNKNOWN_LINE"]
    later = recap_line(fills[0], reference="T-9", traded_at="2025-06-03 10:31")
    file = await morning.arrive(recap(later, recap_line(fills[0])))
    assert file.state == "PROCESSED", file.report
    assert [each[0] for each in await morning.breaks()] == ["UNKNOWN_LINE", "UNKNOWN_LINE"]


async def test_a_day_that_differs_too_much_takes_no_other_day_of_its_file_with_it(morning, fills, monkeypatch):
    monkeypatch.setattr(worker, "BREAKS_MAX", 1)
    odd = tuesday(fills, entry(1, TUESDAY, "A", code="FEDWIRE"), entry(2, TUESDAY, "B", code="FEDWIRE"))
    both = monday().replace(
        b"</BkToCstmrStmt>", odd[odd.index(b"<Stmt>") : odd.index(b"</BkToCstmrStmt>")] + b"</BkToCstmrStmt>"
    )
    file = await morning.arrive(both)
    assert "differs in 2 lines" in file.report
    assert file.state != "REFUSED"
    assert await morning.breaks() == []


async def test_a_day_without_a_statement_is_a_break_that_the_statement_closes(morning, fills):
    await morning.arrive(monday())
    await morning.arrive(semt002(TUESDAY, units_of(fills)))
    assert await morning.look(6, after=TUESDAY) == 1, "the recap of Monday; Tuesday's statements may still come"
    await morning.look(8, after=TUESDAY)
    rows = await morning.rows()
    assert [(each.cause, each.source, each.day) for each in rows] == [
        ("NO_STATEMENT", "DEALER", MONDAY),
        ("NO_STATEMENT", "RESERVE", TUESDAY),
    ]
    assert await morning.look(9, after=TUESDAY) == 0
    await morning.arrive(tuesday(fills))
    await morning.arrive(recap(recap_line(fills[0])))
    assert await morning.breaks() == []


async def test_the_first_statement_is_compared_with_the_ledger_also_after_a_day_without_one(morning, fills):
    await morning.look(8, after=TUESDAY)
    await morning.close(WEDNESDAY)
    await morning.arrive(camt053(WEDNESDAY, [], opening=WIRED))
    assert ("BALANCE", WIRED, WIRED - sum(each.money for each in fills)) in await morning.breaks()


async def test_a_statement_of_a_day_that_is_not_closed_waits_for_its_close(morning, fills):
    await morning.arrive(monday())
    file = await morning.arrive(camt053(WEDNESDAY, [], opening=WIRED))
    assert (file.state, "has not closed 2025-06-04" in file.report) == ("ARRIVED", True)
    await morning.close(WEDNESDAY)
    await morning.look(after=WEDNESDAY)
    assert {each.state for each in await morning.files()} == {"PROCESSED"}


def paged(content, *, number=1, is_last=1):
    """Return a file that is one page of a statement."""
    page = f"<StmtPgntn><PgNb>{number}</PgNb><LastPgInd>{is_last}</LastPgInd></StmtPgntn>"
    return content.replace(b"<Stmt>", b"<Stmt>" + page.encode())


def twice(content):
    """Return a file whose statement is there twice."""
    one = content[content.index(b"<Stmt>") : content.index(b"</BkToCstmrStmt>")]
    return content.replace(one, one + one)


async def test_files_that_are_no_statement_of_ours_are_refused_and_others_go_on(morning, fills):
    refused = {
        monday(account="999"): "which is not the bank's",
        semt002(MONDAY, {}, account="OTHER"): "which is not the bank's",
        recap(recap_line(fills[0], dealer="nobody")): "which is not the bank's",
        BOMB: "document type",
        b"<Document": "Start Tag",
        b'<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.054.001.08"/>': "is no camt.053",
        monday().replace(b"<Cd>OPBD</Cd>", b"<Cd>INFO</Cd>"): "lacks the opening",
        twice(monday()): "two statements of one account and day",
        monday().replace(b"</Stmt>", b"<Bal/></Stmt>").replace(b'Ccy="USD">0.00', b'Ccy="EUR">0.00'): "currency is EUR",
        paged(monday(), number=2): '"PgNb"',
        paged(monday(), is_last=0): '"LastPgInd"',
        b"dealer,reference\n": "is missing",
        b"\xff\xfe": "UTF-8",
        b"": "must begin with a line",
    }
    for content, reason in refused.items():
        file = await morning.arrive(content)
        assert (file.state, reason in file.report) == ("REFUSED", True), file.report
    first = await morning.arrive(monday(), "first.xml")
    assert first.state == "PROCESSED"
    with pytest.raises(InvalidInput, match=r"arrived as first.xml"):
        await morning.arrive(monday(), "again.xml")
    second = await morning.arrive(monday(entry(5, MONDAY)))
    assert (second.state, "is a second statement" in second.report) == ("REFUSED", True)
    assert await morning.breaks() == []


async def test_an_unknown_line_is_held_in_suspense_and_the_next_close_closes_its_break(bank, morning, fills):
    await morning.arrive(monday(entry(250_00, MONDAY, "W-2", code="FEDWIRE")))
    [row] = await morning.rows()
    proposal = await decisions.propose_hold(bank, row.break_id, Rail.WIRE, reason="no owner yet", by=OLGA)
    with pytest.raises(Refused, match=r"another operator confirms"):
        await confirm(bank, proposal.proposal_id, by=OLGA)
    await morning.confirm(proposal)
    assert len(await morning.rows()) == 1, "until the ledger has it"
    await morning.close(WEDNESDAY)
    await morning.arrive(camt053(WEDNESDAY, [], opening=0))
    assert ("UNKNOWN_LINE", 250_00, None) not in await morning.breaks()
    await expect_clean(bank)


async def test_two_people_close_a_break_by_a_posting_to_the_losses(bank, morning, fills):
    await morning.arrive(monday(entry(-25_00, MONDAY, "FEE-1")))
    [row] = await morning.rows()
    proposal = await decisions.propose_close(bank, row.break_id, Resolution.LOSSES, reason="account fee", by=OLGA)
    assert "Close break by posting to losses" in proposal.words
    outcome = await morning.confirm(proposal)
    assert await morning.breaks() == []
    posted = await bank.pool.fetchval("SELECT sum(debits - credits)::bigint FROM account WHERE kind = 'losses'")
    assert posted == 25_00
    await morning.arrive(tuesday(fills, opening=WIRED - 25_00))
    assert await morning.breaks() == [], "its own posting is expected of no statement"
    with pytest.raises(Refused, match=r"was closed"):
        await decisions.propose_close(bank, row.break_id, Resolution.EXPLAINED, reason="again", by=OLGA)
    assert outcome["status"] == "CLOSED"
    await expect_clean(bank)


async def test_a_posting_that_does_not_fit_its_cause_is_refused(bank, morning, fills):
    await morning.look(8, after=TUESDAY)
    row = next(each for each in await morning.rows() if each.source == "RESERVE")
    with pytest.raises(Refused, match=r"nothing to post"):
        await decisions.propose_close(bank, row.break_id, Resolution.LOSSES, reason="why not", by=OLGA)
    with pytest.raises(Refused, match=r"nothing to hold"):
        await decisions.propose_hold(bank, row.break_id, Rail.WIRE, reason="why not", by=OLGA)
    proposal = await decisions.propose_close(bank, row.break_id, Resolution.EXPLAINED, reason="by fax", by=OLGA)
    await morning.confirm(proposal)
    [closed] = [each for each in await morning.rows("CLOSED") if each.break_id == row.break_id]
    assert (closed.resolution, closed.note) == (Resolution.EXPLAINED, "by fax")


async def test_only_operators_with_the_power_import_own_and_close(bank, morning, fills):
    await morning.arrive(monday(entry(1, MONDAY)))
    [row] = await morning.rows()
    viewer = Operator(name="v", origin=Origin.operator(), role="VIEWER")
    approver = Operator(name="a", origin=Origin.operator(), role="APPROVER")
    for by in (viewer, approver):
        with pytest.raises(Refused, match=r"does not include"):
            await morning.arrive(tuesday(fills), by=by)
        with pytest.raises(Refused, match=r"does not include"):
            await decisions.assign(bank, row.break_id, owner="me", note="", by=by)
        with pytest.raises(Refused, match=r"does not include"):
            await decisions.propose_close(bank, row.break_id, Resolution.EXPLAINED, reason="x", by=by)
    await decisions.assign(bank, row.break_id, owner="Olga", note="Asked the bank.", by=OTTO)
    [row] = await morning.rows()
    assert (row.owner, row.note) == ("Olga", "Asked the bank.")
    await expect_clean(bank)

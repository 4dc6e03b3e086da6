"""Returns of our entries by other banks: valid ones are executed, the rest is listed or held for review."""

import pytest
from tests.payments.ach.sender import outcomes
from tests.support.raw_ach import changed, entry, header, international, returned

from billfold.accounts.counterparties.commands import UpdateCounterparty

UNKNOWN = "061199999999990"


COR = header("COR", 1)


@pytest.mark.parametrize(
    ("code", "data", "number", "type_"),
    [
        ("C01", "730055 119", "730055 119", None),
        ("C03", "021000021", None, None),
        ("C03", "            1918171614", "1918171614", None),
        ("C03", "0210000211918171614", None, None),
        ("C03", "021000022   1918171614", None, None),
        ("C06", "1918171614".ljust(20) + "99", None, None),
        ("C05", "37", None, "SAVINGS"),
        ("C06", " " * 20 + "37", None, "SAVINGS"),
        ("C06", "1918171614", "1918171614", None),
        ("C07", "000000000" + "1918171614".ljust(17) + "  ", "1918171614", None),
        ("C04", "VENDOR TWO INCORPORATED", None, None),
        ("C08", "021000021BIC", None, None),
        ("C09", "21345678", None, None),
        ("C13", "ADDENDA", None, None),
        ("C14", "IAT", None, None),
        ("C02", "021000022", None, None),
        ("C01", "", None, None),
        ("C05", "99", None, None),
    ],
)
async def test_a_notification_of_change_applies_its_valid_fields_and_is_noted(sender, code, data, number, type_):
    routing, before, kind = await sender.account()
    lines = entry("21", "550017788", 0, 1, addenda="1"), changed(code, sender.trace, 1, data=data)
    report = await sender.arrive(*lines, head=COR)
    assert outcomes(report) == [("NOTED", code)]
    assert await sender.noted() == code
    assert await sender.account() == (routing, number or before, type_ or kind)


@pytest.mark.parametrize("code", [f"C6{number}" for number in range(1, 10)])
async def test_a_refused_notification_of_change_is_listed(sender, code):
    lines = entry("21", "1", 0, 1, addenda="1"), changed(code, sender.trace, 1, data="291827364", refused="C010000116")
    report = await sender.arrive(*lines, head=COR)
    assert outcomes(report) == [("LISTED", code)]
    assert report["lines"][0]["reason"] == f"Our notification of change C01 0000116 was refused under {code}."
    assert await sender.noted() is None


@pytest.mark.parametrize(
    ("code", "head", "original", "outcome"),
    [
        ("C99", COR, None, "LISTED"),
        ("X 1", COR, None, "LISTED"),
        ("C01", COR, UNKNOWN, "FITS_NO_ENTRY"),
        ("C01", COR, "NO NUMBER", "FITS_NO_ENTRY"),
        ("C01", header("PPD", 1), None, "NOTED"),
    ],
)
async def test_an_unmatched_notification_of_change_is_listed(sender, code, head, original, outcome):
    lines = entry("21", "1", 0, 1, addenda="1"), changed(code, original or sender.trace, 1, data="1918171614")
    assert outcomes(await sender.arrive(*lines, head=head)) == [(outcome, code)]


async def test_a_notification_of_change_for_an_iat_entry_is_noted(sender):
    before = await sender.account()
    (line, *_) = international(0, 1, "1918171614", code="21")
    head = header("COR", 1, name="IATCOR")
    report = await sender.arrive(line, changed("C02", sender.trace, 1, data="021000089"), head=head)
    assert outcomes(report) == [("NOTED", "C02")]
    assert await sender.account() == before


RETURNS = ["R01", "R13", "R18", "R33", "R39", "R50", "R52", *(f"R{number}" for number in range(80, 86))]


@pytest.mark.parametrize("code", RETURNS)
async def test_a_returned_payment_is_refunded_for_every_return_code(sender, code):
    lines = entry("21", "550047788", 200_15, 1, addenda="1"), returned(code, sender.trace, 1)
    assert outcomes(await sender.arrive(*lines)) == [("RETURNED", code)]
    assert await sender.status(sender.paid) == ("FAILED", code)
    assert await sender.suspense() == []
    await sender.prove()


async def test_every_return_code_is_handled(sender):
    """Each of R01 to R85 comes once for an entry that is not ours: all are held, and the network's answers go out."""
    lines = []
    for number in range(1, 86):
        lines += [entry("21", "1", number, number, addenda="1"), returned(f"R{number:02}", UNKNOWN, number)]
    report = await sender.arrive(*lines)
    assert (report["held"], report["stuck"]) == (85, [])
    await sender.days()
    held = [reason for _, _, status, reason in await sender.suspense() if status == "HELD"]
    assert len(held) == 6 + 7 + 7  # refusals of our returns, contested refusals of ours, and codes that are neither
    assert {reason[1:4] for reason in held if reason.endswith("is not a return code.")} == {
        *(f"R{number}" for number in range(63, 67)),
        *("R60", "R78", "R79"),
    }
    assert {code for code, *_ in await sender.sent()} == {"R69"}


@pytest.mark.parametrize("death", ["425130", "ABCDEF", "000000", "250602", ""])
async def test_a_return_with_an_invalid_date_of_death_is_still_a_return(sender, death):
    lines = entry("21", "550067788", 200_15, 1, addenda="1"), returned("R15", sender.trace, 1, death=death)
    assert outcomes(await sender.arrive(*lines)) == [("RETURNED", "R15")]
    assert await sender.status(sender.paid) == ("FAILED", "R15")


@pytest.mark.parametrize(
    ("code", "original", "head"),
    [
        ("R03", UNKNOWN, header("CCD", 1)),
        ("R03", None, header("CCD", 1)),
        ("R40", UNKNOWN, header("ENR", 1)),
        ("R69", None, header("CCD", 1)),
        ("R74", None, header("CCD", 1)),
        ("R99", None, header("CCD", 1)),
    ],
)
async def test_a_zero_amount_return_is_listed_and_blocks_nothing(sender, code, original, head):
    lines = entry("21", "1111", 0, 1, addenda="1"), returned(code, original or sender.trace, 1)
    report = await sender.arrive(*lines, head=head)
    assert outcomes(report) == [("LISTED", code)]
    assert (report["stuck"], await sender.suspense()) == ([], [])
    assert await sender.status(sender.paid) == ("IN_TRANSIT", None)
    await sender.days()


async def test_a_dishonored_return_is_held_for_manual_review(sender):
    information = f"{'':3}021000025857298" + "175" + "03"
    lines = entry("21", "1", 200_15, 1, addenda="1"), returned("R62", sender.trace, 1, information=information)
    assert outcomes(await sender.arrive(*lines)) == [("HELD", "R62")]
    await sender.days()
    ((_, cents, status, reason),) = await sender.suspense()
    assert (cents, status) == (200_15, "HELD")
    assert "021000025857298 under R03, settled on day 175" in reason


async def test_a_contested_dishonored_return_shows_the_information_of_the_other_bank(sender):
    information = "174" + "021000025857294" + "175" + "03" + "061199990000001" + "176" + "69"
    lines = (
        entry("21", "1", 200_15, 1, addenda="1"),
        returned("R74", sender.trace, 1, death="250602", information=information),
    )
    report = await sender.arrive(*lines)
    assert outcomes(report) == [("HELD", "R74")]
    await sender.days()
    ((_, _, status, reason),) = await sender.suspense()
    assert status == "HELD"
    assert report["lines"][0]["reason"] == reason
    for said in (sender.trace, "021000025857294", "under R03", "2025-06-02", "061199990000001", "under R69", "day 176"):
        assert said in reason


async def test_a_return_of_an_unknown_iat_entry_is_held_for_manual_review(sender):
    lines = [*international(543_21, 1, "12", code="21"), returned("R80", UNKNOWN, 1)]
    assert outcomes(await sender.arrive(*lines, head=header("IAT", 1, name=""))) == [("HELD", "R69")]
    await sender.days()
    assert [each[2] for each in await sender.suspense()] == ["HELD"]


async def test_a_notification_of_change_for_an_unlinked_counterparty_is_noted(sender):
    await sender.anna.do(UpdateCounterparty, sender.anna.good, counterparty_id=sender.anna.good, unlink=True)
    lines = entry("21", "1", 0, 1, addenda="1"), changed("C01", sender.trace, 1, data="1918171614")
    report = await sender.arrive(*lines, head=COR)
    assert (outcomes(report), report["stuck"]) == ([("NOTED", "C01")], [])
    await sender.days()

"""Unusual entries of a file: each gets its own response, and the other deposits are booked."""

import pytest
from tests.payments.ach.sender import outcomes
from tests.support.raw_ach import (
    OURS,
    THEIRS,
    addenda,
    batch,
    changed,
    entry,
    header,
    international,
    raw_file,
    returned,
    totals,
)
from tests.support.small_rails import Customer

from billfold.accounts.customers.commands import CloseCustomer
from billfold.dual_control.decisions import confirm
from billfold.identity.operators import Operator
from billfold.payments.suspense.decisions import propose_assignment, propose_return
from billfold.platform.errors import Refused


async def test_a_death_notice_is_listed_with_an_event_and_not_booked(sender):
    lines = (
        entry("23", sender.anna.account, 0, 1, identification="", name="DOE*JOHN", addenda="1"),
        addenda("05", "   DATE OF DEATH*060125*CUSTOMER SSN*#########*AMOUNT*0500.00\\", 1),
    )
    report = await sender.arrive(*lines, head=header("DNE", 1))
    assert outcomes(report) == [("LISTED", "DNE")]
    kinds = await sender.bank.pool.fetch("SELECT payload FROM event WHERE kind = 'transfers.ach.in.success'")
    assert len(kinds) == 2
    assert sum("ach_id" not in row[0] for row in kinds) == 1


ZERO = [
    *((code, header("CCD", 1)) for code in ("24", "29", "34", "39")),
    ("24", header("ACK", 1)),
    ("34", header("ATX", 1)),
    ("24", header("CTX", 1)),
    ("23", header("ENR", 1)),
    ("22", header("PPD", 1)),
    ("22", header("COR", 1)),
    ("21", header("PPD", 1)),
]


async def test_a_zero_amount_entry_is_listed_and_not_booked(sender):
    for nth, (code, head) in enumerate(ZERO):
        line = entry(code, sender.anna.account, 0, nth, addenda="1")
        listed = batch(head, line, addenda("05", "RMR*IV*77**1510.00\\", nth))
        await sender.put(f"{nth}.ach", raw_file(listed, sender.deposit(9000 + nth)))
        assert [each["outcome"] for each in sender.report(f"{nth}.ach")["lines"]] == ["LISTED"], (code, head)
    assert await sender.deposits() == [43_21] * len(ZERO)
    assert await sender.suspense() == []
    await sender.days()


async def test_an_adv_entry_is_listed_and_not_booked(sender):
    line = f"681{OURS}{sender.anna.account:15}{54_321:012}021000021000001{'LARKSPUR':22}  0061000143580001"
    report = await sender.arrive(line, head=header("ADV", 1, service="280"))
    assert outcomes(report) == [("LISTED", None)]
    assert (report["entries"], report["credits"], await sender.suspense()) == (2, 43_21, [])


async def test_an_adv_entry_in_standard_records_is_listed_whether_or_not_the_totals_include_it(sender):
    line = entry("81", sender.anna.account, 543_21, 1)
    control = f"8280{1:06}{6119999:010}{0:012}{543_21:012}1234567890{'':25}{THEIRS}0000001"
    odd = [header("ADV", 1, service="280"), line, control]
    for name, added in (("with.ach", 43_21 + 543_21), ("without.ach", 43_22)):
        lines = [
            *raw_file(odd, sender.deposit(added, added - 543_21 if added > 543_21 else added)).decode().splitlines()
        ]
        lines[7] = f"9000002000001{2:08}{12239998:010}{0:012}{added:012}".ljust(94)
        await sender.put(name, ("\n".join(lines) + "\n").encode())
        assert outcomes(sender.report(name)) == [("LISTED", None)]
    assert await sender.deposits() == [43_21, 43_22]


@pytest.mark.parametrize("entry_class", ["POS", "MTE", "SHR"])
async def test_a_point_of_sale_terminal_entry_is_booked(sender, entry_class):
    terminal = (
        f"702{'REF':7}{'ONE':3}{'TERM01':6}{'000001':6}0603{'AUTH01':6}{'5TH AVENUE':27}{'NEW YORK':15}NY{THEIRS}"
    )
    line = entry("27", sender.anna.account, 7_31, 1, name="4111111111111111", addenda="1")
    await sender.put("odd.ach", raw_file(batch(header(entry_class, service="225"), line, f"{terminal}0000001")))
    report = sender.report("odd.ach")
    assert (report["taken"], report["lines"], await sender.deposits()) == (1, [], [7_31])


async def test_the_card_number_of_a_shr_entry_is_stored_encrypted_and_repeated_in_its_return(sender):
    line = entry("27", "100000000001", 7_31, 1, name="4111111111111111")
    await sender.arrive(line, head=header("SHR", 1, service="225"))
    assert not await sender.bank.pool.fetchval("SELECT count(*) FROM suspense_item WHERE details::text LIKE '%41111%'")
    await sender.days()
    (name,) = [each.individual_name for each in await sender.sent_entries() if each.amount == 7_31]
    assert name == "4111111111111111"


@pytest.mark.parametrize("code", ["22", "27"])
@pytest.mark.parametrize("account", [None, "999999999999"])
async def test_an_iat_entry_is_held_for_manual_screening(sender, code, account):
    lines = international(543_21, 1, account or sender.anna.account, code=code)
    report = await sender.arrive(*lines, head=header("IAT", 1, name=""))
    assert outcomes(report) == [("HELD", None)]
    await sender.days()
    ((direction, cents, status, reason),) = await sender.suspense()
    assert (direction, cents, status) == ("CREDIT" if code == "22" else "DEBIT", 543_21, "HELD")
    assert "IAT" in reason


async def test_an_iat_payment_is_booked_after_manual_screening(sender):
    await sender.arrive(*international(543_21, 1, sender.anna.account), head=header("IAT", 1, name=""))
    item_id = await sender.bank.pool.fetchval("SELECT item_id FROM suspense_item")
    operator = Operator.of_command_line("ada")
    with pytest.raises(Refused, match="international"):
        await propose_return(sender.bank, item_id, reason="NO_ACCOUNT", by=operator)
    numbers = {"routing_number": OURS, "account_number": sender.anna.account}
    proposal = await propose_assignment(sender.bank, item_id, **numbers, by=operator)
    await confirm(sender.bank, proposal.proposal_id, by=Operator.of_command_line("otto"))
    assert [status for _, _, status, _ in await sender.suspense()] == ["ASSIGNED"]
    details = await sender.bank.pool.fetchval("SELECT details FROM transaction WHERE amount = 54321")
    assert f"{THEIRS}0000001" in details
    await sender.days()


ODD = {
    "a live code without an amount": (lambda sender: [entry("22", sender.anna.account, 0, 1)], "LISTED"),
    "a prenote with an amount": (lambda sender: [entry("23", sender.anna.account, 5_00, 1)], "HELD"),
    "remittance with an amount": (lambda sender: [entry("24", sender.anna.account, 5_00, 1)], "HELD"),
    "an unknown transaction code": (lambda sender: [entry("99", sender.anna.account, 5_00, 1)], "HELD"),
    "an unknown code of a credit": (lambda sender: [entry("12", sender.anna.account, 5_00, 1)], "HELD"),
    "no transaction code": (lambda sender: [entry("XX", sender.anna.account, 5_00, 1)], "LISTED"),
    "an amount that is none": (lambda sender: [entry("22", sender.anna.account, "000O000500", 1)], "LISTED"),
    "no account number": (lambda sender: [entry("22", "", 5_00, 1)], "HELD"),
    "another bank": (lambda sender: [entry("22", sender.anna.account, 5_00, 1, routing="021000021")], "HELD"),
    "a wrong check digit": (lambda sender: [entry("22", sender.anna.account, 5_00, 1, routing="061199993")], "HELD"),
    "letters for a bank": (lambda sender: [entry("22", sender.anna.account, 5_00, 1, routing="O61199992")], "HELD"),
    "an addenda that is missing": (lambda sender: [entry("22", sender.anna.account, 5_00, 1, addenda="1")], "HELD"),
    "an addenda not announced": (
        lambda sender: [entry("22", sender.anna.account, 5_00, 1), addenda("05", "HELLO", 1)],
        "HELD",
    ),
    "an addenda of another entry": (
        lambda sender: [entry("22", sender.anna.account, 5_00, 1, addenda="1"), addenda("05", "HELLO", 2)],
        "HELD",
    ),
    "an addenda of no kind": (
        lambda sender: [entry("22", sender.anna.account, 5_00, 1, addenda="1"), addenda("77", "HELLO", 1)],
        "HELD",
    ),
    "a return without an addenda": (lambda sender: [entry("21", sender.anna.account, 5_00, 1)], "HELD"),
    "a return with the code of a payment": (
        lambda sender: [entry("22", "1", 200_15, 1, addenda="1"), returned("R03", sender.trace, 1)],
        "HELD",
    ),
    "a return of nothing legible": (
        lambda sender: [entry("21", "1", 200_15, 1, addenda="1"), returned("R03", "NO NUMBER", 1)],
        "HELD",
    ),
    "a return without a code": (
        lambda sender: [entry("21", "1", 200_15, 1, addenda="1"), returned("", sender.trace, 1)],
        "HELD",
    ),
    "a return of another amount": (
        lambda sender: [entry("21", "1", 200_16, 1, addenda="1"), returned("R03", sender.trace, 1)],
        "HELD",
    ),
    "a return of a collection": (
        lambda sender: [entry("26", "1", 200_16, 1, addenda="1"), returned("R03", sender.debit_trace, 1)],
        "HELD",
    ),
    "a correction with an amount": (
        lambda sender: [entry("21", "1", 5_00, 1, addenda="1"), changed("C01", sender.trace, 1, data="1918171614")],
        "HELD",
    ),
}


def numbered(lines, number):
    """Give entries and their returns another trace number: what repeats an entry in everything is a duplicate."""
    return [line[:-7] + f"{number:07}" if line[0] == "6" or line[1:3] in {"98", "99"} else line for line in lines]


async def test_an_odd_entry_does_not_affect_its_batch_and_its_return_is_sent(sender):
    for nth, (name, (lines, outcome)) in enumerate(ODD.items(), start=1):
        # Another deposit stands in the same batch.
        deposit = entry("22", sender.anna.account, 43_21, 9000 + nth)
        await sender.put(f"{nth}.ach", raw_file(batch(header("CCD", 1), *numbered(lines(sender), nth), deposit)))
        report = sender.report(f"{nth}.ach")
        assert [each["outcome"] for each in report["lines"]] == [outcome], name
        assert report["stuck"] == [], name
        assert await sender.deposits() == [43_21] * nth, name
    await sender.days()
    assert await sender.status(sender.paid) in {("IN_TRANSIT", None), ("PROCESSED", None)}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"entry_class": "XYZ"}, "'XYZ' is not an entry class."),
        ({"service": "225"}, "Service class 225 does not fit its entries."),
        ({"service": "300"}, "Batch header: service class code should be"),
        ({"bank": "0210000X"}, "Batch header: originating dfi identification should be digits"),
    ],
)
async def test_an_invalid_batch_is_held_and_the_others_are_booked(sender, change, reason):
    line = entry("22", sender.anna.account, 5_00, 1)
    report = await sender.arrive(line, head=header(**({"entry_class": "PPD"} | change)))
    assert [each["outcome"] for each in report["lines"]] == ["HELD"]
    assert report["lines"][0]["reason"].startswith(reason)
    await sender.days()


async def test_a_batch_with_a_wrong_control_record_is_held_and_the_others_are_booked(sender):
    wrong = batch(
        header("PPD", 1), entry("22", sender.anna.account, 5_00, 1), entry("27", sender.anna.account, 1_00, 2)
    )
    wrong[-1] = wrong[-1][:32] + "000000000777" + wrong[-1][44:]
    await sender.put("odd.ach", raw_file(wrong, sender.deposit()))
    assert await sender.deposits() == [43_21]
    reason = "Batch control: credit total says 777, is 500."
    assert [(each["outcome"], each["reason"]) for each in sender.report("odd.ach")["lines"]] == [("HELD", reason)] * 2
    await sender.days()
    assert {each[2] for each in await sender.suspense()} == {"RETURNED"}


@pytest.mark.parametrize("numbers", [(9, 2), (2, 2), (0, 0)])
async def test_batches_are_booked_with_any_batch_numbers(sender, numbers):
    first, second = [
        sender.deposit(number, number, head=header("PPD", place)) for number, place in zip((1, 2), numbers, strict=True)
    ]
    await sender.put("odd.ach", raw_file(first, second))
    assert await sender.deposits() == [1, 2]
    assert sender.report("odd.ach")["lines"] == []


async def test_entries_of_two_batches_with_the_same_trace_number_are_both_booked(sender):
    batches = [sender.deposit(1, cents, head=header("PPD", place)) for place, cents in enumerate((1, 2, 2), start=1)]
    await sender.put("odd.ach", raw_file(*batches))
    assert await sender.deposits() == [1, 2]
    # Only what repeats an entry in everything is a duplicate.
    assert outcomes(sender.report("odd.ach")) == [("SENT_BACK", "R24")]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
async def test_a_deposit_with_non_ascii_letters_in_its_name_is_booked(sender, encoding):
    raw = raw_file(
        sender.deposit(name="JOSÉ NUÑEZ"), batch(header("PPD", 3), entry("22", "1234", 1_00, 1, name="Ü\t\x07"))
    )
    await sender.put("odd.ach", raw.decode("latin-1").encode(encoding))
    assert await sender.deposits() == [43_21]
    assert await sender.bank.pool.fetchval("SELECT party_name FROM ach_entry WHERE way = 'RECEIVING'") == "JOSE NUNEZ"
    await sender.days()


@pytest.mark.parametrize("written", ["{0:>17}", "{0[0]}{0[1]}{0[2]}{0[3]}-{rest}"])
async def test_an_account_number_with_grouped_digits_is_matched(sender, written):
    account = written.format(sender.anna.account, rest=sender.anna.account[4:])
    await sender.put("odd.ach", raw_file(batch(header(), entry("22", account, 43_21, 1))))
    assert await sender.deposits() == [43_21]


async def test_a_repeated_file_of_odd_entries_is_booked_once(sender):
    lines = []
    for number, (make, _) in enumerate(ODD.values(), start=1):
        lines += numbered(make(sender), number)
    deposit = sender.deposit()
    raw = raw_file(batch(header("CCD", 1), *lines), deposit)
    for name in ("odd.ach", "odd.ach", "again.ach"):
        await sender.put(name, raw)
    assert await sender.deposits() == [43_21]
    held = len(await sender.suspense())
    await sender.put("third.ach", raw_file(deposit))  # the operator sends the deposit once more
    assert await sender.deposits() == [43_21]
    assert len(await sender.suspense()) == held
    await sender.days()


def test_the_totals_of_generated_ach_files_match_the_rules():
    assert totals([entry("22", "1", 5, 1), addenda("05", "", 1), entry("27", "1", 7, 2)]) == (3, 12239998, 7, 5)


async def test_ach_returns_for_a_closed_customer_are_booked_or_held(sender):
    await sender.days(6)
    bert = Customer(sender.bank, "Bert")
    await bert.settle_in(1_000_00)
    await sender.anna.transfer(sender.anna.place, bert.place, None)
    await sender.days()
    await sender.anna.submit(CloseCustomer, sender.anna.id, reason="moved", references=(sender.anna.id,))
    lines = [
        *(entry("21", "1", 0, 1, addenda="1"), changed("C01", sender.trace, 1, data="1918171614")),
        *(entry("21", "1", 200_15, 2, addenda="1"), returned("R10", sender.trace, 2)),
        *(entry("26", "1", 200_15, 3, addenda="1"), returned("R10", sender.debit_trace, 3)),
        entry("22", sender.anna.account, 5_00, 4),
        entry("27", sender.anna.account, 5_00, 5),
        entry("23", sender.anna.account, 0, 6),
    ]
    good = batch(header("PPD", 2), entry("22", bert.account, 43_21, 9000))
    await sender.put("odd.ach", raw_file(batch(header("CCD", 1), *lines), good))
    report = sender.report("odd.ach")
    assert report["stuck"] == []
    assert await sender.deposits() == [43_21]
    await sender.days()


@pytest.mark.parametrize(
    "entry_class", ["ARC", "BOC", "CCD", "CIE", "CTX", "POP", "PPD", "RCK", "TEL", "TRC", "WEB", "XCK"]
)
async def test_a_deposit_of_any_entry_class_is_booked_with_all_its_remittance_lines(sender, entry_class):
    texts = [f"RMR*IV*{number}**10.00\\" for number in range(1, 4)]
    line = entry("22", sender.anna.account, 43_21, 1, name="0003LARKSPUR", addenda="1")
    lines = [line, *(addenda("05", text, 1, sequence) for sequence, text in enumerate(texts, start=1))]
    await sender.put("odd.ach", raw_file(batch(header(entry_class), *lines)))
    assert await sender.deposits() == [43_21]
    assert sender.report("odd.ach")["lines"] == []


async def test_an_ach_deposit_with_blank_texts_is_booked(sender):
    head = header("PPD", name="", day="      ").replace("PAYMENT", " " * 7).replace("1234567890", " " * 10)
    await sender.put(
        "odd.ach", raw_file(batch(head, entry("22", sender.anna.account, 43_21, 1, identification="", name="")))
    )
    assert await sender.deposits() == [43_21]
    await sender.put("back.ach", raw_file(batch(head, entry("22", "1", 43_21, 2, identification="", name=""))))
    await sender.days()
    assert ("R03", 43_21, f"{THEIRS}0000002") in await sender.sent()


async def test_an_ach_file_of_only_adv_entries_is_listed(sender):
    line = f"681{OURS}{sender.anna.account:15}{54_321:012}021000021000001{'LARKSPUR':22}  0061000143580001"
    raw = raw_file(batch(header("ADV", 1, service="280"), line)).decode().splitlines()
    raw[4] = f"9000001000001{1:08}{6119999:010}{0:020}{54_321:020}".ljust(94)
    assert raw[4][0] == "9"
    await sender.put("odd.ach", ("\n".join(raw) + "\n").encode())
    assert outcomes(sender.report("odd.ach")) == [("LISTED", None)]

"""Malformed payments of a file: the reason is reported for review, and nothing is booked or skipped."""

from copy import deepcopy

import pytest
from lxml import etree
from tests.support.cases import in_one_bank

from billfold.payments.files import retries
from billfold.payments.wires.iso20022.envelope import write_messages


def without_element(name):
    def change(message):
        for each in list(message.iter(f"{{*}}{name}")):
            each.getparent().remove(each)

    return change


def with_element_text(name, text):
    def change(message):
        next(message.iter(f"{{*}}{name}")).text = text

    return change


def with_repeated_element(name):
    def change(message):
        first = next(message.iter(f"{{*}}{name}"))
        first.addnext(deepcopy(first))

    return change


def with_two_account_numbers(message):
    number = next(message.iter("{*}CdtrAcct")).find(".//{*}Othr")
    number.addnext(other := deepcopy(number))
    other.find("{*}Id").text = "999999999999"


ODD = {
    "no amount": (without_element("IntrBkSttlmAmt"), "IntrBkSttlmAmt: is missing"),
    "no settlement date": (without_element("IntrBkSttlmDt"), "IntrBkSttlmDt: is missing"),
    "no debtor": (without_element("Dbtr"), "Dbtr: is missing"),
    "no UETR": (without_element("UETR"), "UETR: is missing"),
    "no payment": (without_element("CdtTrfTxInf"), "is missing"),
    "a date of no calendar": (with_element_text("IntrBkSttlmDt", "2025-06-31"), "IntrBkSttlmDt: day"),
    "a date of another notation": (
        with_element_text("IntrBkSttlmDt", "06/02/2025"),
        "IntrBkSttlmDt: Invalid isoformat",
    ),
    "a date without bounds": (with_element_text("IntrBkSttlmDt", "0001-01-01"), "IntrBkSttlmDt: "),
    "an unreadable time": (with_element_text("CreDtTm", "today"), "CreDtTm: Invalid isoformat"),
    "an unreadable time of the header": (with_element_text("CreDt", "today"), "CreDt: Invalid isoformat"),
    "two payments in a body": (with_repeated_element("CdtTrfTxInf"), "CdtTrfTxInf: is repeated"),
    "two amounts": (with_repeated_element("IntrBkSttlmAmt"), "IntrBkSttlmAmt: is repeated"),
    "two creditors' accounts": (with_repeated_element("CdtrAcct"), "CdtrAcct: is repeated"),
    "two numbers of the creditor's account": (with_two_account_numbers, "Othr: is repeated"),
}


async def changed_file(fedwire, holder, change, *, with_good):
    """Return a file with a changed payment, with another one before it if `with_good`."""
    account = await fedwire.account_of(holder)
    names = ("good", "odd") if with_good else ("odd",)
    root = etree.fromstring(write_messages([await fedwire.payment(each, account) for each in names], "incoming"))
    change(root[-1])
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8")


@pytest.mark.parametrize("name", ODD)
async def test_an_odd_wire_is_held_for_review_with_its_reason_and_the_other_of_its_file_is_booked(
    fedwire, holder, name
):
    change, told = ODD[name]
    await fedwire.drop("both.xml", await changed_file(fedwire, holder, change, with_good=True))
    assert fedwire.taken("both.xml") == ["COMPLETED"]
    (file,) = await retries.list_failing(fedwire.bank.pool)
    state = retries.retry_state_of(file)
    assert state is not None
    (stuck,) = state.stuck
    assert (stuck.line, told in stuck.error) == (4, True), stuck.error
    assert len(await fedwire.wires(holder)) == 1
    await fedwire.prove()


@in_one_bank("name", ODD)
async def test_a_file_with_only_an_odd_wire_is_refused_with_the_reason(fedwire, holder, name):
    change, told = ODD[name]
    await fedwire.drop("odd.xml", await changed_file(fedwire, holder, change, with_good=False))
    ((_, element, reason), *_) = fedwire.refused("odd.xml")
    assert told in f"{element}: {reason}"
    assert (await fedwire.wires(holder), await retries.list_failing(fedwire.bank.pool)) == ([], [])


async def test_a_fedwire_file_with_two_envelopes_is_refused_as_a_whole(fedwire, holder):
    account = await fedwire.account_of(holder)
    first, second = [write_messages([await fedwire.payment(each, account)], "incoming") for each in "ab"]
    for name, raw in (
        ("declared", first + b"\n" + second),
        ("bare", first + second[second.index(b"<FedwireFundsIncoming ") :]),
    ):
        await fedwire.drop(f"{name}.xml", raw)
        ((line, element, reason),) = fedwire.refused(f"{name}.xml")
        assert (line > 1, element) == (True, "file"), reason
    assert await fedwire.wires(holder) == []

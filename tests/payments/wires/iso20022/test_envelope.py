"""A file of messages is accepted as a whole or not at all."""

from collections.abc import Callable
from copy import deepcopy

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from tests.payments.wires.iso20022.wires import MESSAGES, OURS, a_credit_transfer, a_wire

from billfold.payments.files.types import InvalidFile
from billfold.payments.wires.iso20022.envelope import read_file, read_messages, write_messages
from billfold.payments.wires.iso20022.types import Agent, CreditTransfer, Message

EVERY_KIND = [a_wire(message) for message in MESSAGES.values()]
WHOLE = write_messages(EVERY_KIND, "incoming")


def only_messages(raw, direction):
    return [message for _, message in read_messages(raw, direction)]


def test_a_written_iso20022_file_is_read_back_equal():
    assert only_messages(WHOLE, "incoming") == EVERY_KIND


@settings(max_examples=40)
@given(amount=st.integers(1, 999_999_999_999))
def test_iso20022_amounts_keep_their_cents(amount):
    wire = a_wire(a_credit_transfer(amount=amount))

    assert only_messages(write_messages([wire], "outgoing"), "outgoing") == [wire]


@settings(max_examples=60)
@given(st.text(min_size=1, max_size=140).filter(lambda text: text == text.strip() != ""))
def test_remittance_text_survives_an_iso20022_round_trip(text):
    wire = a_wire(a_credit_transfer(remittance=text))
    try:
        raw = write_messages([wire], "outgoing")
    except ValueError:
        return  # a control character: refused, not changed

    (read,) = only_messages(raw, "outgoing")
    assert isinstance(read.message, CreditTransfer)
    assert " ".join(str(read.message.remittance).split()) == " ".join(text.split())


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"message_id": "20261120"}, "message_id"),
        ({"uetr": "8A562C67-CA16-48BA-B074-65581BE6F011"}, "uetr"),
        ({"uetr": "8a562c67-ca16-18ba-b074-65581be6f011"}, "uetr"),
        ({"amount": 0}, "amount"),
        ({"amount": 1_000_000_000_000}, "amount"),
        ({"sender": "02100002"}, "sender"),
        ({"remittance": "x" * 141}, "remittance"),
        ({"creditor_agent": Agent(bic="COBA")}, "creditor_agent.bic"),
    ],
)
def test_writing_an_invalid_iso20022_message_is_refused(changes, told):
    with pytest.raises(ValueError, match=rf"\$\.message\.{told}"):
        write_messages([a_wire(a_credit_transfer(**changes))], "outgoing")


def test_a_business_header_must_match_its_message():
    with pytest.raises(ValueError, match="announces"):
        write_messages([a_wire(message_name="pacs.004.001.10")], "outgoing")


Change = Callable[[etree._Element], object]


def _at(path: str, change: Change) -> Change:
    return lambda root: change(next(root.iter(f"{{*}}{path}")))


def _with_text(path: str, text: str) -> Change:
    return _at(path, lambda element: setattr(element, "text", text))


def _without(path: str) -> Change:
    return _at(path, lambda element: next(element.iterancestors()).remove(element))


def _twice(path: str) -> Change:
    return _at(path, lambda element: element.addnext(deepcopy(element)))


WRONG: dict[str, tuple[Change, str]] = {
    "a number of another form": (_with_text("MsgId", "1"), "MsgId: '1' cannot be"),
    "no UETR": (_without("UETR"), "UETR: is missing"),
    "another currency": (_at("IntrBkSttlmAmt", lambda amount: amount.set("Ccy", "EUR")), "currency is EUR"),
    "parts of a cent": (_with_text("IntrBkSttlmAmt", "1.005"), "parts of a cent"),
    "an amount that is a word": (_with_text("IntrBkSttlmAmt", "many"), "not an amount"),
    "a negative amount": (_with_text("IntrBkSttlmAmt", "-1.00"), "not an amount"),
    "nothing": (_with_text("IntrBkSttlmAmt", "0.00"), "'0.00' cannot be: expected cents >= 1"),
    "a day that is none": (_with_text("IntrBkSttlmDt", "2026-02-30"), "day"),
    "an instant without offset": (_with_text("CreDtTm", "2026-11-20T10:15:00"), "offset"),
    "another clearing system": (_with_text("Cd", "CHP"), "should be FDW"),
    "several payments": (_with_text("NbOfTxs", "2"), "should be 1"),
    "no header": (_without("AppHdr"), "has no AppHdr"),
    "no document": (_without("Document"), "has no Document"),
    "another message announced": (_with_text("MsgDefIdr", "pacs.009.001.08"), "announces"),
    "no debtor": (_without("Dbtr"), "Dbtr: is missing"),
    "a second payment": (_twice("CdtTrfTxInf"), "CdtTrfTxInf: is repeated"),
    "a payment in a second body": (_twice("FIToFICstmrCdtTrf"), "holds 2 elements, not 1"),
    "a payment in a second document": (_twice("Document"), "holds 3 elements, not 2"),
    "a second header": (_twice("AppHdr"), "holds 3 elements, not 2"),
    "a second message": (_twice("FedwireFundsCustomerCreditTransfer"), "holds not exactly one message"),
    "two amounts": (_twice("IntrBkSttlmAmt"), "IntrBkSttlmAmt: is repeated"),
    "two creditors": (_twice("Cdtr"), "Cdtr: is repeated"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_iso20022_error_is_reported_with_line_and_element(name):
    change, told = WRONG[name]
    root = etree.fromstring(write_messages([a_wire(), a_wire()], "incoming"))
    change(root[1])

    with pytest.raises(InvalidFile) as refused:
        only_messages(etree.tostring(root, pretty_print=True), "incoming")

    (mistake,) = refused.value.mistakes
    assert told in str(mistake)
    assert mistake.line > 1


def _read_changed(change):
    """Return the one payment of a file after a change."""
    root = etree.fromstring(write_messages([a_wire()], "incoming"))
    change(root)
    ((_, wire),), unread = read_file(etree.tostring(root), "incoming")
    assert unread == []
    return wire.message


def test_a_party_with_an_unstructured_address_keeps_its_name():
    def change(root):
        address = next(root.iter("{*}Dbtr")).find("{*}PstlAdr")
        for child in list(address):
            address.remove(child)
        for text in ("1 Main St", "New York NY 10001"):
            etree.SubElement(address, f"{{{etree.QName(address).namespace}}}AdrLine").text = text

    assert _read_changed(change).debtor.name == "Acme Inc"


def test_a_bank_of_a_foreign_clearing_system_has_no_routing_number():
    def change(root):
        member = next(root.iter("{*}DbtrAgt")).find(".//{*}ClrSysMmbId")
        member.find("{*}ClrSysId/{*}Cd").text, member.find("{*}MmbId").text = "GBDSC", "200000"

    agent = _read_changed(change).debtor_agent
    assert (agent.routing_number, agent.name) == (None, "Example Bank")


def test_an_ignored_iso20022_element_may_repeat():
    def change(root):
        debtor = next(root.iter("{*}Dbtr"))
        for _ in range(2):
            etree.SubElement(debtor, f"{{{etree.QName(debtor).namespace}}}CtctDtls")

    assert _read_changed(change).debtor.name == "Acme Inc"


def test_an_unknown_message_or_a_file_of_the_wrong_direction_is_refused():
    with pytest.raises(InvalidFile, match="not a known message"):
        only_messages(WHOLE.replace(b"FedwireFundsPaymentReturn", b"FedwireFundsSomething"), "incoming")
    with pytest.raises(InvalidFile, match="is no FedwireFundsOutgoing"):
        only_messages(WHOLE, "outgoing")


@settings(max_examples=40)
@given(st.integers(0, len(WHOLE) - 1))
def test_an_iso20022_file_truncated_at_any_point_is_refused(at):
    with pytest.raises(InvalidFile):
        only_messages(WHOLE[:at], "incoming")


@settings(max_examples=40)
@given(st.binary(max_size=300))
def test_arbitrary_bytes_raise_only_invalid_file_in_the_iso20022_reader(raw):
    with pytest.raises(InvalidFile):
        only_messages(raw, "incoming")


@pytest.mark.parametrize(
    "hostile",
    [
        '<!DOCTYPE x [<!ENTITY a "b">]>',
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]>',
        '<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd">',
    ],
)
def test_xml_doctypes_and_entities_are_refused(hostile):
    text = WHOLE.decode().replace("?>", f"?>{hostile}", 1).replace("Invoice 77", "&a;")

    with pytest.raises(InvalidFile):
        only_messages(text.encode(), "incoming")


def test_the_instructed_amount_may_be_in_a_foreign_currency():
    root = etree.fromstring(write_messages([a_wire()], "incoming"))
    next(root.iter("{*}InstdAmt")).set("Ccy", "EUR")

    assert only_messages(etree.tostring(root), "incoming") == [a_wire()]


def test_the_business_header_survives_a_round_trip():
    message: Message = a_credit_transfer()
    wire = a_wire(message, sender="MMQFMP0AA", business_id="20261120QFMP000000012345")

    (read,) = only_messages(write_messages([wire], "incoming"), "incoming")
    assert read.header == wire.header
    assert msgspec.structs.asdict(read.header)["receiver"] != OURS

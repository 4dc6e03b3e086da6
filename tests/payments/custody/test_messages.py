"""The custodian's messages, as they are written and read, and files that are odd."""

import subprocess
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.maven import jars_of

from billfold.payments.custody import messages
from billfold.payments.files.types import InvalidFile

SOURCE = Path(__file__).with_name("ProwideCustodian.java")
ENDS = messages.MessageEnds("BLFDUS33", "CUSTUS33", datetime(2025, 6, 2, 13, tzinfo=UTC))
TX_ID = "0123456789abcdef0123456789abcdef001"
_TRADE: dict[str, Any] = {
    "movement": "RECE",
    "payment": "APMT",
    "cusip": "912797PT8",
    "units": 1000,
    "account": "BILLFOLD",
}
_TRADE["account"] = "BILLFOLD"
_MONEY: dict[str, Any] = {"kind": "TRAD", "money": 99_691_25, "credit_or_debit": "DBIT"}
INSTRUCTION = messages.Instruction(
    tx_id=TX_ID,
    trade_id="T-1041",
    traded_on=date(2025, 6, 2),
    settles_on=date(2025, 6, 3),
    delivering=messages.Party(name="citadel"),
    **_TRADE,
    **_MONEY,
)
DELIVERY = messages.Instruction(
    tx_id=TX_ID,
    settles_on=date(2025, 6, 3),
    receiving=messages.Party(name="Harbor Custody", account="1234"),
    kind="TRAD",
    **_TRADE | {"movement": "DELI", "payment": "FREE"},
)
CONFIRMATION = messages.Confirmation(tx_id=TX_ID, custodian_id="C-1", settled_on=date(2025, 6, 3), **_TRADE, **_MONEY)
ALL = (
    INSTRUCTION,
    DELIVERY,
    CONFIRMATION,
    messages.CancellationRequest(tx_id=TX_ID, movement="RECE", payment="APMT", account="BILLFOLD"),
    messages.StatusAdvice(tx_id=TX_ID, matched="", account="BILLFOLD"),
    messages.StatusAdvice(tx_id=TX_ID, rejected="SAFE Unknown account"),
    messages.StatusAdvice(tx_id=TX_ID, failing="LACK"),
    messages.CancellationStatus(tx_id=TX_ID, movement="RECE", payment="APMT", cancelled="CANI"),
    messages.CancellationStatus(tx_id=TX_ID, movement="RECE", payment="APMT", denied="DSET"),
)


def written(*several):
    return messages.write_messages(several, ENDS)


def test_every_message_is_read_as_it_was_written():
    read = messages.read_messages(written(*ALL))
    assert [each.message for each in read] == list(ALL)
    assert [each.number for each in read] == [each.digest.hex() for each in read]
    assert [each.line for each in read] == list(range(3, len(ALL) + 3))


def test_a_document_alone_is_read_in_any_version_and_numbered_by_its_content():
    whole = written(CONFIRMATION).decode()
    alone = whole[whole.index("<Document") : whole.index("</Message>")].replace("sese.025.001.11", "sese.025.001.09")
    [read] = messages.read_messages(alone.encode())
    assert (read.message, read.name) == (CONFIRMATION, "sese.025.001.09")
    assert read.number == read.digest.hex()
    assert messages.read_messages(alone.replace("1000", "1001").encode())[0].number != read.number


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"not XML", "Start tag expected"),
        (b"", "empty"),
        (b"<Messages/>", "holds no ISO 20022 document"),
        (b'<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;">]><Document>&c;</Document>', "has a document type"),
    ],
)
def test_a_file_that_is_no_file_of_messages_is_refused(content, reason):
    with pytest.raises(InvalidFile, match=reason):
        messages.read_messages(content)


@pytest.mark.parametrize(
    ("before", "after", "element"),
    [
        ('Ccy="USD"', 'Ccy="EUR"', "Amt"),
        ("99691.25<", "99691.255<", "Amt"),
        ("99691.25<", "-1<", "Amt"),
        ("100000<", "100050<", "FaceAmt"),
        ("100000<", "1e5<", "FaceAmt"),
        ("<Dt>2025-06-03</Dt>", "<Dt>2025-06-31</Dt>", "Dt"),
        ("<SctiesMvmntTp>RECE</SctiesMvmntTp>", "", "SctiesSttlmTxConf"),
        ("<Id>BILLFOLD</Id>", "<Id>BILLFOLD</Id><Id>OTHER</Id>", "Id"),
        ("SctiesSttlmTxConf", "SctiesSttlmTxConfs", "Document"),
        ("sese.025.001.11", "sese.025.002.11", "Document"),
    ],
)
def test_a_message_that_is_wrong_takes_no_other_with_it(before, after, element):
    whole = written(CONFIRMATION, INSTRUCTION).decode()
    cut = whole.index("</Message>")
    first, second = messages.read_messages((whole[:cut].replace(before, after) + whole[cut:]).encode())
    assert first.message is None
    assert [each.element for each in first.mistakes][:1] == [element]
    assert second.message == INSTRUCTION


def test_prowide_reads_what_is_written_and_writes_what_is_read(tmp_path, tmp_path_factory):
    jars = jars_of("com.prowidesoftware", "pw-iso20022", "SRU2024-10.2.6", tmp_path_factory)
    sent = (INSTRUCTION, DELIVERY, ALL[3])
    for nth, each in enumerate(sent):
        (tmp_path / f"{nth}.xml").write_bytes(written(each))
    words = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", str(SOURCE)]
    words += [str(tmp_path / f"{nth}.xml") for nth in range(len(sent))]
    output = subprocess.run(words, check=True, capture_output=True, text=True, timeout=300).stdout.splitlines()
    assert [line.removeprefix("READ ") for line in output if line.startswith("READ")] == [
        f"{TX_ID}|RECE|APMT|2025-06-03|912797PT8|CUSP|100000|BILLFOLD|TRAD|FRNYUS33|citadel|USD99691.25DBIT",
        f"{TX_ID}|DELI|FREE|2025-06-03|912797PT8|CUSP|100000|BILLFOLD|TRAD|FRNYUS33|Harbor Custody|free",
        f"{TX_ID}|BILLFOLD",
    ]
    answers = [line.removeprefix("WROTE ").encode() for line in output if line.startswith("WROTE")]
    read = [messages.read_messages(each)[0].message for each in answers]
    confirmed = {"custodian_id": "PROWIDE-1", "kind": None}
    assert read == [
        messages.StatusAdvice(tx_id=TX_ID, matched=""),
        replace(CONFIRMATION, **confirmed),
        messages.StatusAdvice(tx_id=TX_ID, matched=""),
        replace(CONFIRMATION, **confirmed, movement="DELI", payment="FREE", money=None, credit_or_debit=None),
        messages.CancellationStatus(tx_id=TX_ID, movement="RECE", payment="APMT", denied="DSET"),
    ]

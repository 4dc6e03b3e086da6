"""Written ACH files conform to the standard: they are read by a third-party reader."""

from typing import Any

import achkit
import pytest
from hypothesis import given, settings
from tests.payments.ach.nacha.files import BANK, FORWARD, a_batch, a_change, a_file, a_return, an_entry, files

from billfold.payments.ach.nacha.records import PaymentAddenda
from billfold.payments.ach.nacha.writer import to_ach_text, write_file


def test_written_nacha_columns_match_the_rules():
    entry = an_entry(addenda=(PaymentAddenda("RMR*IV*77**1510.00\\"),))
    lines = write_file(a_file(a_batch(entry, standard_entry_class_code="CCD"))).decode().splitlines()

    assert [line[0] for line in lines] == list("1567899999")
    assert {len(line) for line in lines} == {94}
    header, batch, line, addenda, control, closing = lines[:6]
    assert header[:40] == "101 021000021 1210002482611201005A094101"
    assert batch[1:4] == "220"
    assert batch[50:63] == "PPDPAYROLL   ".replace("PPD", "CCD")
    assert batch[69:87] == "261123   112100024"
    assert line[:39] == "6220210000215647772655       0000151000"
    assert line[78:] == "1121000240000001"
    assert addenda[:3] == "705"
    assert addenda[83:] == "00010000001"
    assert control[1:44] == "2200000020002100002000000000000000000151000"
    assert closing[:55] == "9000001000001000000020002100002000000000000000000151000"


@settings(max_examples=30)
@given(files(FORWARD))
def test_an_independent_reader_validates_every_written_file_and_reads_the_same(file):
    text = write_file(file).decode()

    verdict = achkit.validate(text)
    assert verdict["ok"], verdict["errors"]
    assert _amounts(achkit.parse(text)) == [
        (entry.transaction_code, entry.amount) for batch in file.batches for entry in batch.entries
    ]


def test_an_independent_reader_agrees_on_returns_and_notifications_of_change():
    back = (
        an_entry(1, transaction_code="21", addenda=(a_return(),)),
        an_entry(2, transaction_code="36", amount=77, addenda=(a_return(return_reason_code="R10"),)),
    )
    told = an_entry(1, transaction_code="21", amount=0, addenda=(a_change(),))
    change = a_batch(told, batch_number=2, standard_entry_class_code="COR")
    text = write_file(a_file(a_batch(*back), change, a_batch(an_entry(5), batch_number=3))).decode()

    # It leaves the amounts of returns out of the totals, and finds nothing else.
    assert {each["code"] for each in achkit.validate(text)["errors"]} <= _ITS_OWN_TOTALS
    parsed = achkit.parse(text)
    assert _amounts(parsed) == [("21", 151_000), ("36", 77), ("21", 0), ("22", 151_000)]
    infos = [
        (addenda["type"], addenda["info"][:18])
        for batch in parsed["batches"]
        for entry in batch["entries"]
        for addenda in entry["addenda"]
    ]
    assert infos == [("99", f"R01{BANK}0000007"), ("99", f"R10{BANK}0000007"), ("98", f"C01{BANK}0000007")]
    assert achkit.validate(write_file(a_file(a_batch(told, standard_entry_class_code="COR"))).decode())["ok"]


_ITS_OWN_TOTALS = {"BAD_BATCH_DEBIT", "BAD_BATCH_CREDIT", "BAD_FILE_DEBIT", "BAD_FILE_CREDIT"}


def _amounts(parsed: dict[str, Any]) -> list[tuple[str, int]]:
    return [
        (str(entry["txn_code"]), int(entry["amount_cents"]))
        for batch in parsed["batches"]
        for entry in batch["entries"]
    ]


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"dfi_account_number": "1" * 18}, "entry, dfi account number"),
        ({"amount": 10**10}, "entry, amount"),
        ({"amount": -1}, "entry, amount"),
        ({"individual_name": "MÜLLER"}, "entry, individual name"),
        ({"routing_number": "02100002"}, "entry, routing number"),
        ({"addenda": (PaymentAddenda("X" * 81),)}, "addenda 05, payment related information"),
        ({"addenda": (a_return(addenda_information="X" * 45),)}, "addenda 99, addenda information"),
    ],
)
def test_a_value_too_long_for_its_nacha_field_is_refused_with_the_field_name(entry, told):
    with pytest.raises(ValueError, match=f"^{told}"):
        write_file(a_file(a_batch(an_entry(**entry))))


def test_trace_numbers_of_a_batch_must_ascend():
    with pytest.raises(ValueError, match="ascend"):
        write_file(a_file(a_batch(an_entry(2), an_entry(1))))


def test_a_batch_without_entries_is_refused():
    with pytest.raises(ValueError, match="no entries"):
        write_file(a_file(a_batch(entries=())))


@pytest.mark.parametrize(
    ("given_name", "width", "written"),
    [
        ("Müller & Söhne GmbH", 22, "MULLER & SOHNE GMBH"),
        ("Zoë's Café — Paris", 10, "ZOE'S CAFE"),
        ("日本", 10, ""),
        ("  two   spaces\n", 30, "TWO SPACES"),
    ],
)
def test_names_are_converted_to_ach_text(given_name, width, written):
    assert to_ach_text(given_name, width) == written

"""Reasons why an incoming entry is held or returned: no money is lost, and nothing is booked without an amount."""

from itertools import product

import pytest
from tests.payments.ach.nacha.files import a_batch, a_change, a_return, an_entry

from billfold.payments.ach.nacha.reader import _CLASSES
from billfold.payments.ach.nacha.records import ADVICE, EntryLine, PaymentAddenda
from billfold.payments.ach.returns import objection_to

CODES = [f"{kind}{way}" for kind in "2358" for way in "123456789"]
ADDENDA = {
    "none": (),
    "remittance": (PaymentAddenda("HELLO"),),
    **{code: (a_return(return_reason_code=code),) for code in ("R01", "R61", "R71", "R85", "R99", "")},
    **{code: (a_change(change_code=code),) for code in ("C01", "C14", "C61", "C99", "")},
    "both": (a_return(), a_change()),
}


def line_of(entry_class, code, amount, addenda, mistake="", bank="12100024"):
    entry = an_entry(transaction_code=code, amount=amount, addenda=ADDENDA[addenda])
    head = a_batch(standard_entry_class_code=entry_class, originating_dfi_identification=bank)
    return EntryLine(3, head, entry, mistake, 2)


@pytest.mark.parametrize("entry_class", sorted(_CLASSES))
@pytest.mark.parametrize("amount", [0, 5])
def test_every_entry_with_an_amount_is_booked_or_held_and_zero_entries_never_are(entry_class, amount):
    for code, addenda, mistake, batch_mistake, bank in product(
        CODES, ADDENDA, ("", "wrong"), (None, "wrong"), ("12100024", "00000000")
    ):
        line = line_of(entry_class, code, amount, addenda, mistake, bank)
        objection = objection_to(line, batch_mistake)
        if objection is not None:
            assert objection.reason
            assert objection.is_held == (amount > 0 and entry_class != ADVICE)
            assert not (objection.return_code and objection.stays)
        elif line.changed is not None and line.returned is None:
            assert amount == 0
        else:
            # A prenote and a death notice book nothing; all else that is taken moves money.
            assert amount > 0 or (code[1] in "38" and line.returned is None)


@pytest.mark.parametrize(
    ("entry_class", "code", "amount", "addenda"),
    [
        ("PPD", "22", 5, "none"),
        ("CTX", "27", 5, "remittance"),
        ("CCD", "21", 5, "R85"),
        ("CCD", "26", 5, "R71"),
        ("COR", "21", 0, "C14"),
        ("DNE", "23", 0, "remittance"),
        ("PPD", "38", 0, "none"),
    ],
)
def test_an_entry_allowed_by_the_rules_has_no_objection(entry_class, code, amount, addenda):
    assert objection_to(line_of(entry_class, code, amount, addenda), None) is None


def test_a_notification_of_change_is_accepted_despite_other_errors_of_its_entry():
    assert objection_to(line_of("COR", "21", 0, "C01", "wrong"), "wrong") is None


def test_an_entry_from_an_unknown_bank_is_not_returned():
    objection = objection_to(line_of("PPD", "22", 5, "none", "wrong", "00000000"), None)
    assert objection is not None
    assert objection.stays

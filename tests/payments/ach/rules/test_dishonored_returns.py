"""Dishonored returns repeat the return that they refuse; contested ones are told in words."""

from datetime import date

import pytest
from tests.payments.ach.nacha.files import a_batch, a_return, an_entry
from tests.payments.ach.rules.entries import INCOMING

from billfold.payments.ach.nacha.records import EntryLine
from billfold.payments.ach.rules.dishonored_returns import dishonored_return, refusal_of


@pytest.mark.parametrize(("day", "told"), [(None, "000"), (7, "007"), (153, "153")])
def test_a_dishonored_return_repeats_trace_day_and_reason_of_the_return(day, told):
    line = EntryLine(3, a_batch(settlement_date=day), an_entry(9))
    addenda = a_return(return_reason_code="R03")
    answer = dishonored_return(line, INCOMING, addenda, code="R69")
    assert answer.information == f"   {line.entry.trace_number}{told}03"
    assert (answer.reason, answer.original_trace) == ("R69", addenda.original_entry_trace_number)
    assert answer.original_bank == addenda.original_receiving_dfi_identification


@pytest.mark.parametrize(
    ("code", "death", "said"),
    [
        ("R03", None, None),
        ("R62", None, "It was sent with trace number 021000025857298 under R03, settled on day 175."),
        ("R74", None, "was returned with trace number"),
        ("R74", date(2025, 6, 2), "was returned on 2025-06-02 with trace number"),
    ],
)
def test_the_refusal_of_a_return_names_what_it_answers(code, death, said):
    addenda = a_return(
        return_reason_code=code, date_of_death=death, addenda_information=f"{'':3}021000025857298" + "175" + "03"
    )
    told = refusal_of(addenda)
    assert told is None if said is None else said in (told or "")

"""Entries of the audit log in sentences."""

import pytest

from billfold.web.console.audit_sentences import Sentence, sentence_of
from billfold.web.console.find import Hit

ID = "6784a3cf-3826-8223-8e40-b0dbc5c01699"
NAMED = {ID: Hit("Payroll", "Pocket", "/p")}


@pytest.mark.parametrize(
    ("action", "resource_id", "details", "said"),
    [
        ("user.login", "x", {"factor": "totp"}, Sentence("signed in")),
        ("pocket.updated", ID, {"name": "Other"}, Sentence("updated the Pocket", "Payroll", "/p")),
        ("counterparty.deposits_named", "x", {}, Sentence("named the deposits of the counterparty")),
        ("report.requested", None, {"type": "POSITION_SUMMARY"}, Sentence("requested the report", "position summary")),
        (
            "subscription.created",
            "x",
            {"url": "https://a.example", "type": 7},
            Sentence("created the subscription", "https://a.example"),
        ),
    ],
)
def test_an_entry_says_what_was_done_to_what(action, resource_id, details, said):
    assert sentence_of(action, resource_id, details, NAMED) == said

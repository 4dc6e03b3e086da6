"""The consent and the first administrator of an approved application."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from billfold.onboarding.applications.approval import _consent_of, _representative
from billfold.onboarding.applications.types import Role

PARTNER, INVITE, USER = (UUID(int=n) for n in (1, 2, 3))
GIVEN = SimpleNamespace(version="2025-01", timestamp=datetime(2025, 6, 2, tzinfo=UTC))


@pytest.mark.parametrize(
    ("invite", "user", "by"),
    [
        (None, None, ("PARTNER", PARTNER)),
        (INVITE, None, ("INVITED", INVITE)),
        (INVITE, USER, ("INVITED", INVITE)),
        (None, USER, ("USER", USER)),
    ],
)
def test_consent_is_of_the_invited_person_or_the_user_who_submitted_it(invite, user, by):
    row: Any = SimpleNamespace(
        partner_id=PARTNER,
        submitted_invite_id=invite,
        submitted_by=user,
        submitted_address="203.0.113.7",
        submitted_agent="a browser",
        application_id=UUID(int=4),
    )
    form: Any = SimpleNamespace(agreement_consent=GIVEN)
    consent = _consent_of(row, form)
    assert consent is not None
    assert (consent.accepted_by, consent.accepted_by_id) == by
    assert _consent_of(row, SimpleNamespace(agreement_consent=None)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("roles", "email", "name"),
    [
        (None, "ada@b.example", "Ada"),
        ((Role.CONTROL_PERSON,), "ada@b.example", "Ada"),
        ((Role.AUTHORIZED_REPRESENTATIVE,), None, "Ada"),
        ((Role.AUTHORIZED_REPRESENTATIVE,), "ada@b.example", None),
    ],
)
async def test_only_a_named_representative_with_an_address_becomes_administrator(roles, email, name):
    party = SimpleNamespace(roles=roles, email=email, name=name)
    change: Any = SimpleNamespace(application=SimpleNamespace(parties={1: party}))
    assert await _representative(change) is None

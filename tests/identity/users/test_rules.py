"""Lockout after failed attempts, and rules of passwords, email addresses and phone numbers."""

from datetime import UTC, datetime, timedelta

import pytest

from billfold.identity.users.rules import (
    ACCOUNT_LOCKOUT,
    check_email,
    check_password,
    check_phone_number,
    count_failure,
    lockout_seconds,
)
from billfold.platform.errors import InvalidInput

NOW = datetime(2026, 3, 2, 15, tzinfo=UTC)


@pytest.mark.parametrize(("failures", "seconds"), [(0, 0), (1, 0), (2, 1), (3, 2), (4, 4), (5, 900), (50, 900)])
def test_the_login_delay_doubles_up_to_a_lock(failures, seconds):
    assert lockout_seconds(ACCOUNT_LOCKOUT, failures, NOW, now=NOW) == seconds


def test_an_expired_lock_resets_the_failure_count():
    later = NOW + timedelta(minutes=15)
    assert lockout_seconds(ACCOUNT_LOCKOUT, 5, NOW, now=later) == 0
    assert count_failure(ACCOUNT_LOCKOUT, 5, NOW, now=later) == 1
    assert count_failure(ACCOUNT_LOCKOUT, 4, NOW, now=NOW) == 5


@pytest.mark.parametrize("password", ["walnut-orbit-canyon", "correct horse battery", "ünïcödé wörds grow"])
def test_a_long_unguessable_password_is_accepted(password):
    assert check_password(password) == password


@pytest.mark.parametrize(
    "password", ["elevenchars", "123456789012", "qwertyuiopas", "Password1234!", "aaaaaaaaaaaaaaaa", "a" * 129]
)
def test_a_common_short_or_patterned_password_is_refused(password):
    with pytest.raises(InvalidInput):
        check_password(password)


def test_a_password_made_of_personal_details_is_refused():
    with pytest.raises(InvalidInput):
        check_password("anna-northwind", known=("anna@northwind.example", "Anna", "Lind"))


def test_an_email_address_is_stored_in_lower_case():
    assert check_email(" Anna@Northwind.Example ") == "anna@northwind.example"


@pytest.mark.parametrize(
    "email",
    [
        "anna",
        "@b.example",
        "anna@",
        "a b@c.example",
        "a@b@c",
        "a\r\nb@c.example",
        "a@" + "b" * 260,
        "Ben <ben@b.example>",
        "b" * 65 + "@b.example",
    ],
)
def test_an_invalid_email_address_is_refused(email):
    with pytest.raises(InvalidInput):
        check_email(email)


@pytest.mark.parametrize("number", ["2025550123", "+1202555", "+12025550123 ext 5", "x"])
def test_an_invalid_phone_number_is_refused(number):
    with pytest.raises(InvalidInput):
        check_phone_number(number)

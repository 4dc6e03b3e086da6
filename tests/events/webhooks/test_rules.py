"""The outcome of a delivery attempt, to the second, and the fields of a subscription."""

from datetime import timedelta
from uuid import UUID

import msgspec
import pytest
from msgspec.structs import replace
from tests.support.events import NOW

from billfold.events.webhooks import rules
from billfold.events.webhooks.signature import secret_errors
from billfold.events.webhooks.store import DeliveryOutcome, RetryPolicy

POLICY = RetryPolicy(
    retry_on_status_codes=[],
    backoff_coefficient=2.0,
    maximum_attempts=4,
    initial_interval_seconds=30,
    maximum_interval_seconds=100,
)
PICKY = replace(
    POLICY, retry_on_status_codes=[502, 503], backoff_coefficient=1, maximum_attempts=2, maximum_interval_seconds=30
)
FAILED, DELIVERED = DeliveryOutcome(state="failed"), DeliveryOutcome(state="delivered")


def outcome(policy, code, *, tries=1, retry_after=None, jitter=0.0):
    return rules.delivery_outcome(policy, tries=tries, code=code, retry_after=retry_after, now=NOW, jitter=jitter)


def retried_after(seconds):
    return DeliveryOutcome(state="pending", due_at=NOW + timedelta(seconds=seconds))


def test_any_2xx_response_counts_as_delivered():
    assert [outcome(POLICY, code) for code in (200, 204, 299)] == [DELIVERED] * 3


def test_a_delivery_without_a_retry_policy_is_attempted_once():
    assert [outcome(None, code) for code in (0, 301, 404, 500, 503)] == [FAILED] * 5


def test_a_retry_policy_retries_every_failure_unless_it_lists_status_codes():
    assert [outcome(POLICY, code) for code in (0, 199, 301, 404, 500)] == [retried_after(30)] * 5
    assert [outcome(PICKY, code) for code in (0, 301, 404, 500)] == [FAILED] * 4
    assert [outcome(PICKY, code) for code in (502, 503)] == [retried_after(30)] * 2


def test_retry_delays_grow_to_the_maximum_until_attempts_are_exhausted():
    after = [outcome(POLICY, 500, tries=tries) for tries in (1, 2, 3, 4, 5)]
    assert after == [retried_after(30), retried_after(60), retried_after(100), FAILED, FAILED]


def test_retry_delays_are_jittered_by_at_most_a_fifth():
    assert outcome(POLICY, 500, jitter=-1) == retried_after(24)
    assert outcome(POLICY, 500, jitter=1) == retried_after(36)
    spreads = [rules.delivery_jitter(UUID(int=n), UUID(int=n), 1) for n in range(200)]
    assert min(spreads) < -0.9
    assert max(spreads) > 0.9
    assert all(-1 <= each <= 1 for each in spreads)
    assert spreads == [rules.delivery_jitter(UUID(int=n), UUID(int=n), 1) for n in range(200)]


def test_an_extreme_retry_delay_is_capped_without_overflow():
    wild = replace(POLICY, backoff_coefficient=1_000, maximum_attempts=20, maximum_interval_seconds=86_400)
    assert rules.retry_delay(wild, 19) == timedelta(days=1)


def test_a_410_response_ends_deliveries_to_the_receiver():
    assert outcome(POLICY, 410) == DeliveryOutcome(state="failed", gone=True)


def test_a_429_or_503_with_retry_after_pauses_the_receiver():
    rest = NOW + timedelta(seconds=90)
    for code in (429, 503):
        resting = DeliveryOutcome(state="pending", due_at=rest, paused_until=rest)
        assert outcome(POLICY, code, retry_after="90") == resting
        assert outcome(None, code, retry_after="90") == DeliveryOutcome(state="failed", paused_until=rest)
    assert outcome(POLICY, 500, retry_after="90") == retried_after(30)
    assert outcome(POLICY, 429, retry_after="1").due_at == NOW + timedelta(seconds=30)


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [
        ("0", 0),
        ("7200", 3600),
        ("9" * 50, 3600),
        ("Mon, 02 Mar 2026 15:02:00 GMT", 120),
        ("Mon, 02 Mar 2126 15:02:00 GMT", 3600),
        ("Mon, 02 Mar 2020 15:02:00 GMT", None),
        ("-1", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("1.5", None),
        ("Wed, 21 Oct 2015 07:28:00 +" + "9" * 24, None),
        ("Wed, 21 Oct " + "9" * 20 + " 07:28:00 GMT", None),
    ],
)
def test_retry_after_is_parsed_and_capped_at_an_hour(retry_after, seconds):
    expected = None if seconds is None else NOW + timedelta(seconds=seconds)
    assert rules.parse_retry_after(retry_after, NOW) == expected


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "x" * 23,
        "whsec_",
        "whsec_!!!!!!!!!!!!!!!!",
        "whsec_YWJj" + "=",
        " " * 24,
        "\t \u00a0" * 8,
        "whsec_" + "AAAA" * 8,
        "whsec_" + "YWJj" * 7,
    ],
)
def test_a_short_or_malformed_webhook_secret_is_refused(secret):
    assert [error.loc for error in secret_errors(secret)] == [("body", "shared_secret")]


def test_a_webhook_secret_of_twenty_four_bytes_is_accepted():
    for secret in ("x" * 24, "whsec_" + "YWJj" * 8):
        assert not list(secret_errors(secret))


def test_an_invalid_retry_policy_is_refused_with_all_errors():
    assert not list(rules.policy_errors(POLICY))
    wrong = msgspec.structs.replace(POLICY, retry_on_status_codes=[99], maximum_interval_seconds=29)
    assert [error.loc[-1] for error in rules.policy_errors(wrong)] == [
        "maximum_interval_seconds",
        "retry_on_status_codes",
    ]

"""Webhooks: who subscribed to which kinds of events, and what was delivered to whom.

Owns subscriptions with their secrets, the sequences of events, deliveries and attempts, and the
rules of trying again. Never calls anybody: couriers do, through a port.
"""

from billfold.domain.webhooks.addresses import check_url
from billfold.domain.webhooks.attempts import Failing, forget_attempts, record_attempts
from billfold.domain.webhooks.lanes import (
    claim_lanes,
    free_the_dead,
    leave_lane,
    read_lane,
    read_page,
    show_up,
    sign_off,
    sign_on,
)
from billfold.domain.webhooks.reads import (
    attempts_of_events,
    get_subscription,
    list_attempts,
    list_subscriptions,
    place_of,
)
from billfold.domain.webhooks.repairs import (
    recover,
    replay_missing,
    resend,
    send_example,
    simulate,
)
from billfold.domain.webhooks.rules import (
    check_policy,
    check_secret,
    is_weak_secret,
    outcome_of,
    spread_of,
)
from billfold.domain.webhooks.sequencing import sequence
from billfold.domain.webhooks.subscriptions import (
    create_subscription,
    delete_subscription,
    update_subscription,
)
from billfold.domain.webhooks.types import (
    Attempt,
    AttemptRow,
    Changes,
    Delivery,
    Lane,
    Outcome,
    Owner,
    RetryPolicy,
    Simulated,
    SubscriptionRow,
)

__all__ = [
    "Attempt",
    "AttemptRow",
    "Changes",
    "Delivery",
    "Failing",
    "Lane",
    "Outcome",
    "Owner",
    "RetryPolicy",
    "Simulated",
    "SubscriptionRow",
    "attempts_of_events",
    "check_policy",
    "check_secret",
    "check_url",
    "claim_lanes",
    "create_subscription",
    "delete_subscription",
    "forget_attempts",
    "free_the_dead",
    "get_subscription",
    "is_weak_secret",
    "leave_lane",
    "list_attempts",
    "list_subscriptions",
    "outcome_of",
    "place_of",
    "read_lane",
    "read_page",
    "record_attempts",
    "recover",
    "replay_missing",
    "resend",
    "send_example",
    "sequence",
    "show_up",
    "sign_off",
    "sign_on",
    "simulate",
    "spread_of",
    "update_subscription",
]

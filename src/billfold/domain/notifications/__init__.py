"""Notifications: what a customer's people are told, who hears of what, and what they have read.

Owns the types with the platform's audiences, the audiences teams choose, and every notification.
Never decides what happened: whoever causes something tells of it, in the same transaction.
"""

from billfold.domain.notifications.audiences import (
    PEOPLE_MAX,
    clear_audience,
    get_audience,
    get_kind,
    list_audiences,
    set_audience,
)
from billfold.domain.notifications.kinds import KINDS, ROLES, Kind
from billfold.domain.notifications.money import MEANINGS, tell_of_money
from billfold.domain.notifications.reads import get_notification, list_notifications
from billfold.domain.notifications.types import Audience, Notification, Reader, Status
from billfold.domain.notifications.writes import notify, set_status

__all__ = [
    "KINDS",
    "MEANINGS",
    "PEOPLE_MAX",
    "ROLES",
    "Audience",
    "Kind",
    "Notification",
    "Reader",
    "Status",
    "clear_audience",
    "get_audience",
    "get_kind",
    "get_notification",
    "list_audiences",
    "list_notifications",
    "notify",
    "set_audience",
    "set_status",
    "tell_of_money",
]

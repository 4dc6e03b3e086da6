"""What an operator knows about single days: closed, closing early, open after all.

Owns the overrides and the calendars made with them. Never decides what a day means.
"""

from billfold.domain.business_days.reads import Override, list_overrides, load_calendars
from billfold.domain.business_days.writes import keep_override, remove_override

__all__ = ["Override", "keep_override", "list_overrides", "load_calendars", "remove_override"]

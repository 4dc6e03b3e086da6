"""The list of event kinds that are not raised yet is complete and correct."""

import re
import tomllib

from tests.architecture.pages import SOURCE, text_of

from billfold.events import kinds
from billfold.events.kinds import KINDS
from billfold.events.notifications import kinds as notification_kinds
from billfold.ledger.types import EventKind

LISTED = tomllib.loads(text_of("docs/unraised.toml"))
NAMES = {name: kind.name for name, kind in vars(kinds).items() if isinstance(kind, EventKind)}


def raised_in(path):
    """Return the kinds of events whose constants a file uses."""
    return {NAMES[name] for name in re.findall(r"\bkinds\.(\w+)", path.read_text()) if name in NAMES}


def test_every_event_kind_is_raised_in_src_or_listed_as_unraised():
    raised = set().union(*map(raised_in, SOURCE.rglob("*.py")))
    assert raised
    assert set(LISTED["events"]) == set(KINDS) - raised


def test_every_notification_type_is_raised_in_src_or_listed_as_unraised():
    table = SOURCE / "events" / "notifications" / "kinds.py"
    texts = "".join(path.read_text() for path in SOURCE.rglob("*.py") if path != table)
    raised = {name for name in notification_kinds.NOTIFICATION_TYPES if f'"{name}"' in texts}
    assert set(LISTED["notifications"]) == set(notification_kinds.NOTIFICATION_TYPES) - raised

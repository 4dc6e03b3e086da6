"""The list of what is never told of yet is right: neither a kind too many on it nor one too few."""

import ast
import tomllib

from tests.architecture.pages import SOURCE, text_of

from billfold.events import kinds
from billfold.events.kinds import KINDS
from billfold.events.notifications import kinds as notification_kinds

LISTED = tomllib.loads(text_of("docs/unraised.toml"))
NAMES = {name: kind.name for name, kind in vars(kinds).items() if isinstance(kind, kinds.EventKind)}
DECLARED = SOURCE / "events"


def raised_in(path):
    """Return the kinds whose constants a file names: it raises them."""
    return {
        NAMES[node.attr]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in NAMES and ast.unparse(node.value) == "kinds"
    }


def test_every_kind_is_raised_somewhere_or_listed():
    sources = [path for path in SOURCE.rglob("*.py") if not path.is_relative_to(DECLARED)]
    raised = set().union(*map(raised_in, sources))
    assert raised
    assert set(LISTED["events"]) == set(KINDS) - raised


def test_every_type_of_notification_is_raised_somewhere_or_listed():
    table = SOURCE / "events" / "notifications" / "kinds.py"
    texts = "".join(path.read_text() for path in SOURCE.rglob("*.py") if path != table)
    raised = {name for name in notification_kinds.NOTIFICATION_TYPES if f'"{name}"' in texts}
    assert set(LISTED["notifications"]) == set(notification_kinds.NOTIFICATION_TYPES) - raised

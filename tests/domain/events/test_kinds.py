"""The kinds of events are those that flows write."""

import re
from pathlib import Path

import billfold.flows
from billfold.domain.events import CUSTOMER_KINDS


def test_kinds_are_in_order_and_told_once():
    assert list(CUSTOMER_KINDS) == sorted(set(CUSTOMER_KINDS))


def test_what_flows_write_for_customers_can_be_subscribed_to():
    source = "".join(path.read_text() for path in Path(billfold.flows.__file__).parent.glob("*.py"))
    written = set(re.findall(r'"(transfers\.(?:on-us|wire\.in)[a-z.-]*)"', source))
    assert written
    assert all(any(kind.startswith(each) for kind in CUSTOMER_KINDS) for each in written)

"""A receiver is certified by what it refuses as much as by what it accepts."""

import httpx
import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from billfold.sandbox.cli.certify import try_receiver

SECRET, KIND = "a secret of at least 24 bytes", "transfers.wire.in.success"
FORGED = {
    "the secret of somebody else",
    "a body that was changed",
    "a signature of ten minutes ago",
    "a signature of ten minutes ahead",
    "no signature",
}


def careful(request):
    """A receiver by the book: the library of Standard Webhooks decides."""
    try:
        Webhook(SECRET.encode()).verify(request.content, dict(request.headers))
    except WebhookVerificationError:
        return httpx.Response(401)
    return httpx.Response(204)


def trusting(request):
    return httpx.Response(200)


def forgetful(request):
    """It has no idea of kinds that came after it."""
    return httpx.Response(500 if b"new.kind" in request.content else careful(request).status_code)


def silent(request):
    raise httpx.ReadTimeout("no answer")


@pytest.mark.parametrize(
    ("receiver", "failed"),
    [(careful, set()), (trusting, FORGED), (forgetful, {"a kind of event that is new"}), (silent, None)],
)
def test_a_receiver_fails_by_the_deliveries_that_it_takes_wrongly(receiver, failed):
    with httpx.Client(transport=httpx.MockTransport(receiver)) as http:
        found = try_receiver(http, "http://receiver.example/hooks", SECRET, KIND)
    assert len(found) == 12
    wrong = {each.tried for each in found if not each.passed}
    assert wrong == (failed if failed is not None else {each.tried for each in found})

"""Our own client passes each check, and a careless one fails by the sentence that says why."""

import importlib.util
import time
from uuid import uuid4

import httpx
import pytest
from tests.clients.python.bridge import Bridge, in_thread
from tests.support.apps import lend_partner_app, take_back
from tests.support.sandbox_process import SOURCE
from typing_extensions import override

from billfold.identity.partners import credentials
from billfold.platform.clock import wall_now
from billfold.sandbox.cli.certify_api import Answer, Certification
from billfold.sandbox.control.fault_injection import FaultyApi
from billfold_client import ApiError
from billfold_client.partner import PartnerApi
from billfold_client.signing import PartnerAuth
from tests.identity.partners.test_jwt_login_routes import KEYS, pem_of, private_pem
from tests.support.world import new_partner

_spec = importlib.util.spec_from_file_location("certified", SOURCE.parent / "examples/certified.py")
certified = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(certified)


class CutBridge(Bridge):
    """As a network: a body that is shorter than its head says is an error."""

    @override
    async def _send(self, request):
        answer = await super()._send(request)
        if len(answer.content) < int(answer.headers.get("content-length", 0)):
            raise httpx.RemoteProtocolError("peer closed connection without sending complete message body")
        return answer


@pytest.fixture
async def connect(bank):
    """Make clients of a sandbox's partner: `connect(attempts=1)`."""
    partner, key = await new_partner(bank), KEYS["ES256"]
    kid = await credentials.register_partner_key(
        bank.pool, partner.user_id, algorithm="ES256", public_pem=pem_of(key), now=wall_now()
    )
    app = lend_partner_app(bank)
    bridge, url = CutBridge(FaultyApi(app, bank.settings.state_dir)), f"https://{partner.slug}.localhost"

    def connected(**options):
        auth = PartnerAuth(
            url=url,
            username=partner.username,
            shared_secret=partner.secret,
            private_key=private_pem(key).decode(),
            kid=str(kid),
        )
        return PartnerApi(httpx.Client(base_url=url, auth=auth, transport=bridge), **options)

    yield connected
    await take_back(app)


def driven(perform):
    """Return what gives tasks to a function."""

    def drive(task):
        try:
            return Answer(done=True, words=perform(task))
        except (ApiError, httpx.TransportError, KeyError) as failure:
            return Answer(done=False, words=[repr(failure)])

    return drive


@in_thread
def test_the_python_client_passes_all_checks(connect):
    own = connect()
    found = Certification(connect(attempts=1), driven(lambda task: certified.perform(own, task))).run()
    assert [(each.tried, each.answer) for each in found if not each.passed] == []
    assert len(found) == 12

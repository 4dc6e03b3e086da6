"""Our own client passes each check, and a careless one fails by the sentence that says why."""

import asyncio
from datetime import UTC, date, datetime, timedelta
from runpy import run_path
from types import SimpleNamespace
from uuid import uuid4

import httpx
import msgspec
import pytest
from tests.clients.python.bridge import Bridge, in_thread
from tests.clients.python.test_customer_api import register_client
from tests.identity.partners.test_jwt_login_routes import KEYS, pem_of, private_pem
from tests.support.apps import lend_customer_app, lend_partner_app, take_back
from tests.support.oauth import member
from tests.support.sandbox_process import SOURCE
from tests.support.world import close_app, new_partner
from typing_extensions import override

from billfold.events.webhooks.http_client import GuardedConnection, WebhookResponse
from billfold.identity.members.rules import PERSONAL_SCOPES
from billfold.identity.partners import credentials
from billfold.oauth.rules.authorization_params import SCOPES
from billfold.oauth.server.app import create_auth_app
from billfold.oauth.types import CLIENT_CREDENTIALS
from billfold.platform.clock import wall_now
from billfold.platform.dates import et_date
from billfold.platform.settings.settings import Settings
from billfold.sandbox.cli import certify_api
from billfold.sandbox.cli.certify_api import Answer, Certification, Renewal, driver_of, next_clock_change
from billfold.sandbox.cli.certify_customer import CustomerCertification
from billfold.sandbox.control.fault_injection import FaultyApi, FaultyWebhookClient
from billfold.sandbox.control.faults import FaultKind, SandboxFault
from billfold.wiring.server import HostRouter
from billfold_client import ApiError
from billfold_client.customer import CustomerApi
from billfold_client.dpop import DpopAuth
from billfold_client.oauth import Authorization
from billfold_client.partner import PartnerApi
from billfold_client.signing import PartnerAuth

CERTIFIED, APP = (
    SimpleNamespace(**run_path(str(SOURCE.parent / "examples" / name))) for name in ("certified.py", "app/main.py")
)
PAYMENTS = {each.kind: each for each in certify_api.PAYMENTS}


class CutBridge(Bridge):
    """As a network: a body that is shorter than its head says is an error."""

    @override
    async def _send(self, request):
        answer = await super()._send(request)
        if len(answer.content) < int(answer.headers.get("content-length", 0)):
            raise httpx.RemoteProtocolError("peer closed connection without sending complete message body")
        return answer


@pytest.fixture
async def network(bank):
    """The network between clients and both APIs of a sandbox, where requests meet faults."""
    partner, customer, auth = lend_partner_app(bank), lend_customer_app(bank), create_auth_app(bank)
    yield CutBridge(HostRouter(bank.settings, partner=FaultyApi(partner), auth=auth, customer=FaultyApi(customer)))
    await close_app(auth)
    for app in (partner, customer):
        await take_back(app)


@pytest.fixture
async def connect(bank, network):
    """Make clients of a sandbox's partner: `connect(attempts=1)`."""
    partner, key = await new_partner(bank), KEYS["ES256"]
    kid = await credentials.register_partner_key(
        bank.pool, partner.user_id, algorithm="ES256", public_pem=pem_of(key), now=wall_now()
    )
    url = f"https://{partner.slug}.localhost"

    def connected(shared_secret=partner.secret, **options):
        auth = PartnerAuth(
            url=url,
            username=partner.username,
            shared_secret=shared_secret,
            private_key=private_pem(key).decode(),
            kid=str(kid),
        )
        return PartnerApi(httpx.Client(base_url=url, auth=auth, transport=network), **options)

    return connected


@pytest.fixture
async def service_user(bank, network, connect):
    """Make clients of the service user of a customer, with its key or another one."""
    customer = await asyncio.to_thread(lambda: connect().sandbox_customer(name="Northwind").id)
    fields = {"redirect_uris": (), "post_logout_redirect_uris": ()}
    async with bank.pool.acquire() as conn:
        await member(conn, customer)  # somebody who may approve
    own = await register_client(
        bank,
        "sandbox-service",
        grant_types=(CLIENT_CREDENTIALS,),
        customer_id=customer,
        scopes=tuple(each for each in SCOPES if each not in PERSONAL_SCOPES),
        requires_nonce=False,
        **fields,
    )

    def connected(attempts=4, **key):
        auth = DpopAuth(Authorization(msgspec.structs.replace(own, **key)))
        http = httpx.Client(base_url=bank.settings.customer_origin, auth=auth, transport=network)
        return CustomerApi(http, attempts=attempts)

    return connected


def renewal_of(judge, make):
    """Return what gives a judge new credentials: it takes the authentication of the client that they make."""

    def adopt(new):
        given = {name: text for name, text in msgspec.to_builtins(new).items() if text is not None}
        judge.http.auth = make(**given).http.auth

    return Renewal(adopt, lambda new: None)


def renewing(perform, client, make):
    """Return what does tasks with a client, which takes new credentials as a task."""

    def do(task):
        if task["do"] == "credentials":
            del task["do"]
            client.http.auth = make(**task).http.auth
            return []
        return perform(client, task)

    return do


@pytest.fixture
def quick(monkeypatch):
    """Certify without the walk to a clock change, and without most pauses."""
    monkeypatch.setattr(certify_api, "next_clock_change", lambda now: et_date(now) + timedelta(days=2))
    short = [each._replace(seconds=each.seconds * (kind is FaultKind.RATE_LIMITED)) for kind, each in PAYMENTS.items()]
    monkeypatch.setattr(certify_api, "PAYMENTS", short)
    monkeypatch.setattr("billfold_client.calls._FIRST_WAIT_SECONDS", 0.0)


def driven(perform):
    """Return what gives tasks to a function."""

    def drive(task):
        try:
            return Answer(done=True, words=perform(task))
        except (ApiError, httpx.TransportError, KeyError) as failure:
            return Answer(done=False, words=[repr(failure)])

    return drive


@in_thread
@pytest.mark.usefixtures("quick")
def test_the_python_client_and_the_example_application_pass(connect):
    own, judge = connect(), connect(attempts=1)
    client = driven(renewing(CERTIFIED.perform, own, connect))
    found = Certification(judge, client, renewal_of(judge, connect)).run()
    assert [(each.tried, each.answer) for each in found if not each.passed] == []
    assert len(found) == 15
    bank = APP.Bank(own)

    def pay(task):
        user = SimpleNamespace(pocket_id=task["pocket_id"], payees={("Payee", "1"): task["counterparty_id"]})
        assert bank.pay(user, APP.Payment(uuid4(), "Payee", "1", task["amount_cents"]))[0] == "COMPLETED"
        return []

    application = Certification(judge, driven(pay), renewal_of(judge, connect))
    lost = [application.pay(PAYMENTS[kind]) for kind in (FaultKind.ANSWER_LOST, FaultKind.CONNECTION_DROPPED)]
    assert [each.answer for each in lost] == ["as it must be"] * 2


@in_thread
@pytest.mark.usefixtures("quick")
def test_the_python_client_of_the_customer_api_passes_and_one_that_keeps_its_key_fails(
    connect, service_user, monkeypatch
):
    monkeypatch.setattr(certify_api, "PAYMENTS", [PAYMENTS[FaultKind.ANSWER_LOST], PAYMENTS[FaultKind.RATE_LIMITED]])
    judge, own, own_judge = connect(attempts=1), service_user(), service_user()
    client = driven(renewing(CERTIFIED.perform_as_customer, own, service_user))
    both = {"customer": own_judge, "client_id": "sandbox-service"}
    certification = CustomerCertification(judge, client, renewal_of(own_judge, service_user), **both)
    found = certification.run()
    assert [(each.tried, each.answer) for each in found if not each.passed] == []
    assert len(found) == 12
    certification._drive = driven(lambda task: CERTIFIED.perform_as_customer(own, task))
    assert [each.passed for each in certification.rotate()] == [True, True, False]


@in_thread
def test_a_careless_client_fails_by_what_it_does_wrong(connect):
    once, own = connect(attempts=1), connect()

    def hasty(task, attempts=3, **fixed):
        """It sends again at once, whatever the answer, under a new key each time."""
        for left in reversed(range(attempts)):
            try:
                return CERTIFIED.perform(once, task)
            except (ApiError, httpx.TransportError):
                if not left:
                    raise
        return []

    def strict(task):
        """It ends a list at what it does not know."""
        rows = own.http.get(f"/api/v2/pockets/{task['pocket_id']}/transactions/").json()
        if "field_of_a_later_release" in rows:
            raise KeyError("field_of_a_later_release")
        return [each["id"] for each in rows["items"]] * 2

    known = renewal_of(own, connect)
    careless = Certification(own, driven(lambda task: (hasty if task["do"] == "pay" else strict)(task)), known)
    twice = "It paid 2 times. It used 2 idempotency keys for one payment; a retry has the first key."
    assert careless.pay(PAYMENTS[FaultKind.ANSWER_LOST]).answer == twice
    assert careless.pay(PAYMENTS[FaultKind.CONNECTION_DROPPED]).answer == twice
    limited = careless.pay(PAYMENTS[FaultKind.RATE_LIMITED])
    assert (limited.passed, limited.answer.endswith("It sent again after 0.0 s; Retry-After was 1 s.")) == (False, True)
    assert careless.pay_in_vain("", pocket_id=str(uuid4())).answer == "It sent 3 requests."
    unknown = careless.list_rows("", {"fault": FaultKind.NEW_FIELDS})
    assert unknown.answer == "It missed 6 of 6 rows. It reported a failure."
    pages = careless.list_rows("", {"fault": FaultKind.SHORT_PAGES})
    assert pages.answer.startswith("It missed ")
    assert pages.answer.endswith(" It read 2 rows twice.")
    idle = Certification(own, driven(lambda task: []), known)
    assert idle.pay(PAYMENTS[FaultKind.SLOW]).answer == "It sent no request of create_on_us_transfer. It did not pay."
    gives_up = Certification(own, driven(lambda task: CERTIFIED.perform(once, task)), known)
    assert gives_up.pay(PAYMENTS[FaultKind.ANSWER_LOST]).answer == (
        "It reported a failure of a payment that was made. It did not send the request again."
    )


async def test_faults_and_credentials_belong_to_the_first_partner(world, other_partner, customer_desks, service_users):
    first, other = world, other_partner
    path = "/api/v1/sandbox/faults/"
    for fault, target in (
        ("slow", "transfers.wire.in.success"),
        ("delivery-lost", "get_pocket"),
        ("slow", "sandbox_clock"),
    ):
        refused = await first.ask("POST", path, {"fault": fault, "target": target}, status=422)
        assert [each["loc"] for each in refused.json()["detail"]] == [["body", "target"]]
    await first.ask("POST", path, {"fault": "slow", "times": 1001}, status=422)
    for method, body in (("POST", {"fault": "slow"}), ("GET", {}), ("DELETE", {})):
        refused = await other.send(method, path, body)
        assert refused.json()["code"] == "sandbox-of-another-partner"
    assert (await first.get(path))["items"] == []
    rotate, code = "/api/v1/sandbox/credentials/rotate/", "sandbox-of-another-partner"
    for desk, expected in ((first, 201), (other, 404)):
        _, user = await service_users(await customer_desks(await desk.customer()), "pockets.read")
        await first.ask("POST", rotate, {"client_id": user["client_id"]}, status=expected)
        await other.refused("POST", rotate, {"client_id": user["client_id"]}, status=403, code=code)


def test_the_days_of_a_clock_change_are_found_ahead():
    days = [next_clock_change(datetime(2026, month, 1, tzinfo=UTC)) for month in (1, 3, 7)]
    assert days == [date(2026, 3, 8), date(2026, 3, 8), date(2026, 11, 1)]
    assert next_clock_change(datetime(2026, 3, 7, tzinfo=UTC)) == date(2026, 3, 8)
    assert next_clock_change(datetime(2026, 3, 7, 12, tzinfo=UTC)) == date(2026, 11, 1)


def test_a_task_is_the_input_of_a_command_and_its_status_the_outcome():
    said = driver_of("""python3 -c 'import json,sys; print(json.load(sys.stdin)["do"], "a"); sys.exit(0)'""", 10)
    assert said({"do": "pay"}) == Answer(done=True, words=["pay", "a"])
    assert driver_of("false", 10)({}) == Answer(done=False, words=[])
    assert driver_of("sleep 9", 0.05)({}) == Answer(done=False, words=[])
    assert driver_of("http://127.0.0.1:9", 1)({}) == Answer(done=False, words=[])


async def test_deliveries_are_lost_doubled_late_or_overtaken(tmp_path, monkeypatch):
    arrived = []

    async def post(self, headers, body):
        arrived.append(headers["n"])
        return WebhookResponse(code=200, message="OK")

    monkeypatch.setattr(GuardedConnection, "post", post)
    client = FaultyWebhookClient(Settings(state_dir=tmp_path))
    kinds = (
        FaultKind.DELIVERY_LOST,
        FaultKind.DELIVERY_DOUBLED,
        FaultKind.DELIVERY_LATE,
        FaultKind.DELIVERY_OUT_OF_ORDER,
    )
    with client.faults.changed() as faults:
        for skip, kind in enumerate(kinds):
            faults.append(SandboxFault(id=uuid4(), fault=kind, target="a.b", skip=skip, seconds=0, requests=[]))
    connection = client.connection("http://receiver.example")
    codes = [(await connection.post({"n": str(n)}, b'{"event_type": "a.b"}')).code for n in range(5)]
    assert codes == [0, 200, 200, 202, 200]
    for task in list(client.overtaken):
        await task
    await connection.post({"n": "other"}, b'{"event_type": "c"}')
    assert arrived == ["1", "1", "2", "4", "3", "other"]

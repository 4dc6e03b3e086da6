"""`billfold certify`: plays the bank to an integrator's own system, and says what the system got wrong."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import httpx
import jwt
import msgspec
import typer

import billfold
from billfold.cli.command import CommandGroup, console, print_success, table
from billfold.cli.context import CliContext, CliError
from billfold.events.kinds import KINDS, PARTNER_KINDS
from billfold.events.webhook_openapi import example_delivery
from billfold.events.webhooks.signature import sign_webhook
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.sandbox.cli.certify_api import Certification, Finding, Renewal, driver_of
from billfold.sandbox.cli.certify_customer import CustomerCertification
from billfold.sandbox.cli.listen import check_kinds, check_secret, parse_url
from billfold.sandbox.cli.running_apis import open_customer_api, open_partner_api
from billfold.sandbox.running_sandbox import (
    SERVICE_USER,
    SandboxFile,
    customer_auth,
    partner_auth,
    require_sandbox_file,
    with_credentials,
    write_sandbox_file,
)
from billfold_client.customer import CustomerApi
from billfold_client.partner import PartnerApi, RotatedCredentials

group = CommandGroup(
    "certify",
    "Try your own system with what a bank does to it.",
    example="webhooks http://127.0.0.1:8000/webhooks --secret $SECRET",
)
Report = Annotated[Path | None, typer.Option(help="Write the findings, signed with the partner's key (JWS).")]
ANSWER_SECONDS = 10.0
"""As long as the bank waits for the answer to a delivery."""
_SKEW = timedelta(minutes=10)
_OTHER_SECRET = "the secret of somebody else, or an old one"  # noqa: S105 - it is wrong on purpose
_GUIDE = "Read `/docs/guides/certify` of the bank."
_BELIEVED, _REFUSED = "is accepted (2xx)", "is refused (4xx)"


class Delivery(NamedTuple):
    """One delivery: what is tried, its body and headers, and whether a receiver must believe it."""

    name: str
    body: bytes
    headers: dict[str, str]
    is_genuine: bool


def deliveries(secret: str, kind: str) -> Iterator[Delivery]:
    """Yield the deliveries of a certification, in order: genuine ones as a network brings them, and forgeries."""
    event = _event(kind)
    yield _delivery("a genuine event", event, secret)
    yield _delivery("the same event again", event, secret)
    yield _delivery("an event that comes after a later one", event | {"event_id": _id(), "sequence": 7}, secret)
    yield _delivery("an event of last year, delivered now", _event(kind, timestamp="2024-01-02T03:04:05Z"), secret)
    yield _delivery(
        "a kind of event that is new", _event(kind, event_type="new.kind.success", payload={"a": 1}), secret
    )
    yield _delivery(
        "fields that are new", _event(kind, novelty={"a": [1]}, payload=event["payload"] | {"b": 2}), secret
    )
    yield _delivery("a secret that is being rotated", _event(kind), secret, also=_OTHER_SECRET)
    yield _delivery("the secret of somebody else", _event(kind), _OTHER_SECRET, is_genuine=False)
    yield _delivery("a body that was changed", _event(kind), secret, is_genuine=False, change=lambda body: body + b" ")
    yield _delivery("a signature of ten minutes ago", _event(kind), secret, is_genuine=False, skew=-_SKEW)
    yield _delivery("a signature of ten minutes ahead", _event(kind), secret, is_genuine=False, skew=_SKEW)
    unsigned = _delivery("no signature", _event(kind), secret, is_genuine=False)
    yield unsigned._replace(headers={"content-type": "application/json"})


def _id() -> str:
    return str(ids.new())


def _event(kind: str, **fields: Any) -> dict[str, Any]:
    return {**example_delivery(KINDS[kind], customer=False), "event_id": _id(), **fields}


def _delivery(
    name: str,
    event: dict[str, Any],
    secret: str,
    *,
    also: str = "",
    is_genuine: bool = True,
    skew: timedelta = timedelta(),
    change: Callable[[bytes], bytes] = bytes,
) -> Delivery:
    """Return a signed delivery; `change` alters its body after it was signed."""
    body, at = msgspec.json.encode(event), int((wall_now() + skew).timestamp())
    signatures = [sign_webhook(each, event["event_id"], at, body) for each in (also, secret) if each]
    headers = {
        "content-type": "application/json",
        "webhook-id": event["event_id"],
        "webhook-timestamp": str(at),
        "webhook-signature": " ".join(signatures),
    }
    return Delivery(name, change(body), headers, is_genuine)


def try_receiver(http: httpx.Client, url: str, secret: str, kind: str) -> list[Finding]:
    """Return how a receiver took each delivery."""
    return [_finding(http, url, each) for each in deliveries(secret, kind)]


def _finding(http: httpx.Client, url: str, delivery: Delivery) -> Finding:
    expected = _BELIEVED if delivery.is_genuine else _REFUSED
    try:
        status = http.post(url, content=delivery.body, headers=delivery.headers).status_code
    except httpx.HTTPError as failure:
        return Finding(delivery.name, expected, type(failure).__name__, passed=False)
    passed = httpx.codes.is_success(status) if delivery.is_genuine else httpx.codes.is_client_error(status)
    return Finding(delivery.name, expected, str(status), passed)


@group.command("webhooks http://127.0.0.1:8000/webhooks --secret $SECRET --report report.jws")
def webhooks(
    context: CliContext,
    url: Annotated[str, typer.Argument(help="Where your system receives webhooks.")],
    *,
    secret: Annotated[str, typer.Option(help="The shared secret of your subscription.", envvar="SECRET")],
    kind: Annotated[str, typer.Option("--event", help="The kind of the genuine events.")] = "transfers.wire.in.success",
    report: Report = None,
) -> None:
    """Deliver to your receiver what is genuine, doubled, late, disordered or new, and forgeries that it must refuse."""
    check_kinds([kind], PARTNER_KINDS)
    url = parse_url(url)
    with httpx.Client(timeout=ANSWER_SECONDS) as http:
        found = try_receiver(http, url, check_secret(secret), kind)
    _conclude(context, found, url, praise="deliveries were taken as they must be", report=report)


@group.command("api 'python examples/certified.py' --report report.jws", "api http://127.0.0.1:8000/certify --customer")
def api(
    context: CliContext,
    target: Annotated[str, typer.Argument(help="A command that reads a task from its input, or a URL to POST it to.")],
    *,
    customer: Annotated[bool, typer.Option("--customer", help="It is a client of the Customer API.")] = False,
    seconds: Annotated[float, typer.Option(min=1, help="How long a task may take.")] = 120,
    report: Report = None,
) -> None:
    """Let your client pay and list while answers are lost, requests refused and rows added, and judge its requests.

    It gets tasks as JSON, one by one, and uses the sandbox of this folder; see
    `/docs/guides/certify`. The sandbox gets a new customer, and its clock moves over
    months: fork it first, and rewind it afterwards.
    """
    state_dir, drive = context.settings().state_dir, driver_of(target, seconds)
    box = require_sandbox_file(state_dir)
    with open_partner_api(box, attempts=4) as partner, open_customer_api(box, attempts=4) as own:
        renewal = _renewal(state_dir, partner, own)
        if customer:
            found = CustomerCertification(partner, drive, renewal, customer=own, client_id=SERVICE_USER).run()
        else:
            found = Certification(partner, drive, renewal).run()
    _conclude(context, found, target, praise="checks were passed", report=report)


def _renewal(state_dir: Path, partner: PartnerApi, own: CustomerApi) -> Renewal:
    """Return what takes new credentials, and at the end writes them into the file of the sandbox."""

    def changed(new: RotatedCredentials) -> SandboxFile:
        return with_credentials(require_sandbox_file(state_dir), **msgspec.to_builtins(new))

    def adopt(new: RotatedCredentials) -> None:
        partner.http.auth, own.http.auth = partner_auth(changed(new)), customer_auth(changed(new))

    return Renewal(adopt, lambda new: write_sandbox_file(state_dir, changed(new)))


def _conclude(context: CliContext, found: list[Finding], target: str, *, praise: str, report: Path | None) -> None:
    """Print the findings, and write them to a signed report. Raises CliError if any failed."""
    rows = [("passed" if each.passed else "FAILED", each.tried, each.expected, each.answer) for each in found]
    console.print(table("", ("", "tried", "must be", "answer"), rows))
    if report is not None:
        box = require_sandbox_file(context.settings().state_dir)
        report.write_text(signed_report(found, target, private_key=box.private_key, kid=box.kid), encoding="utf-8")
    passed = sum(each.passed for each in found)
    if passed < len(found):
        raise CliError(f"{passed} of {len(found)} {praise}.", _GUIDE)
    print_success(f"All {passed} {praise}.")


def signed_report(found: list[Finding], url: str, *, private_key: str, kid: str) -> str:
    """Return findings as a JWS (ES256, compact)."""
    told = {"iat": int(wall_now().timestamp()), "bank": billfold.__version__, "receiver": url}
    return jwt.encode(told | {"findings": msgspec.to_builtins(found)}, private_key, "ES256", {"kid": kid})

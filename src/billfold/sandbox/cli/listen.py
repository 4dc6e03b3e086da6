"""`billfold listen`: a sandbox's events on this screen, and forwarded to a local endpoint."""

import base64
import hmac
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Annotated, Literal
from urllib.parse import urlsplit

import httpx
import msgspec
import typer

from billfold.cli.command import CommandGroup, console, key_value_table, print_success
from billfold.cli.context import CliContext, CliError
from billfold.events.kinds import CUSTOMER_KINDS, KINDS, PARTNER_KINDS
from billfold.events.schemas import example_payload
from billfold.events.webhooks.signature import sign_webhook, webhook_key
from billfold.platform import ids
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.dates import format_eastern
from billfold.sandbox.cli.running_apis import open_customer_api, open_partner_api
from billfold.sandbox.running_sandbox import SandboxFile, require_sandbox_file
from billfold_client.shapes import UNSET
from billfold_client.streams import StreamMessage

group = CommandGroup()
TIMEOUT_SECONDS = 10.0
SECRET_PURPOSE = b"billfold listen"
_PORT = re.compile(r"^:?(\d+)(?=/|$)")

Kinds = Annotated[list[str] | None, typer.Option("--event", "-e", help="Only this kind; may be given several times.")]
ForwardTo = Annotated[
    str | None, typer.Option(help="Where to send each event: `4242`, `localhost:4242/hooks`, or a whole url.")
]
Api = Annotated[Literal["partner", "customer"], typer.Option(help="Whose events: `partner` means all customers.")]
After = Annotated[int | None, typer.Option(min=0, help="Begin after this sequence; 0 replays everything.")]
Secret = Annotated[str | None, typer.Option(help="Sign with this secret, not with the sandbox's own.")]
Count = Annotated[int | None, typer.Option(min=1, help="End after so many events.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print envelopes, one a line.")]


@group.command("listen", "listen --forward-to localhost:4242/webhooks")
def listen(
    context: CliContext,
    *,
    forward_to: ForwardTo = None,
    kinds: Kinds = None,
    api: Api = "partner",
    after: After = None,
    secret: Secret = None,
    count: Count = None,
    as_json: AsJson = False,
) -> None:
    """Show a sandbox's events as they happen, and forward them to your endpoint.

    No tunnel and no subscription is needed: this reads the event stream
    with the credentials of the sandbox of this folder.

    Forwarded events look like deliveries: the same body, and the headers
    webhook-id, webhook-timestamp and webhook-signature of Standard Webhooks,
    under a secret that is printed first and stays as long as the sandbox does.
    An event is sent once; the response is shown.

    In another window: `billfold trigger transfers.wire.in.success`
    """
    box = require_sandbox_file(context.settings().state_dir)
    customer = api == "customer"
    check_kinds(kinds or (), CUSTOMER_KINDS if customer else PARTNER_KINDS)
    forward = None
    if forward_to is not None:
        forward = Forwarder(parse_url(forward_to), check_secret(secret or listener_secret(box)))
    with (open_customer_api if customer else open_partner_api)(box) as client:
        next(client.list_event_types().by_page())  # a stream would try again forever
        try:
            stream = client.stream_events(after_sequence=UNSET if after is None else str(after), event_type=kinds or ())
            messages = with_banner(stream, forward, as_json=as_json)
            listen_to(messages, forward, count=count, as_json=as_json)
        except KeyboardInterrupt:
            raise typer.Exit from None


class Forwarder:
    """Forwards events to a local endpoint, signed like webhook deliveries."""

    def __init__(self, url: str, secret: str) -> None:
        self.url, self.secret = url, secret
        self._http = httpx.Client(timeout=TIMEOUT_SECONDS, trust_env=False, verify=False)  # noqa: S501 - a program under development

    def send(self, event_id: str, body: bytes) -> str:
        """Return a line about the response."""
        at = int(wall_now().timestamp())
        headers = {
            "content-type": "application/json",
            "user-agent": "billfold-listen/1",
            "webhook-id": event_id,
            "webhook-timestamp": str(at),
            "webhook-signature": sign_webhook(self.secret, event_id, at, body=body),
        }
        began = monotonic()
        try:
            response = self._http.post(self.url, content=body, headers=headers)
        except httpx.TransportError as error:
            return f"[red]no answer: {error}[/]"
        duration = f"{(monotonic() - began) * 1000:.0f} ms"
        colour = "green" if response.is_success else "red"
        return f"[{colour}]{response.status_code} {response.reason_phrase}[/] in {duration}"


def listen_to(
    messages: Iterable[StreamMessage], forward: Forwarder | None, *, count: int | None, as_json: bool
) -> None:
    """Show the events of a stream, and forward them, up to `count`."""
    for shown_count, message in enumerate(messages, 1):
        event = msgspec.json.decode(message.data)
        response_text = None if forward is None else forward.send(event["event_id"], message.data)
        if as_json:
            sys.stdout.buffer.write(message.data + b"\n")
            sys.stdout.flush()
        else:
            show(event, response_text)
        if shown_count == count:
            return


def with_banner(
    messages: Iterable[StreamMessage], forward: Forwarder | None, *, as_json: bool
) -> Iterator[StreamMessage]:
    """Yield the events of a stream. Once it is open, print that, and the signing secret."""
    is_open = False
    for message in messages:
        if not is_open and not as_json:
            print_success(f"Listening after sequence {message.sequence or 0}. Ctrl-C ends it.")
            if forward is not None:
                console.print(f"  Forwarding to [bold]{forward.url}[/]", soft_wrap=True)
                console.print(f"  Signed with [bold]{forward.secret}[/]", soft_wrap=True)
        is_open = True
        if not message.event:
            yield message


def show(event: dict[str, object], response_text: str | None) -> None:
    """Print one event in a line, and its payload in another."""
    number = "simulated" if event["sequence"] is None else f"#{event['sequence']}"
    at = format_eastern(datetime.fromisoformat(str(event["timestamp"])))
    line = f"[dim]{at}[/]  [bold]{event['event_type']}[/]  {number}  {event['event_id']}"
    console.print(line, soft_wrap=True)
    payload = msgspec.json.encode(event["payload"]).decode()
    console.print(f"    [dim]{payload}[/]", soft_wrap=True)
    if response_text is not None:
        console.print(f"    → {response_text}")


def check_kinds(requested: Sequence[str], known: Sequence[str]) -> None:
    """Raise CliError for a kind that this API does not have."""
    unknown = [each for each in requested if each not in known]
    if unknown:
        suggestions = get_close_matches(unknown[0], known, 1)
        raise CliError(
            f"There is no event kind {unknown[0]!r} here.",
            (f"Is it {suggestions[0]}? " if suggestions else "") + "`billfold trigger` lists all kinds.",
        )


def listener_secret(box: SandboxFile) -> str:
    """Return the secret of this sandbox's listeners, derived from its own."""
    key = hmac.digest(box.shared_secret.encode(), SECRET_PURPOSE, "sha256")
    return "whsec_" + base64.b64encode(key).decode()


def parse_url(text: str) -> str:
    """Return the URL for a port, a host or a URL. Raises CliError."""
    expanded = _PORT.sub(r"localhost:\1", text)
    url = expanded if "://" in expanded else f"http://{expanded}"
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise CliError(f"{text!r} is not a URL.", "Write it like localhost:4242/webhooks.")
    return url


def check_secret(secret: str) -> str:
    """Return a secret to sign with. Raises CliError."""
    try:
        webhook_key(secret)
    except ValueError:
        raise CliError("The text after whsec_ is not base64.", "Leave --secret out.") from None
    return secret


Kind = Annotated[str | None, typer.Argument(help="The kind; all are listed if omitted.")]
Fields = Annotated[
    list[str] | None, typer.Option("--set", help="A field of the payload: --set wire_id=5d4c...; may be repeated.")
]
EventId = Annotated[str | None, typer.Option(help="The event's id; an id is delivered once.")]


@group.command("trigger transfers.wire.in.success", "trigger")
def trigger(context: CliContext, kind: Kind = None, *, fields: Fields = None, event_id: EventId = None) -> str | None:
    """Simulate an event in a sandbox, to test a receiver.

    Subscriptions of that kind are called, the partner's and those of the
    sandbox's customer, and `billfold listen` shows it. Nothing happens in the
    bank: no money moves, and the event has no sequence.

    Without a kind this lists all kinds. For real events,
    use simulations: `billfold clock advance` lets bills mature, and a wire arrives
    with POST /api/v1/sandbox/wire/.
    """
    if kind is None:
        console.print(key_value_table((each.name, each.meaning) for each in KINDS.values()))
        return None
    check_kinds([kind], list(KINDS))
    box = require_sandbox_file(context.settings().state_dir)
    new_id = event_id or str(ids.new())
    with open_partner_api(box) as client:
        client.sandbox_webhook(
            event_id=new_id,
            event_type=kind,
            timestamp=client.sandbox_clock().now,
            customer_id=box.customer_id,
            payload=payload_of(kind, fields or []),
        )
    return f"{kind} {new_id}"


def payload_of(kind: str, fields: list[str]) -> dict[str, object]:
    """Return the example of a kind with some fields replaced. Raises CliError."""
    payload: dict[str, object] = example_payload(KINDS[kind])
    for field in fields:
        name, equals, value = field.partition("=")
        if name not in KINDS[kind].payload.__struct_fields__ or not equals:
            known = ", ".join(KINDS[kind].payload.__struct_fields__)
            raise CliError(f"{field!r} does not set a field.", f"Write NAME=VALUE; there are {known}.")
        is_number = isinstance(payload.get(name), int) and value.isdigit()
        payload[name] = int(value) if is_number else value
    return payload

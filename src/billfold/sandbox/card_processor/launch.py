"""The processes of the simulated card processor: prepares its host for the network, and calls its vault."""

import asyncio
import base64
import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, time
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, NoReturn
from uuid import UUID

import msgspec
import structlog

from billfold.cli.context import CliError
from billfold.cli.python_process import python_command
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.types import Direction, ScheduledJob
from billfold.payments.cards.authorizations.commands import AuthorizationStatus, Merchant
from billfold.payments.cards.authorizations.store import get_authorization
from billfold.payments.cards.commands import CardOrderRow, CardStatus, Padding
from billfold.payments.cards.processor import EncryptedDetail, IssuedCard, PinError, PublicKeyError
from billfold.payments.cards.settlement.file_format import write_file
from billfold.payments.cards.settlement.inbound import CardSettlementFiles, book_record
from billfold.payments.cards.settlement.records import FORMAT, VERSION, Fee, FeeKind, Header, Presentment, RecordOfCard
from billfold.payments.files.exchange import ExchangeFolders, RailExchanges
from billfold.platform.addresses import own_url_host
from billfold.platform.dates import et_date, et_instant
from billfold.platform.errors import InvariantError
from billfold.platform.ids import command_id
from billfold.platform.money import round_half_up
from billfold.platform.settings.settings import Settings
from billfold.sandbox.card_processor.host import settings as host_settings
from billfold.sandbox.card_processor.host.messages import LengthPrefix, MacAlgorithm
from billfold.sandbox.card_processor.host.settings import PREFIX
from billfold.sandbox.line_process import LineProcess
from billfold.sandbox.rails.correspondent import BookLine, Correspondent

log = structlog.get_logger(__name__)

CARD_PROCESSOR = "card_processor"
"""The folder of the processor in the bank's state directory."""
_BACKLOG = 64


class CardNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """The connection data of a card network that talks ISO 8583 with the processor."""

    host: str
    port: int
    length_prefix: LengthPrefix
    mac_algorithm: MacAlgorithm
    mac_required: bool
    mac_key: str
    pin_key: str


def listen_to_network(settings: Settings) -> socket.socket:
    """Listen on the network's port: the requested one, or by default the usual one or a free one. Raises CliError.

    The process of the host inherits the socket, so nobody else can take the port before it starts or while it restarts.
    """
    wanted = host_settings.read_options(os.environ, settings.state_dir / CARD_PROCESSOR).port
    for port in (wanted,) if wanted else (host_settings.DEFAULT_PORT, 0):
        family, kind, _, _, address = socket.getaddrinfo(settings.host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            continue
        return listener
    raise CliError(f"Port {wanted} of {settings.host} cannot be opened.", f"Set {PREFIX}PORT to another.")


def prepare_card_host(settings: Settings, bank_key: bytes | None, *, trusted_ca: Path, port: int) -> CardNetwork:
    """Write the settings of the host's process, and return the network's connection data. Raises CliError."""
    assert bank_key is not None  # a sandbox always has one
    options = host_settings.read_options(os.environ, settings.state_dir / CARD_PROCESSOR)
    host = host_settings.HostSettings(
        mac_required=_may_be_reached(settings.host) if options.mac_required is None else options.mac_required,
        bank_url=settings.cards_origin,
        bank_address=own_url_host(settings.host),
        bank_key=bank_key.hex(),
        trusted_ca=str(trusted_ca),
        options=options,
    )
    host_settings.write_settings(settings.state_dir / CARD_PROCESSOR, host)
    return CardNetwork(
        host=own_url_host(settings.host),
        port=port,
        mac_required=host.mac_required,
        **{name: getattr(options, name) for name in ("length_prefix", "mac_algorithm", "mac_key", "pin_key")},
    )


def card_host_command(settings: Settings) -> Sequence[str]:
    """Return the command line of the process of the host."""
    return python_command("-m", "billfold.sandbox.card_processor.host.server", str(settings.state_dir / CARD_PROCESSOR))


def _may_be_reached(host: str) -> bool:
    """Tell whether other machines can reach a listening address."""
    return not ip_address(socket.getaddrinfo(host, None)[0][4][0]).is_loopback


class SimulatedCardProcessor:
    """One process per bank process; they share the folder of their numbers."""

    def __init__(self, folder: Path) -> None:
        module = "billfold.sandbox.card_processor.vault"
        self._process = LineProcess(module, folder, "card processor")
        self._pin_key: str | None = None

    async def issue(self, card_id: UUID, *, on: date) -> IssuedCard:
        """Issue a card, or return the one already issued."""
        return msgspec.convert(await self._call("issue", card_id=str(card_id), on=on.isoformat()), IssuedCard)

    async def encrypt_detail(self, card_id: UUID, public_key: str, padding: Padding) -> EncryptedDetail:
        """Encrypt a card's secrets to an RSA key in PEM. Raises PublicKeyError."""
        detail = await self._call("encrypt_detail", card_id=str(card_id), value=public_key, padding=padding)
        return msgspec.convert(detail, EncryptedDetail)

    async def order(self, order: CardOrderRow, shipping_address: str) -> None:
        """Accept an order; `POST /api/v1/sandbox/generate-card/` produces the card."""
        log.info("card_ordered", card_order_id=str(order.card_order_id), ships=bool(shipping_address))

    async def set_status(self, card_id: UUID, status: CardStatus) -> None:
        """Update the status of a card."""
        await self._call("set_status", card_id=str(card_id), value=status)

    async def pin_key(self) -> str:
        """Return the key to which clients encrypt PINs, in PEM."""
        if self._pin_key is None:  # anybody may read it, without a token
            self._pin_key = str(await self._call("pin_key"))
        return self._pin_key

    async def set_pin(self, card_id: UUID, encrypted_pin: bytes) -> None:
        """Set the PIN of a card. Raises PinError."""
        await self._call("set_pin", card_id=str(card_id), value=base64.b64encode(encrypted_pin).decode())

    async def close(self) -> None:
        """End the process."""
        await self._process.close()

    async def _call(self, method: str, **values: str) -> Any:  # noqa: ANN401 - what the method returns
        response = await self._process.request({"method": method, **values})
        return response["result"] if "result" in response else _fail(response)


def _fail(response: dict[str, str]) -> NoReturn:
    if response["error"] == "public_key":
        raise PublicKeyError(response["reason"])
    if response["error"] == "pin":
        raise PinError
    raise InvariantError(f"The card processor does not know the {response['error']}.")


CYCLE_JOB: Final = "sandbox.card_cycle"
"""The scheduled job in which the processor sends the file of a settlement date."""
CLEARING_JOB: Final = "sandbox.card_clearing"
"""The scheduled job in which the merchant of a swipe claims its money; its object is the authorization."""
CLAIMED_AT: Final = time(4)
SENT_AT: Final = time(5)
_INTERCHANGE_BPS: Final = 150
_NETWORK_FEE_BPS: Final = 13
_PROCESSOR_FEE_CENTS: Final = 5
_WHOLE: Final = 10_000
_record: msgspec.json.Decoder[RecordOfCard] = msgspec.json.Decoder(RecordOfCard)


def interchange_of(amount: int, direction: Direction) -> int:
    """Return the amount that the bank receives for a payment, in cents; it pays back returned money."""
    cents = round_half_up(amount * _INTERCHANGE_BPS, _WHOLE)
    return cents if direction == Direction.DEBIT else -cents


async def present_record(bank: Bank, record: RecordOfCard, settles_on: date) -> None:
    """Store a record for the file of its settlement date. The same record is sent once."""
    await asyncio.to_thread(_append, _kept(bank, settles_on), msgspec.json.encode(record) + b"\n")
    at = et_instant(settles_on, SENT_AT)
    await scheduler.schedule(
        bank.pool, [ScheduledJob(CYCLE_JOB, command_id("card-cycle", str(settles_on)), None, at=at)]
    )


async def schedule_clearing(bank: Bank, customer_id: UUID, authorization_id: UUID, settles_on: date) -> None:
    """Claim a purchase as its merchant on its settlement date."""
    job = ScheduledJob(CLEARING_JOB, authorization_id, customer_id, at=et_instant(settles_on, CLAIMED_AT))
    await scheduler.schedule(bank.pool, [job])


async def claim_swipe(bank: Bank, job: ScheduledJob) -> None:
    """Clear a swipe, unless it has changed since: a scheduled job."""
    assert job.customer_id is not None
    held = await get_authorization(bank.pool, job.customer_id, job.object_id)
    settles_on = bank.calendars.fed_on_or_after(et_date(job.at))
    record = Presentment(
        record_id=command_id(CLEARING_JOB, job.object_id),
        card_id=held.card_id,
        amount=held.remaining,
        interchange=interchange_of(held.remaining, Presentment.direction),
        network_reference=held.network_reference,
        merchant=msgspec.json.decode(held.merchant, type=Merchant),
    )
    if held.status == AuthorizationStatus.PENDING and held.remaining and not held.cleared:
        await present_record(bank, record, settles_on)
        await book_record(bank, record, job.customer_id, settles_on)


async def send_cycle(bank: Bank, job: ScheduledJob) -> None:
    """Send the file of a settlement date, and have it processed at once: a scheduled job."""
    settles_on = et_date(job.at)
    lines = (await asyncio.to_thread(_kept(bank, settles_on).read_bytes)).splitlines()
    records = {each.record_id: each for each in map(_record.decode, lines)}
    header = Header(
        format=FORMAT,
        version=VERSION,
        reference=f"CYCLE-{settles_on}",
        bank=bank.settings.bank_routing_number,
        settles_on=settles_on,
        created_at=job.at,
        currency="USD",
    )
    content = write_file(header, [*records.values(), *_fees(settles_on, records.values())])
    net = msgspec.json.decode(content.splitlines()[-1])["net_settlement"]
    await Correspondent(bank).record(settles_on, [BookLine(header.reference, -net, "CARD", header.reference)])
    exchange = bank.ports[RailExchanges].card
    assert isinstance(exchange, ExchangeFolders)
    await exchange.network_side().transmit(f"card-settlement-{settles_on}.jsonl", content)
    await CardSettlementFiles().process_all(bank)


def _fees(settles_on: date, records: Iterable[RecordOfCard]) -> Iterator[Fee]:
    paid = [each.amount for each in records if each.direction == Direction.DEBIT]
    network = round_half_up(sum(paid) * _NETWORK_FEE_BPS, _WHOLE)
    amounts = {FeeKind.PROCESSOR: len(paid) * _PROCESSOR_FEE_CENTS, FeeKind.NETWORK: network}
    for kind, amount in amounts.items():
        if amount:
            record_id = command_id(f"card-fee:{kind}", str(settles_on))
            yield Fee(record_id=record_id, kind=kind, amount=amount, description=f"{kind.title()} fees")


def _kept(bank: Bank, settles_on: date) -> Path:
    return bank.settings.state_dir / CARD_PROCESSOR / f"presented-{settles_on}.jsonl"


def _append(path: Path, line: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("ab") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())

"""What is answered to each message of a connection: sign-on and echo here, messages about cards by the host."""

from typing import Final

import iso8583

from billfold.platform.clock import wall_now
from billfold.platform.logs import logger
from billfold.sandbox.card_processor.host.authorize import AuthorizationHost
from billfold.sandbox.card_processor.host.journal import Reply
from billfold.sandbox.card_processor.host.layouts import FormatError, Message, decode, encode
from billfold.sandbox.card_processor.host.mac import MacKey
from billfold.sandbox.card_processor.host.requests import NotSupported, read_request
from billfold.sandbox.card_processor.host.response_codes import Outcome

log = logger(__name__)

_REPEATED: Final[tuple[str, ...]] = ("2", "3", "4", "7", "11", "12", "13", "32", "37", "41", "42", "49", "70")
"""Elements of a message that its response repeats."""
_REQUESTS: Final = frozenset("02")
_CARD_CLASSES, _NETWORK_CLASS = frozenset("124"), "8"
_SIGN_ON, _SIGN_OFF, _ECHO = frozenset({"001", "801"}), frozenset({"002", "802"}), frozenset({"301", "831"})
_AVAILABLE_BALANCE, _ORIGINAL_AMOUNT = "02", "57"
_MACS: Final = frozenset({"64", "128"})


class Conversation:
    """One connection of a network. It is signed on until it signs off."""

    def __init__(self, host: AuthorizationHost, mac: MacKey, *, mac_required: bool) -> None:
        self._host, self._mac, self._mac_required = host, mac, mac_required
        self._is_signed_on = True

    async def answer(self, raw: bytes) -> bytes | None:
        """Return the response to a message, None where it requests none. Raises FormatError where nothing can be read.

        A response has a MAC where the message had one.
        """
        try:
            message = decode(raw)
            has_mac = not _MACS.isdisjoint(message.fields)
            if (has_mac or self._mac_required) and not self._mac.is_right(message, raw):
                reply = Reply(Outcome.MAC_INCORRECT)
            else:
                reply = await self._reply(message)
        except FormatError as error:
            if error.message is None:
                raise
            log.warning("network_message_malformed", type=error.message.mti, error=str(error))
            message, reply = error.message, Reply(Outcome.FORMAT_ERROR)
            has_mac = self._mac_required
        if message.mti[2] not in _REQUESTS:  # a response, or what needs none
            return None
        return self._written(_response(message, reply), has_mac=has_mac or self._mac_required)

    async def _reply(self, message: Message) -> Reply:
        kind, function = message.mti[1], message.mti[2]
        if kind == _NETWORK_CLASS:
            return Reply(self._manage(message))
        if kind not in _CARD_CLASSES or function not in _REQUESTS or not self._is_signed_on:
            return Reply(Outcome.INVALID_TRANSACTION)
        try:
            request = read_request(message, wall_now())
        except NotSupported as error:
            return Reply(error.outcome)
        try:
            return await self._host.respond(request)
        except Exception as error:  # noqa: BLE001 - the store failed; what an error says may hold a card number
            log.error("network_message_failed", error=type(error).__name__)  # noqa: TRY400 - nor may its traceback
            return Reply(Outcome.SYSTEM_MALFUNCTION)

    def _manage(self, message: Message) -> Outcome:
        """Sign on, sign off, or be there."""
        code = message.fields.get("24" if message.is_1993 else "70", "")
        if code not in _SIGN_ON | _SIGN_OFF | _ECHO:
            return Outcome.INVALID_TRANSACTION
        if code not in _ECHO:
            self._is_signed_on = code in _SIGN_ON
            log.info("network_signed_on" if self._is_signed_on else "network_signed_off")
        return Outcome.NETWORK_ACCEPTED

    def _written(self, response: Message, *, has_mac: bool) -> bytes | None:
        try:
            return self._mac.sealed(response) if has_mac else encode(response)
        except iso8583.EncodeError as error:  # an element that the message had and a response cannot have
            log.warning("network_response_unwritable", type=response.mti, field=error.field)
            return None


def _response(message: Message, reply: Reply) -> Message:
    fields: dict[str, str] = {number: message.fields[number] for number in _REPEATED if number in message.fields}
    fields["39"] = reply.outcome.code(is_1993=message.is_1993)
    if reply.approval_code is not None:
        fields["38"] = reply.approval_code
    if reply.outcome.is_partial:
        fields["54"] = _amount_element(_ORIGINAL_AMOUNT, int(fields["4"]))
        fields["4"] = f"{reply.amount:012}"
    elif reply.outcome == Outcome.APPROVED and message.fields["3"].startswith("31"):
        fields["54"] = _amount_element(_AVAILABLE_BALANCE, reply.amount)
    return Message(message.layout, message.response_type(), fields)


def _amount_element(kind: str, cents: int) -> str:
    """Return one amount of element 54: account and amount type, currency, C or D, twelve digits."""
    return f"00{kind}840{'C' if cents >= 0 else 'D'}{abs(cents):012}"

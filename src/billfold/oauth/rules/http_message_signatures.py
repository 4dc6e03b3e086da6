"""Signed requests (RFC 9421, the supported part): one signature, labeled `sig1`.

It must cover method, authority, target and authorization, and the digest of a body.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from billfold.oauth.rules.public_keys import from_pem, verify_signature
from billfold.oauth.types import ClientKey

WINDOW_SECONDS = 300
_ALGORITHMS = {"ecdsa-p256-sha256": "ES256", "ed25519": "EdDSA"}
_SECONDS = re.compile(r"\d{1,12}", re.ASCII)
_COVERED = frozenset({"@method", "@authority", "@target-uri", "authorization"})
_INPUT = re.compile(r'sig1=(\(("[!#-~]+"(?: "[!#-~]+")*)\)((?:;[a-z]+=(?:"[!#-~]*"|\d+))*))')
_PARAMETER = re.compile(r';([a-z]+)=(?:"([!#-~]*)"|(\d+))')
_SIGNATURE = re.compile(r"sig1=:([A-Za-z0-9+/]+=*):")
_DIGEST = re.compile(r"(sha-256|sha-512)=:([A-Za-z0-9+/]+=*):")
_HASHES = {"sha-256": "sha256", "sha-512": "sha512"}


class InvalidSignature(Exception):
    """A signature is missing or invalid; the text says why."""


@dataclass(frozen=True, slots=True)
class Message:
    """A request as it is signed. `url` is our public address with path and query as sent."""

    method: str
    url: str
    body: bytes
    header: Callable[[str], str | None]


class _SignatureInput(NamedTuple):
    """The signature parameters of a request."""

    components: tuple[str, ...]
    parameters: dict[str, str]
    as_sent: str
    signature: bytes


def verify_message(message: Message, keys: Iterable[ClientKey], now: datetime) -> None:
    """Check the signature of a request. Raises InvalidSignature."""
    signature_input = _parse_signature_input(message)
    required = _COVERED | ({"content-digest"} if message.body else set())
    if len(set(signature_input.components)) != len(signature_input.components) or not required <= set(
        signature_input.components
    ):
        raise InvalidSignature(f"The signature must cover {', '.join(sorted(required))}, each once.")
    created = signature_input.parameters.get("created", "")
    if not _SECONDS.fullmatch(created) or abs(int(created) - now.timestamp()) > WINDOW_SECONDS:
        raise InvalidSignature(f"`created` must be within {WINDOW_SECONDS} seconds of now.")
    if "expires" in signature_input.parameters:
        raise InvalidSignature("`expires` is not supported; `created` suffices.")
    if message.body:
        _check_digest(message)
    _check_signature(message, signature_input, keys)


def _parse_signature_input(message: Message) -> _SignatureInput:
    sent = _INPUT.fullmatch(message.header("signature-input") or "")
    signature = _SIGNATURE.fullmatch(message.header("signature") or "")
    if sent is None or signature is None:
        raise InvalidSignature("The request needs Signature-Input and Signature, labelled sig1.")
    components = tuple(each.strip('"') for each in sent[2].split(" "))
    parameters = {name: text or number for name, text, number in _PARAMETER.findall(sent[3])}
    return _SignatureInput(components, parameters, sent[1], signature=_bytes(signature[1]))


def _check_digest(message: Message) -> None:
    sent = _DIGEST.fullmatch(message.header("content-digest") or "")
    if sent is None:
        raise InvalidSignature("A body needs a Content-Digest by sha-256 or sha-512.")
    digest = hashlib.new(_HASHES[sent[1]], message.body).digest()
    if not hmac.compare_digest(digest, _bytes(sent[2])):
        raise InvalidSignature("Content-Digest is not that of the body.")


def _check_signature(message: Message, signature_input: _SignatureInput, keys: Iterable[ClientKey]) -> None:
    algorithm = _ALGORITHMS.get(signature_input.parameters.get("alg", ""))
    signed = _signature_base(message, signature_input)
    for key in keys:
        matches = key.key_id == signature_input.parameters.get("keyid") and key.algorithm == algorithm
        if matches and verify_signature(from_pem(key.public_pem), signed, signature_input.signature):
            return
    raise InvalidSignature("The signature is not by a registered key (`keyid`) and its algorithm.")


def _signature_base(message: Message, signature_input: _SignatureInput) -> bytes:
    """Return the signature base (RFC 9421, 2.5)."""
    lines = [f'"{name}": {_value(message, name)}' for name in signature_input.components]
    return "\n".join([*lines, f'"@signature-params": {signature_input.as_sent}']).encode("latin-1")


def _value(message: Message, name: str) -> str:
    parts = urlsplit(message.url)
    derived = {
        "@method": message.method,
        "@authority": parts.netloc.lower(),
        "@target-uri": message.url,
        "@scheme": parts.scheme,
        "@path": parts.path,
        "@query": f"?{parts.query}",
    }
    value = derived.get(name) if name.startswith("@") else message.header(name)
    if value is None:
        raise InvalidSignature(f"The signature covers {name}, which is not there.")
    return value


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise InvalidSignature("A signature or digest is not base64.") from None

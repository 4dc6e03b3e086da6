"""Passkeys (WebAuthn): a device proves that it holds a key and that its owner unlocked it.

These are two factors at once, and nothing that could be typed into a wrong page. The owner's
unlocking is always required. `now` is wall time.
"""

import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg
import webauthn
from cryptography.exceptions import InvalidSignature
from webauthn import helpers
from webauthn.helpers import structs
from webauthn.helpers.exceptions import WebAuthnException

from billfold.identity.users.rules import CHALLENGE_LIFETIME, Confirmation, Passkey, User
from billfold.platform import ids
from billfold.platform.database.connection import Db

_CHALLENGE_BYTES = 32
_INVALID = (WebAuthnException, ValueError, KeyError, TypeError)
"""Exceptions that the library raises for invalid input from a browser."""
_REQUIRED = structs.UserVerificationRequirement.REQUIRED

_ADD = """
INSERT INTO passkey (credential_id, passkey_id, user_id, public_key, sign_count, name, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
"""
_USED = """
UPDATE passkey SET sign_count = $2, used_at = $3
 WHERE credential_id = $1 AND (sign_count < $2 OR (sign_count = 0 AND $2 = 0)) RETURNING true
"""


class RelyingParty(NamedTuple):
    """The WebAuthn relying party: the bank, its host name, and the origin of the pages."""

    name: str
    host: str
    origin: str


class NewPasskey(NamedTuple):
    """A passkey that a device has created."""

    credential_id: bytes
    public_key: bytes
    sign_count: int


def registration_options(site: RelyingParty, user: User, existing: Iterable[Passkey], challenge: bytes) -> str:
    """Return the JSON options to create a passkey. Pure."""
    options = webauthn.generate_registration_options(
        rp_id=site.host,
        rp_name=site.name,
        user_id=user.user_id.bytes,
        user_name=user.email,
        user_display_name=user.name,
        challenge=challenge,
        exclude_credentials=[structs.PublicKeyCredentialDescriptor(each.credential_id) for each in existing],
        authenticator_selection=structs.AuthenticatorSelectionCriteria(
            resident_key=structs.ResidentKeyRequirement.REQUIRED, user_verification=_REQUIRED
        ),
    )
    return webauthn.options_to_json(options)


def sign_in_options(site: RelyingParty, challenge: bytes, existing: Iterable[Passkey] = ()) -> str:
    """Return the JSON options to authenticate with a passkey; without `known`, of any user."""
    options = webauthn.generate_authentication_options(
        rp_id=site.host,
        challenge=challenge,
        allow_credentials=[structs.PublicKeyCredentialDescriptor(each.credential_id) for each in existing],
        user_verification=_REQUIRED,
    )
    return webauthn.options_to_json(options)


def verify_registration(site: RelyingParty, answer: str, challenge: bytes) -> NewPasskey | None:
    """Return the passkey in a browser's answer, or None if it is invalid. Pure."""
    try:
        registration = webauthn.verify_registration_response(
            credential=answer,
            expected_challenge=challenge,
            expected_rp_id=site.host,
            expected_origin=site.origin,
            require_user_verification=True,
        )
    except _INVALID:
        return None
    return NewPasskey(registration.credential_id, registration.credential_public_key, registration.sign_count)


def verify_authentication(site: RelyingParty, passkey: Passkey, answer: str, challenge: bytes) -> int | None:
    """Return the new count of a passkey whose answer is valid, or None if it is not. Pure."""
    try:
        verification = webauthn.verify_authentication_response(
            credential=answer,
            expected_challenge=challenge,
            expected_rp_id=site.host,
            expected_origin=site.origin,
            credential_public_key=passkey.public_key,
            credential_current_sign_count=passkey.sign_count,
            require_user_verification=True,
        )
    except _INVALID:
        return None
    return verification.new_sign_count


def confirmation_of(answer: str, passkey: Passkey, nonce: str) -> Confirmation:
    """Return the record of a valid answer, so that anybody can verify it again. Pure."""
    response = helpers.parse_authentication_credential_json(answer).response
    text = helpers.bytes_to_base64url
    return Confirmation(
        method="hwk",
        nonce=nonce,
        credential_id=text(passkey.credential_id),
        public_key=text(passkey.public_key),
        authenticator_data=text(response.authenticator_data),
        client_data=text(response.client_data_json),
        signature=text(response.signature),
    )


def is_signed(kept: Confirmation, challenge: bytes) -> bool:
    """Return whether a passkey's kept answer is one to this challenge, signed by its key. Pure."""
    data = helpers.base64url_to_bytes
    try:
        client_data = data(kept.client_data)
        key = helpers.decode_credential_public_key(data(kept.public_key))
        helpers.verify_signature(
            public_key=helpers.decoded_public_key_to_cryptography(key),
            signature_alg=key.alg,
            signature=data(kept.signature),
            data=data(kept.authenticator_data) + hashlib.sha256(client_data).digest(),
        )
        return helpers.parse_client_data_json(client_data).challenge == challenge
    except (*_INVALID, InvalidSignature):
        return False


def parse_challenge(answer: str) -> bytes | None:
    """Return the challenge that an answer names, or None if it is not an answer."""
    for parse in (helpers.parse_registration_credential_json, helpers.parse_authentication_credential_json):
        try:
            return helpers.parse_client_data_json(parse(answer).response.client_data_json).challenge
        except _INVALID:
            continue
    return None


def parse_credential_id(answer: str) -> bytes | None:
    """Return the id of the credential that answers, or None if it is not an answer."""
    try:
        return helpers.parse_authentication_credential_json(answer).raw_id
    except _INVALID:
        return None


async def new_challenge(conn: Db, cookie_hash: bytes, now: datetime) -> bytes:
    """Return a challenge for the browser of that cookie, valid once and for five minutes."""
    challenge = secrets.token_bytes(_CHALLENGE_BYTES)
    await keep_challenge(conn, challenge, cookie_hash, now=now)
    return challenge


async def keep_challenge(conn: Db, challenge: bytes, cookie_hash: bytes, *, now: datetime) -> None:
    """Let the browser of that cookie answer a challenge once, within five minutes."""
    await conn.execute(
        "INSERT INTO passkey_challenge (challenge, cookie_hash, expires_at) VALUES ($1, $2, $3)",
        challenge,
        cookie_hash,
        now + CHALLENGE_LIFETIME,
    )


async def consume_challenge(conn: Db, challenge: bytes, cookie_hash: bytes, now: datetime) -> bool:
    """Use up a challenge; return whether it was made for this browser and is still valid."""
    deleted = await conn.fetchval(
        "DELETE FROM passkey_challenge WHERE challenge = $1 AND cookie_hash = $2 RETURNING expires_at > $3",
        challenge,
        cookie_hash,
        now,
    )
    return deleted is True


async def add_passkey(conn: Db, user_id: UUID, registration: NewPasskey, *, name: str, now: datetime) -> bool:
    """Store a new passkey of a user; False if that credential is known already."""
    row = (registration.credential_id, ids.new(), user_id, registration.public_key, registration.sign_count, name, now)
    try:
        await conn.execute(_ADD, *row)
    except asyncpg.UniqueViolationError:
        return False
    return True


async def record_passkey_use(conn: Db, passkey: Passkey, sign_count: int, now: datetime) -> bool:
    """Record the use of a passkey; False if its count reveals a copy."""
    return await conn.fetchval(_USED, passkey.credential_id, sign_count, now) is True


async def remove_passkey(conn: Db, user_id: UUID, passkey_id: UUID) -> bool:
    """Delete one of a user's passkeys; return whether it was theirs."""
    found = await conn.fetchval(
        "DELETE FROM passkey WHERE user_id = $1 AND passkey_id = $2 RETURNING true", user_id, passkey_id
    )
    return found is True

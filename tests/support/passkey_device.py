"""A passkey device (WebAuthn): makes keys and signs with them."""

import base64
import hashlib
import json
import secrets

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


def text(value):
    """Return bytes as browsers write them."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def plain(value):
    """Return the bytes of what browsers write."""
    return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))


class Device:
    """Holds one passkey. What it says can be bent by `origin`, `host` and `flags`."""

    def __init__(self, *, origin="https://auth.localhost:8443", host="auth.localhost"):
        self.origin, self.host = origin, host
        self.flags = PRESENT | VERIFIED
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.credential_id = secrets.token_bytes(16)
        self.user = b""
        self.count = 0

    def make(self, options):
        """Answer a request to make a passkey."""
        self.user = plain(options["user"]["id"])
        numbers = self.key.public_key().public_numbers()
        public = cbor2.dumps({1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32), -3: numbers.y.to_bytes(32)})
        credential = bytes(16) + len(self.credential_id).to_bytes(2) + self.credential_id + public
        seen = self._seen(self.flags | ATTESTED) + credential
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": seen})
        told = self._told("webauthn.create", options)
        return self._answer({"clientDataJSON": text(told), "attestationObject": text(attestation)})

    def sign(self, options):
        """Answer a request to sign in."""
        self.count += 1
        told, seen = self._told("webauthn.get", options), self._seen(self.flags)
        signature = self.key.sign(seen + hashlib.sha256(told).digest(), ec.ECDSA(hashes.SHA256()))
        return self._answer(
            {
                "clientDataJSON": text(told),
                "authenticatorData": text(seen),
                "signature": text(signature),
                "userHandle": text(self.user),
            }
        )

    def _told(self, kind, options):
        return json.dumps({"type": kind, "challenge": options["challenge"], "origin": self.origin}).encode()

    def _seen(self, flags):
        return hashlib.sha256(self.host.encode()).digest() + bytes([flags]) + self.count.to_bytes(4)

    def _answer(self, response):
        name = text(self.credential_id)
        return {"id": name, "rawId": name, "type": "public-key", "response": response}

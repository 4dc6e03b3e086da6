"""The public keys to which card details are encrypted (RFC 8017): RSA, 4096 bits, exponent 65537, PKCS#1 or SPKI."""

import hashlib

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from billfold.payments.cards.ports import PublicKeyError

KEY_BITS = 4096
_EXPONENT = 65_537


def load_detail_key(pem: str) -> RSAPublicKey:
    """Return the key. Raises PublicKeyError."""
    if "PRIVATE KEY" in pem:
        raise PublicKeyError("holds a private key, which others know from now on: make another pair")
    try:
        key = load_pem_public_key(pem.strip().encode())
    except (ValueError, UnsupportedAlgorithm):
        raise PublicKeyError("is no public key in PEM (`RSA PUBLIC KEY` or `PUBLIC KEY`)") from None
    if not isinstance(key, RSAPublicKey):
        raise PublicKeyError("is no RSA key")
    if key.key_size != KEY_BITS:
        raise PublicKeyError(f"has {key.key_size} bits, not {KEY_BITS}")
    if key.public_numbers().e != _EXPONENT:
        raise PublicKeyError(f"has another exponent than {_EXPONENT}")
    return key


def fingerprint_of(pem: str) -> bytes:
    """Return the SHA-256 of a key, the same for both forms. Raises PublicKeyError."""
    der = load_detail_key(pem).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).digest()

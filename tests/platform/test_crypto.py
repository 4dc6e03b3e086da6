import base64
import hashlib
import hmac

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from hypothesis import given
from hypothesis import strategies as st

from billfold.events.webhooks import signature as webhook_signature
from billfold.platform import crypto
from billfold.platform.crypto import Vault
from billfold.platform.errors import InvariantError

_KEY = bytes(range(32))
_OTHER_KEY = bytes(range(32, 64))
_AAD = crypto.associated_data("partners", "shared_secret", 1, tenant_id="tenant")
_IDEM = "6f9619ff-8b86-4011-b42d-00cf4fc964ff"
_PATH = "/api/v1/customers/1/"
_BODY = b'{"a": 1}'


@given(st.binary(max_size=200), st.binary(max_size=40))
def test_a_sealed_value_opens_with_its_associated_data(plain, aad):
    vault = Vault(_KEY)

    sealed = vault.seal(plain, aad)

    assert vault.open(sealed, aad) == plain
    assert vault.seal(plain, aad) != sealed
    assert vault.is_current(sealed)


@given(st.integers(0, 10_000), st.integers(0, 7))
def test_a_value_sealed_by_a_vault_with_a_changed_bit_is_refused(where, bit):
    vault = Vault(_KEY)
    sealed = bytearray(vault.seal(b"a shared secret", _AAD))

    sealed[where % len(sealed)] ^= 1 << bit

    with pytest.raises(InvariantError):
        vault.open(bytes(sealed), _AAD)


def test_a_moved_sealed_value_is_refused():
    vault = Vault(_KEY)
    sealed = vault.seal(b"a shared secret", _AAD)

    for elsewhere in [
        crypto.associated_data("partners", "shared_secret", 2, tenant_id="tenant"),
        crypto.associated_data("partners", "shared_secret", 1, tenant_id="another"),
        crypto.associated_data("partnersshared", "_secret", 1, tenant_id="tenant"),
    ]:
        with pytest.raises(InvariantError, match="moved"):
            vault.open(sealed, elsewhere)


@pytest.mark.parametrize("sealed", [b"", b"\x01", bytes(33), bytes(32)])
def test_opening_a_value_that_was_never_sealed_is_refused(sealed):
    with pytest.raises(InvariantError, match="damaged"):
        Vault(_KEY).open(sealed, b"")


def test_a_retired_key_opens_but_no_longer_seals():
    old = Vault(_KEY).seal(b"secret", _AAD)
    vault = Vault(_OTHER_KEY, retired=[_KEY])

    assert vault.open(old, _AAD) == b"secret"
    assert not vault.is_current(old)
    assert vault.is_current(vault.seal(b"secret", _AAD))
    with pytest.raises(InvariantError):
        Vault(_OTHER_KEY).open(old, _AAD)


def test_a_vault_key_of_a_wrong_length_is_refused():
    for key, *retired in ((b"short",), (_KEY, b"short")):
        with pytest.raises(ValueError, match="32 bytes"):
            Vault(key, retired=retired)


def test_the_repr_of_a_vault_shows_no_key():
    assert _KEY.hex() not in repr(Vault(_KEY))


def test_a_blind_index_matches_the_same_text_for_one_purpose_only():
    vault = Vault(_KEY)

    found = vault.blind_index("123-45-6789", "ssn")

    assert found == Vault(_KEY).blind_index("123-45-6789", "ssn")
    assert found != vault.blind_index("123-45-6789", "ein")
    assert found != Vault(_OTHER_KEY).blind_index("123-45-6789", "ssn")
    assert found[:4].hex() == vault.key_id
    changed = Vault(_OTHER_KEY, retired=[_KEY])
    assert changed.blind_indexes("123-45-6789", "ssn") == [changed.blind_index("123-45-6789", "ssn"), found]


def test_a_token_is_stored_as_its_hash():
    secret, stored = crypto.new_token("bft_")

    assert secret.startswith("bft_")
    assert len(secret) == len("bft_") + 43
    assert stored == crypto.hash_token(secret) == hashlib.sha256(secret.encode()).digest()
    assert crypto.new_token()[0] != crypto.new_token()[0]


def test_a_password_is_verified_by_its_hash():
    stored = crypto.hash_password("correct horse")

    assert stored.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert crypto.verify_password(stored, "correct horse")
    for other in (stored, None, "not a hash"):
        assert not crypto.verify_password(other, "correct horsf")


def test_a_signature_is_the_hmac_of_the_three_parts():
    expected = hmac.new(b"secret", _IDEM.encode() + _PATH.encode() + _BODY, hashlib.sha256)

    signature = crypto.sign_request("secret", _IDEM, _PATH, body=_BODY)

    assert signature == base64.b64encode(expected.digest()).decode()
    assert crypto.verify_signature(["secret"], _IDEM, _PATH, body=_BODY, signature=signature)
    assert crypto.verify_signature([b"old", b"secret"], _IDEM, _PATH, body=_BODY, signature=signature)
    assert not crypto.verify_signature([], _IDEM, _PATH, body=_BODY, signature=signature)


def test_only_the_canonical_base64_of_a_signature_is_accepted():
    # A body whose signature has both characters in which the two alphabets differ.
    bodies = (b'{"n": %d}' % n for n in range(10_000))
    body, signature = next(
        (body, text)
        for body in bodies
        if {"+", "/"} <= set(text := crypto.sign_request("secret", _IDEM, _PATH, body=body))
    )
    raw = base64.b64decode(signature)
    spare = chr(ord(signature[-2]) + 1)

    for other in [
        base64.urlsafe_b64encode(raw).decode(),
        signature.rstrip("="),
        signature + "\n",
        " " + signature,
        signature[:-2] + spare + "=",
        raw.hex(),
        base64.b64encode(raw[:31]).decode(),
        "é" + signature[1:],
        "",
    ]:
        assert not crypto.verify_signature(["secret"], _IDEM, _PATH, body=body, signature=other), other


@pytest.mark.parametrize(
    ("idem", "path", "body", "expected"),
    [
        (_IDEM, _PATH, _BODY, True),
        (_IDEM.upper(), _PATH, b"", True),
        (_IDEM, "/token/", b"[1]", True),
        (_IDEM.replace("-", ""), _PATH, _BODY, False),
        (_IDEM + "\n", _PATH, _BODY, False),
        ("{" + _IDEM + "}", _PATH, _BODY, False),
        (_IDEM, "/a/%7B/", _BODY, False),
        (_IDEM, "/a{", _BODY, False),
        (_IDEM, "/a\n", _BODY, False),
        (_IDEM, "a/", _BODY, False),
        (_IDEM, _PATH, b"a=1", False),
        (_IDEM, _PATH, b" {}", True),
        (_IDEM, _PATH, b"\r\n\t{}", True),
        (_IDEM, _PATH, b"\xef\xbb\xbf{}", True),
        (_IDEM, _PATH, b"/a/{}", False),
        (_IDEM, _PATH, b".{}", False),
    ],
)
def test_signed_parts_must_be_unambiguous(idem, path, body, expected):
    assert crypto.is_unambiguous(idem, path, body) is expected


@given(st.uuids(), st.text("{}[]/._-aZ09 \n\ufeff", max_size=30))
def test_a_signed_text_has_at_most_one_reading(key, rest):
    text = str(key) + rest
    readings = [
        (path, body)
        for cut in range(36, len(text) + 1)
        for path, body in [(text[36:cut], text[cut:].encode())]
        if crypto.is_unambiguous(text[:36], path, body)
    ]

    assert len(readings) <= 1


def test_webhook_signatures_match_the_standard_webhooks_example():
    # The example of the Standard Webhooks specification.
    signature = webhook_signature.sign_webhook(
        "whsec_plJ3nmyCDGBKInavdOK15jsl",
        "msg_loFOjxBNrRLzqYUf",
        1_731_705_121,
        body=b'{"event_type":"ping","data":{"success":true}}',
    )

    assert signature == "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0="


def test_a_webhook_secret_is_plain_text_unless_prefixed_with_whsec():
    assert webhook_signature.webhook_key("a shared secret!") == b"a shared secret!"
    assert webhook_signature.webhook_key("whsec_" + base64.b64encode(_KEY).decode()) == _KEY
    assert webhook_signature.webhook_key("whsec_" + base64.b64encode(_KEY).decode().rstrip("=")) == _KEY
    for broken in ("not base64!", base64.b64encode(_KEY).decode() + "!!!!"):
        with pytest.raises(ValueError, match=r"[Bb]ase64|alphabet|padding"):
            webhook_signature.webhook_key("whsec_" + broken)


def test_a_mac_is_valid_only_for_its_message_and_purpose():
    vault = Vault(_KEY)
    voucher = vault.compute_mac(b"message", "a purpose")
    assert vault.verify_mac(voucher, b"message", "a purpose")
    assert not vault.verify_mac(voucher, b"another", "a purpose")
    assert not vault.verify_mac(voucher, b"message", "another")
    assert not vault.verify_mac(b"", b"message", "a purpose")
    later = Vault(bytes(32), retired=[_KEY])
    assert later.verify_mac(voucher, b"message", "a purpose")
    assert later.compute_mac(b"message", "a purpose") != voucher
    assert not Vault(bytes(32)).verify_mac(voucher, b"message", "a purpose")


def test_a_vault_signature_is_verified_with_the_public_key():
    vault = Vault(_KEY)
    signature = vault.sign(b"message")
    assert vault.verify_own_signature(signature, b"message")
    assert not vault.verify_own_signature(signature, b"another")
    assert not vault.verify_own_signature(signature[:-1], b"message")
    assert not Vault(bytes(32)).verify_own_signature(signature, b"message")
    assert Vault(bytes(32), retired=[_KEY]).verify_own_signature(signature, b"message")
    ((key_id, pem),) = vault.public_keys().items()
    public = serialization.load_pem_public_key(pem.encode())
    assert isinstance(public, ed25519.Ed25519PublicKey)
    assert bytes.fromhex(key_id) == signature[:4]
    public.verify(signature[4:], b"message")

import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from billfold.cli import tls
from billfold.platform.clock import wall_now

_NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _certificate(path):
    return x509.load_pem_x509_certificate(path.read_bytes())


def contents(files):
    return [path.read_bytes() for path in (files.authority, files.certificate, files.key)]


def _names(path):
    alternatives = _certificate(path).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return alternatives.value.get_values_for_type(x509.DNSName)


def test_the_certificate_covers_the_domain_and_its_subdomains(tmp_path):
    files = tls.ensure_certificates(tmp_path, _NOW, partners=["acme", "globex"])
    certificate = _certificate(files.certificate)
    alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)

    names = [f"{each}.localhost" for each in ("acme", "api", "auth", "cards", "globex")]
    assert _names(files.certificate) == [*names, "localhost"]
    assert set(alternatives.value.get_values_for_type(x509.IPAddress)) == {ip_address("127.0.0.1"), ip_address("::1")}
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert isinstance(key.curve, ec.SECP256R1)
    assert certificate.not_valid_after_utc - _NOW <= timedelta(days=398)
    certificate.verify_directly_issued_by(_certificate(files.authority))


def test_tls_key_files_are_readable_only_by_their_owner(tmp_path):
    files = tls.ensure_certificates(tmp_path, _NOW)

    assert files.key.read_text().startswith("-----BEGIN PRIVATE KEY-----")
    assert files.key.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "tls" / "ca.key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "tls").stat().st_mode & 0o077 == 0
    assert not list((tmp_path / "tls").glob("*.new"))


def test_existing_certificates_are_kept(tmp_path):
    files = tls.ensure_certificates(tmp_path, _NOW, partners=["acme", "globex"])
    before = contents(files)

    again = tls.ensure_certificates(tmp_path, _NOW + timedelta(days=300), partners=["acme"])

    assert again == files
    assert contents(files) == before


@pytest.mark.parametrize(("later", "partners"), [(timedelta(days=370), []), (timedelta(days=1), ["new-partner"])])
def test_the_certificate_is_reissued_when_it_expires_or_lacks_a_name(tmp_path, later, partners):
    files = tls.ensure_certificates(tmp_path, _NOW)
    authority, leaf = files.authority.read_bytes(), files.certificate.read_bytes()

    tls.ensure_certificates(tmp_path, _NOW + later, partners=partners)

    assert files.authority.read_bytes() == authority
    assert files.certificate.read_bytes() != leaf
    assert [f"{each}.localhost" for each in partners] == [
        name for name in _names(files.certificate) if "partner" in name
    ]


@pytest.mark.parametrize("lost", ["ca.key", "ca.pem", "server.key", "server.pem"])
def test_a_lost_or_damaged_tls_file_is_replaced(tmp_path, lost):
    files = tls.ensure_certificates(tmp_path, _NOW)
    (tmp_path / "tls" / lost).write_text("damaged")

    tls.ensure_certificates(tmp_path, _NOW)

    _certificate(files.certificate).verify_directly_issued_by(_certificate(files.authority))


def test_a_tls_key_that_does_not_match_its_certificate_is_replaced(tmp_path):
    files = tls.ensure_certificates(tmp_path, _NOW)
    form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    foreign = [
        ec.generate_private_key(ec.SECP256R1()).private_bytes(*form),
        ed25519.Ed25519PrivateKey.generate().private_bytes(*form),
    ]

    for pem in foreign:
        files.key.write_bytes(pem)
        tls.ensure_certificates(tmp_path, _NOW)
        assert files.key.read_bytes() != pem


@pytest.mark.parametrize(
    ("later", "domain"),
    [(timedelta(0), "bank.example"), (timedelta(days=3400), "localhost")],
    ids=["its constraints exclude the domain", "it would not outlive the certificate"],
)
def test_an_expired_or_unsuitable_certificate_authority_is_replaced(tmp_path, later, domain):
    files = tls.ensure_certificates(tmp_path, _NOW)
    authority = files.authority.read_bytes()

    tls.ensure_certificates(tmp_path, _NOW + later, domain=domain)

    assert files.authority.read_bytes() != authority
    assert {f"auth.{domain}", "localhost"} <= set(_names(files.certificate))


def test_the_certificate_authority_is_constrained_to_localhost(tmp_path):
    files = tls.ensure_certificates(tmp_path, _NOW)
    limits = _certificate(files.authority).extensions.get_extension_for_class(x509.NameConstraints)

    assert limits.critical
    permitted = [str(each.value) for each in limits.value.permitted_subtrees or []]
    assert permitted == ["localhost", "127.0.0.0/8", "::1/128"]


@pytest.mark.parametrize("host", ["localhost", "acme.localhost", "127.0.0.1"])
def test_a_client_that_trusts_the_authority_connects(tmp_path, host):
    files = tls.ensure_certificates(tmp_path, wall_now(), partners=["acme"])
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(files.certificate, files.key)
    client = ssl.create_default_context(cafile=str(files.authority))
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    near, far = socket.socketpair()

    def answer():
        with server.wrap_socket(far, server_side=True) as accepted:
            accepted.sendall(b"hello")

    answering = threading.Thread(target=answer)
    answering.start()
    with client.wrap_socket(near, server_hostname=host) as connected:
        assert connected.recv(5) == b"hello"
    answering.join()

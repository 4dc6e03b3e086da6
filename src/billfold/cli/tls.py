"""A certificate authority for one machine, and the server certificate it issues.

For development and the sandbox only. The authority is limited to the names and
addresses it was made for, so its key is worth little to a thief.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_ADDRESSES = (ip_address("127.0.0.1"), ip_address("::1"))
_NETWORKS = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
_AUTHORITY_LIFETIME = timedelta(days=3650)
_LEAF_LIFETIME = timedelta(days=397)
_RENEW_BEFORE = timedelta(days=30)
# Clocks of other machines may be slightly behind ours.
_BACKDATED_BY = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The certificate of the authority, and the certificate and key of the server."""

    authority: Path
    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class _KeyPair:
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


def ensure_certificates(
    state_dir: Path, now: datetime, *, domain: str = "localhost", partners: Iterable[str] = ()
) -> TlsFiles:
    """Return certificates under `state_dir`/tls for the domain, `auth.`, `api.`, `cards.` and partners.

    `now` is wall time. Existing files are kept; the server's certificate is reissued if a name
    is missing, if it expires within 30 days, or if its authority has changed.
    """
    folder = state_dir / "tls"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    files = TlsFiles(folder / "ca.pem", folder / "server.pem", folder / "server.key")
    subdomains = ("auth", "api", "cards", *partners)
    names = sorted({"localhost", domain, *(f"{each}.{domain}" for each in subdomains)})
    with _issuing_lock(folder):
        authority = _load_pair(folder / "ca.key", files.authority)
        if authority is None or not _may_issue(authority.certificate, domain, now):
            authority = _new_authority(domain, now)
            _write_pair(folder / "ca.key", files.authority, authority)
        leaf = _load_pair(files.key, files.certificate)
        if leaf is None or not _is_current(leaf.certificate, authority.certificate, names, now=now):
            _write_pair(files.key, files.certificate, _new_leaf(authority, names, now))
    return files


def _new_authority(domain: str, now: datetime) -> _KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Billfold development"),
            x509.NameAttribute(NameOID.COMMON_NAME, f"Billfold development authority for {domain}"),
        ]
    )
    permitted: list[x509.GeneralName] = [x509.DNSName(name) for name in _permitted_domains(domain)]
    permitted += [x509.IPAddress(network) for network in _NETWORKS]
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        _builder(subject, subject, key, now=now, lifetime=_AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.NameConstraints(permitted, None), critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )
    return _KeyPair(key, certificate)


def _new_leaf(authority: _KeyPair, names: list[str], now: datetime) -> _KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Billfold")])
    alternatives: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
    alternatives += [x509.IPAddress(address) for address in _ADDRESSES]
    issuer_key = authority.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    certificate = (
        _builder(subject, authority.certificate.subject, key, now=now, lifetime=_LEAF_LIFETIME)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_key.value), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return _KeyPair(key, certificate)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED_BY)
        .not_valid_after(now + lifetime)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _permitted_domains(domain: str) -> list[str]:
    return sorted({"localhost", domain})


def _may_issue(certificate: x509.Certificate, domain: str, now: datetime) -> bool:
    """Tell whether the authority covers the domain and outlives a certificate issued now."""
    limits = certificate.extensions.get_extension_for_class(x509.NameConstraints).value
    covered = {name.value for name in limits.permitted_subtrees or [] if isinstance(name, x509.DNSName)}
    return covered >= set(_permitted_domains(domain)) and certificate.not_valid_after_utc > now + _LEAF_LIFETIME


def _is_current(certificate: x509.Certificate, authority: x509.Certificate, names: list[str], now: datetime) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return (
        set(alternatives.get_values_for_type(x509.DNSName)) >= set(names)
        and certificate.not_valid_before_utc <= now
        and certificate.not_valid_after_utc > now + _RENEW_BEFORE
    )


def _load_pair(key_file: Path, certificate_file: Path) -> _KeyPair | None:
    """Return the pair in these files, or None if it is missing, damaged or does not match."""
    try:
        key = load_pem_private_key(key_file.read_bytes(), password=None)
        certificate = x509.load_pem_x509_certificate(certificate_file.read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        return None
    if key.public_key() != certificate.public_key():
        return None
    return _KeyPair(key, certificate)


def _write_pair(key_file: Path, certificate_file: Path, pair: _KeyPair) -> None:
    secret = pair.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    _replace_file(key_file, secret)
    _replace_file(certificate_file, pair.certificate.public_bytes(Encoding.PEM))


def _replace_file(path: Path, content: bytes) -> None:
    """Write a file atomically: never half written, never readable by others in between."""
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(content)
    temporary.replace(path)


@contextmanager
def _issuing_lock(folder: Path) -> Iterator[None]:
    """Keep a second process of the bank from issuing at the same time."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class CertificateReport(NamedTuple):
    """`fault` is the reason why no client would accept the certificate, or empty; `uncovered` are names it lacks."""

    fault: str
    valid_until: datetime | None = None
    uncovered: Sequence[str] = ()


def inspect_certificate(certificate: Path, key: Path, names: Iterable[str], now: datetime) -> CertificateReport:
    """Compare a certificate (PEM) with its key (PEM), the wall time and the host names it serves."""
    try:
        leaf = x509.load_pem_x509_certificate(certificate.read_bytes())
        secret = load_pem_private_key(key.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        return CertificateReport(f"{certificate} and {key} cannot be read: {error}")
    ends = leaf.not_valid_after_utc
    if secret.public_key() != leaf.public_key():
        return CertificateReport(f"{key} is not the key of {certificate}", ends)
    if not leaf.not_valid_before_utc <= now <= ends:
        return CertificateReport(f"{certificate} is valid from {leaf.not_valid_before_utc} to {ends} only", ends)
    covered = _names_of(leaf)
    return CertificateReport("", ends, [name for name in names if not _covers(covered, name)])


def _names_of(leaf: x509.Certificate) -> set[str]:
    try:
        alternatives = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {name.lower() for name in alternatives.get_values_for_type(x509.DNSName)}


def _covers(covered: set[str], name: str) -> bool:
    """A wildcard stands for one whole label, the first (RFC 6125)."""
    return name in covered or f"*.{name.partition('.')[2]}" in covered

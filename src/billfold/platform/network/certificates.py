"""What is wrong with a server's certificate, before the first client finds out."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key


class CertificateReport(NamedTuple):
    """`fault` says why no client would accept the certificate, or is empty; `uncovered` are names it lacks."""

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
    """A star stands for one whole label, the first (RFC 6125)."""
    return name in covered or f"*.{name.partition('.')[2]}" in covered

"""Types of documents, names of their files, and the bytes they begin with. Pure."""

import re
from collections.abc import Mapping
from typing import Final
from unicodedata import category
from urllib.parse import unquote

from billfold.platform.errors import BillfoldError, InvalidInput
from billfold.platform.file_kinds import IDENTITY_DOCUMENTS, SIGNATURES, FileKind, max_file_bytes

PROOF_OF_ACCOUNT: Final = "WIRE_COUNTERPARTY_VERIFICATION"
"""The type of a document that proves who owns a counterparty's account."""
DISPUTE_EVIDENCE: Final = "DISPUTE_EVIDENCE"
"""The type of a document about a disputed card payment."""
OF_PAYMENTS: Final = frozenset({PROOF_OF_ACCOUNT, DISPUTE_EVIDENCE})
"""The types that those who move money upload."""
TYPES: Final = frozenset(
    (
        *IDENTITY_DOCUMENTS, "IDENTIFICATION_NUMBER_VERIFICATION", "ADDRESS_VERIFICATION", "EIN_CONFIRMATION",
        "OPERATING_AGREEMENT", "PARTNERSHIP_AGREEMENT", "ARTICLES_OF_INCORPORATION", "BYLAWS",
        "PROOF_OF_501_STATUS", "ARTICLES_OF_ASSOCIATION", "CORPORATE_CHARTER", "TRUST_FORMATION_RECORDS",
        "LIST_OF_TRUSTEES", "ARTICLES_OF_ORGANIZATION", "FLOW_OF_FUNDS", "BANK_STATEMENTS_1",
        "BANK_STATEMENTS_2", "BANK_STATEMENTS_3", "ORG_CHART", "BUSINESS_DESCRIPTION",
        "LEGAL_ANALYSIS_OF_BUSINESS_MODEL", "COINS_AND_TOKENS_LISTED_AND_OFFERED",
        "COIN_RATING_POLICY_AND_PROCEDURES", "TYPE_OF_BLOCKCHAIN_ANALYTICS_USED", "MARKET_MANIPULATION_POLICY",
        "BSA_AML_OFAC_POLICIES", "INDEPENDENT_AML_AUDIT_REPORT", "BSA_AML_OFAC_INTERNAL_RISK_ASSESSMENT",
        PROOF_OF_ACCOUNT, DISPUTE_EVIDENCE, "OTHER",
    )
)  # fmt: skip

_NAME_CHARS_MAX: Final = 255
_EXTENSIONS: Final[Mapping[FileKind, frozenset[str]]] = {
    FileKind.PDF: frozenset({"pdf"}),
    FileKind.PNG: frozenset({"png"}),
    FileKind.JPEG: frozenset({"jpg", "jpeg"}),
}
_FILENAME = re.compile(r"""filename="((?:[^"\\]|\\.)*)"|filename=([^;"\s]+)""", re.IGNORECASE)
_FILENAME_UTF8 = re.compile(r"filename\*=UTF-8'[^']*'([^;\s]+)", re.IGNORECASE)
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Categories of characters that are invisible, or change the display of others."""


def parse_file_name(disposition: str | None) -> str | None:
    """Return the file name in a `content-disposition`, without any folders, or None.

    Raises InvalidInput for the header if the name is invalid.
    """
    if not disposition:
        return None
    extended, plain = _FILENAME_UTF8.search(disposition), _FILENAME.search(disposition)
    if extended is None and plain is None:
        return None
    if extended is not None:
        name = unquote(extended[1], errors="replace")
    else:
        assert plain is not None
        name = re.sub(r"\\(.)", r"\1", plain[1]) if plain[1] is not None else plain[2]
    name = re.split(r"[/\\]", name)[-1].strip()
    if not name.strip(".") or len(name) > _NAME_CHARS_MAX or not _INVISIBLE.isdisjoint(map(category, name)):
        raise InvalidInput.at(
            "header", "content-disposition", msg=f"must name a file in 1 to {_NAME_CHARS_MAX} visible characters"
        )
    return name


def check_file(content: bytes, kind: FileKind, type_: str, name: str | None) -> None:
    """Raise unless bytes, name and declared kind agree, and the file is not too large.

    Raises InvalidInput for an empty file, `payload-too-large`, `unsupported-media-type`.
    """
    if not content:
        raise InvalidInput.at("body", msg="a file is required", kind="missing")
    bytes_max = max_file_bytes(kind, type_)
    if len(content) > bytes_max:
        raise BillfoldError("payload-too-large", f"A {type_} may have at most {bytes_max:,} bytes.")
    if not content.startswith(SIGNATURES[kind]):
        raise BillfoldError("unsupported-media-type", f"The file does not begin like {kind}.")
    extension = name.rpartition(".")[2].lower() if name and "." in name else None
    if extension is not None and extension not in _EXTENSIONS[kind]:
        raise BillfoldError("unsupported-media-type", f"The file is declared as {kind} and called .{extension}.")

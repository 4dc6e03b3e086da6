"""A counterparty as returned by both APIs, and the bodies that create one."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.accounts.addresses import Address, find_address_error
from billfold.accounts.counterparties.names import NameMatch
from billfold.accounts.counterparties.rules import identifiers
from billfold.accounts.counterparties.types import CounterpartyRow, CounterpartyStatus, format_name
from billfold.accounts.notes.schemas import NewNote
from billfold.accounts.notes.types import ShownNote
from billfold.documents.rules import PROOF_OF_ACCOUNT
from billfold.http.schemas import NOT_BLANK, CheckedBody, one_of
from billfold.platform.errors import FieldError
from billfold.platform.settings.settings import Settings

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=50, pattern=NOT_BLANK)]
DisplayName = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=NOT_BLANK)]
Institution = Annotated[str, msgspec.Meta(min_length=1, max_length=140, pattern=NOT_BLANK)]
WireText = Annotated[str, msgspec.Meta(min_length=1, max_length=140, pattern=NOT_BLANK)]
DocumentIds = Annotated[list[UUID], msgspec.Meta(max_length=20)]


class IndividualName(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="individual"):
    """A person."""

    first_name: Name
    last_name: Name


class BusinessName(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="business"):
    """A company."""

    business_name: Annotated[str, msgspec.Meta(min_length=1, max_length=250, pattern=NOT_BLANK)]


CounterpartyName = IndividualName | BusinessName


_IDENTIFIER_CHECKS = {
    "IBAN": identifiers.iban_error,
    "ACCOUNT_NUMBER": identifiers.account_number_error,
    None: identifiers.identifier_error,
}


class _Form(NewNote, CheckedBody, forbid_unknown_fields=True, kw_only=True, tag_field="type"):
    """The fields of every variant."""

    number_checks: ClassVar[tuple[tuple[str, Callable[[str], str | None]], ...]] = ()
    """Fields with the checks that return the error of their numbers."""
    needs_state: ClassVar[bool] = False
    """True if its address must have a state."""

    counterparty_name: CounterpartyName
    display_name: DisplayName | None = None

    @classmethod
    @override
    def field_errors(cls, fields: Mapping[str, Any]) -> Iterator[FieldError]:
        """Yield the errors in its numbers, its address and its documents."""
        for field, check in cls.number_checks:
            yield from _field_error(field, fields, check)
        yield from _address_errors(fields, state=cls.needs_state)
        yield from _document_errors(fields)


class WireForm(_Form, kw_only=True, tag="wire"):
    """An account that domestic wires can reach: `identifier` is its number or its IBAN."""

    number_checks = (("routing_number", identifiers.routing_number_error), ("identifier", identifiers.identifier_error))
    needs_state = True

    routing_number: str
    identifier: str
    address: Address
    institution_name: Institution | None = None
    wire_instructions: WireText | None = None


class AchForm(_Form, kw_only=True, tag="ach"):
    """An account that ACH entries can reach."""

    number_checks = (
        ("routing_number", identifiers.routing_number_error),
        ("account_number", identifiers.us_account_number_error),
    )

    routing_number: str
    account_number: str
    account_type: Literal["CHECKING", "SAVINGS"]
    institution_name: Institution | None = None


class InternationalForm(_Form, kw_only=True, tag="international_wire"):
    """An account abroad: `routing_number` is its bank's BIC, `identifier` its number or IBAN.

    The two may be swapped: the BIC in `identifier`, the number in `account_number`.
    """

    identifier: str
    identifier_code: Literal["SWIFT_BIC"]
    address: Address
    routing_number: str | None = None
    account_number: str | None = None
    identifier_type: Literal["ACCOUNT_NUMBER", "IBAN"] | None = None
    institution_name: Institution | None = None
    wire_instructions: WireText | None = None

    @classmethod
    @override
    def field_errors(cls, fields: Mapping[str, Any]) -> Iterator[FieldError]:
        """Yield the errors in its numbers, its address and its documents."""
        is_swapped = fields.get("account_number") is not None
        bic, number = ("identifier", "account_number") if is_swapped else ("routing_number", "identifier")
        if is_swapped and fields.get("routing_number") not in {None, fields.get("identifier")}:
            yield _error("routing_number", "is only allowed with account_number if it is the BIC")
        if bic in fields and fields[bic] is None:
            yield FieldError(("body", bic), "is required", "missing")
        else:
            yield from _field_error(bic, fields, lambda text: identifiers.bic_error(text.upper()))
        yield from _field_error(number, fields, _IDENTIFIER_CHECKS[fields.get("identifier_type")])
        yield from super().field_errors(fields)


class OnUsForm(_Form, kw_only=True, tag="on_us"):
    """A Pocket of this bank, by its 12-digit network address. The name is compared with its owner's registered name.

    A trading name is proven by `supporting_documents`.
    """

    account_number: str


class WalletForm(_Form, kw_only=True, tag="crypto_wallet_address"):
    """A wallet; the address is checked by the rules of its chain. It is `unverified` without supporting documents."""

    chain: Literal["ETHEREUM", "SOLANA", "POLYGON", "BASE"]
    wallet_address: str
    asset: Literal["USDC"] = "USDC"

    @classmethod
    @override
    def field_errors(cls, fields: Mapping[str, Any]) -> Iterator[FieldError]:
        """Yield the errors in its address and its documents."""
        if fields.get("display_name") is not None:
            yield FieldError(("body", "display_name"), "is not taken with a wallet", "extra_forbidden")
        if "chain" in fields:
            yield from _field_error(
                "wallet_address", fields, lambda text: identifiers.wallet_error(fields["chain"], text)
            )
        yield from super().field_errors(fields)


Form = WireForm | AchForm | InternationalForm | OnUsForm | WalletForm


VerificationKind = Annotated[
    str,
    one_of(
        "incoming_wire",
        "micro_deposits",
        "name_match",
        "linking_provider",
        "pre_verified",
        "supporting_documents",
        "unverified",
    ),
]
VerificationStatus = Annotated[
    str, one_of("PENDING_UPLOAD", "PENDING_REVIEW", "APPROVED", "REJECTED", "EXPIRED", "NOT_REQUIRED")
]


class SupportingDocument(msgspec.Struct, kw_only=True):
    """A document that proves who holds the account."""

    document_id: UUID
    type: Annotated[str, one_of(PROOF_OF_ACCOUNT)]
    status: Annotated[str, one_of("PENDING_UPLOAD", "PENDING_REVIEW", "APPROVED", "INVALID")]


class ShownVerification(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The verification of the account: its kind, its status and its documents."""

    id: UUID
    type: VerificationKind
    status: VerificationStatus
    description: str
    supporting_documents: list[SupportingDocument]
    verification_failure_count: int | None = None
    name_match: NameMatch | None = None
    """The match of the name with that of the account's owner, if the account is at this bank."""
    registered_name: str | None = None
    """The owner's registered name, with all but the first letters masked."""


class Counterparty(ShownNote, kw_only=True):
    """A payee of a customer."""

    id: UUID
    time_created: datetime
    status: Annotated[str, one_of(*CounterpartyStatus)]
    verification: ShownVerification
    type: Annotated[str, one_of("ach", "wire", "on_us", "international_wire", "crypto_wallet_address")]
    counterparty_name: str
    institution_name: str | None
    routing_number: str | None
    account_number: str | None
    account_type: Annotated[str, one_of("CHECKING", "SAVINGS")] | None
    identifier_type: Annotated[str, one_of("ACCOUNT_NUMBER", "IBAN")] | None
    identifier_code: str | None
    address: dict[str, Any] | None
    wire_instructions: str | None
    chain: str | None
    wallet_address: str | None
    asset: str | None
    display_name: str | None
    object_type: Literal["Counterparty"] = "Counterparty"


_DETAILS = (
    "institution_name",
    "routing_number",
    "account_type",
    "identifier_type",
    "identifier_code",
    "address",
    "wire_instructions",
    "chain",
    "wallet_address",
    "asset",
)


def _address_errors(fields: Mapping[str, Any], *, state: bool) -> Iterator[FieldError]:
    """Yield the errors in an address; `state` if it must have one."""
    address: Address | None = fields.get("address")
    if address is None:
        return
    if error := find_address_error(msgspec.structs.replace(address, state=address.state or None)):
        field, reason = error
        yield _error("address", reason, field)
    if state and not address.state:
        yield FieldError(("body", "address", "state"), "is required", "missing")


def _document_errors(fields: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield the mismatches between a kind of verification and its documents."""
    verification = fields.get("verification")
    if verification is None:
        return
    if verification.type == "supporting_documents" and not verification.document_ids:
        yield FieldError(("body", "verification", "document_ids"), "must name at least one document", "missing")
    if verification.type != "supporting_documents" and verification.document_ids:
        yield _error("verification", f"are not taken with {verification.type}", "document_ids")
    if verification.document_ids and len(set(verification.document_ids)) != len(verification.document_ids):
        yield _error("verification", "name a document twice", "document_ids")


def render_counterparty(
    row: CounterpartyRow, settings: Settings, documents: Iterable[SupportingDocument] = ()
) -> Counterparty:
    """Return a counterparty for display; `documents` are the current ones of its verification."""
    details = msgspec.json.decode(row.details)
    if row.type == "on_us":
        details["institution_name"] = settings.bank_name
    return Counterparty(
        id=row.counterparty_id,
        time_created=row.created_at,
        status=row.status,
        verification=_render_verification(msgspec.json.decode(row.verification), row.status, list(documents)),
        type=row.type,
        counterparty_name=format_name(msgspec.json.decode(row.counterparty_name)),
        account_number=row.account_number,
        display_name=row.display_name,
        **{name: details.get(name) for name in _DETAILS},
    )


def _render_verification(
    stored: Mapping[str, Any], status: str, documents: list[SupportingDocument]
) -> ShownVerification:
    """Return a verification for display. It waits for files if a document has none."""
    check = stored.get("name_check", {})
    lacks_file = any(each.status in {"PENDING_UPLOAD", "INVALID"} for each in documents)
    return ShownVerification(
        id=UUID(stored["id"]),
        type=stored["type"],
        status="PENDING_UPLOAD" if lacks_file and status == "PENDING" else stored["status"],
        description=stored["description"],
        supporting_documents=documents,
        verification_failure_count=stored.get("failures"),
        name_match=check.get("outcome"),
        registered_name=check.get("registered_name"),
    )


def _field_error(field: str, fields: Mapping[str, Any], check: Any) -> Iterator[FieldError]:  # noqa: ANN401 - any check
    value = fields.get(field)
    reason = None if value is None else check(value)
    if reason is not None:
        yield _error(field, reason)


def _error(field: str, reason: str, *inside: str) -> FieldError:
    return FieldError(("body", field, *inside), reason, "value_error")

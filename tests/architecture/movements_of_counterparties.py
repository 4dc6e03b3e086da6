"""What becomes of counterparties, played on books in memory."""

from uuid import UUID

from tests.architecture.world import World

from billfold.accounts.counterparties.commands import (
    AddCounterparty,
    ConfirmDeposits,
    CorrectAccount,
    DecideVerification,
    ExpireVerification,
    FailVerification,
    SettleLink,
    UpdateCounterparty,
)
from billfold.accounts.counterparties.rules.notification_of_change import Correction
from billfold.accounts.counterparties.rules.verification_kinds import Account


def _one():
    world = World()
    anna = world.customer("Anna")
    return world, anna, world.pocket(anna)


def _linked():
    world, anna, _ = _one()
    bert = world.customer("Bert")
    berts = world.pocket(bert)
    world.forget()
    added = world.do(
        AddCounterparty,
        anna,
        counterparty_name={"name": "Bert"},
        display_name=None,
        type="on_us",
        details={"account_number": "700000000001"},
        target_customer_id=bert,
        target_pocket_id=berts[0],
    )
    return world, anna, UUID(added["counterparty_id"])


def a_counterparty_is_linked():
    world, _, _ = _linked()
    return world.moved()


def a_counterparty_changes_or_is_unlinked():
    world, anna, counterparty = _linked()
    world.forget()
    world.do(UpdateCounterparty, anna, counterparty_id=counterparty, unlink=True)
    return world.moved()


def _waiting(verification, **fields):
    world, anna, pocket = _one()
    added = world.do(
        AddCounterparty,
        anna,
        type="ach",
        counterparty_name={"business_name": "Bert"},
        details={"routing_number": "021000021", "account_number": "12345678"},
        verification=verification,
        **fields,
    )
    world.forget()
    return world, anna, pocket, UUID(added["counterparty_id"])


def a_wire_proves_whose_account_it_is():
    world, anna, pocket, _ = _waiting("incoming_wire")
    world.receive(anna, pocket, 50_000_00, sender=Account("021000021", "12345678"))
    return world.moved()


def deposits_are_confirmed():
    world, anna, _, counterparty = _waiting("micro_deposits")
    world.do(ConfirmDeposits, anna, counterparty_id=counterparty, amounts=(22, 11))
    return world.moved()


def a_verification_is_decided():
    document = UUID("8f3b6f60-0000-4000-8000-0000000000d0")
    world, anna, _, counterparty = _waiting("supporting_documents", document_ids=(document,))
    world.do(DecideVerification, anna, counterparty_id=counterparty, approved=True)
    return world.moved()


def a_verification_fails():
    world, anna, _, counterparty = _waiting("micro_deposits")
    world.do(FailVerification, anna, counterparty_id=counterparty, reason="They came back.")
    return world.moved()


def a_verification_expires():
    world, anna, _, counterparty = _waiting("incoming_wire")
    world.do(ExpireVerification, anna, counterparty_id=counterparty)
    return world.moved()


def an_account_is_corrected():
    world, anna, _, counterparty = _waiting("micro_deposits")
    correction = Correction(account_number="87654321", transaction_code="32")
    world.do(CorrectAccount, anna, counterparty_id=counterparty, correction=correction)
    return world.moved()


def a_counterparty_waits_for_a_wire():
    world, anna, _ = _one()
    world.forget()
    world.do(
        AddCounterparty,
        anna,
        type="ach",
        counterparty_name={"business_name": "Bert"},
        details={"routing_number": "021000021", "account_number": "12345678"},
        verification="incoming_wire",
    )
    return world.moved()


def a_linked_account_is_settled():
    linked = {"id": "x", "mask": "5678", "status": "PENDING_MANUAL_VERIFICATION", "access": ""}
    world, anna, _, counterparty = _waiting("linking_provider", linked=linked)
    world.do(SettleLink, anna, counterparty_id=counterparty, link_status="MANUALLY_VERIFIED")
    return world.moved()


OF_COUNTERPARTIES = {
    "Counterparty added": a_counterparty_is_linked,
    "Counterparty awaiting a wire": a_counterparty_waits_for_a_wire,
    "Counterparty updated or unlinked": a_counterparty_changes_or_is_unlinked,
    "Incoming wire verifies a counterparty": a_wire_proves_whose_account_it_is,
    "Micro-deposits confirmed": deposits_are_confirmed,
    "Verification decided": a_verification_is_decided,
    "Verification failed": a_verification_fails,
    "Verification expired": a_verification_expires,
    "Account corrected by its bank": an_account_is_corrected,
    "Account linking completed": a_linked_account_is_settled,
}

"""Who reads what commands reference."""

from billfold.domain import ach, activity, counterparties, custody, documents, suspense
from billfold.domain.wires.reads import look_up as look_up_wires
from billfold.engine.references import ReferenceReaders
from billfold.flows.command import Reference


def reference_readers() -> ReferenceReaders:
    """Return the reader of each kind of reference."""
    return {
        Reference.ACH_ENTRY: ach.look_up,
        Reference.COUNTERPARTY: counterparties.look_up,
        Reference.DOCUMENT: documents.look_up,
        Reference.OPEN_ACH_ENTRIES: ach.look_up_under_way,
        Reference.SECURITY_TRANSFER: custody.look_up,
        Reference.SUSPENSE_ITEM: suspense.look_up,
        Reference.TRANSACTION: activity.look_up,
        Reference.WIRE: look_up_wires,
    }

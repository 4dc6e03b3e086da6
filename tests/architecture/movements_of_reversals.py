"""Movements of reversals of on-us transfers."""

from uuid import UUID

from billfold.payments.on_us.commands import TransferOrder
from billfold.payments.on_us.reversals.commands import EndReversalRequest, RequestReversal, ReversalStatus


def play_reversals(new_stage):
    stage = new_stage()
    anna, pocket = stage.rich()
    bert = stage.new_customer("Bert")
    theirs = stage.new_pocket(bert)
    paid = UUID(stage.transfer(pocket, theirs, 50_000_00)["transfer_id"])
    asked = {"transfer_id": paid, "references": (paid,), "amount": 100_00}
    for number, (title, status) in enumerate((("declined", ReversalStatus.DECLINED), ("accepted", None)), start=910):
        with stage.row("Reversal requested"):
            stage.submit(RequestReversal, bert, anna, reversal_id=UUID(int=number), **asked)
        if status is not None:
            request = {"reversal_id": UUID(int=number), "references": (UUID(int=number),)}
            with stage.row(f"Reversal {title}"):
                stage.submit(EndReversalRequest, bert, anna, status=status, **request)
    with stage.row("On-us payment reversed, by its payee", bert):
        stage.transfer(theirs, pocket, 100_00, order=TransferOrder(reverses=paid), references=(paid,))

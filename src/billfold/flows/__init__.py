"""Verbs that cross nouns, pure: the table of contents of the money.

Owns every decision that moves money or bills. Never touches the database, HTTP or a clock.
`FLOWS` maps each command to the function that decides it.
"""

from billfold.flows.adjust import (
    AdjustPocket,
    CorrectBooking,
    GiveCredit,
    adjust_pocket,
    correct_booking,
    give_credit,
)
from billfold.flows.collect_ach import CollectAch, collect_ach
from billfold.flows.command import Command, Flow
from billfold.flows.counterparties import (
    AddCounterparty,
    UpdateCounterparty,
    add_counterparty,
    update_counterparty,
)
from billfold.flows.customers import (
    CloseCustomer,
    UpdateCustomer,
    close_customer,
    update_customer,
)
from billfold.flows.due import CatchUp, nothing_more
from billfold.flows.enrol import EnrolCustomer, enrol_customer
from billfold.flows.house import CloseHouseDay, close_house_day
from billfold.flows.micro_deposits import SendMicroDeposits, send_micro_deposits
from billfold.flows.originate_ach import OriginateAch, originate_ach
from billfold.flows.pay_back_wire import PayBackWire, pay_back_wire
from billfold.flows.pockets import (
    OpenPocket,
    SetPocketState,
    UpdatePocket,
    open_pocket,
    set_pocket_state,
    update_pocket,
)
from billfold.flows.portals import OpenPortal, UpdatePortal, open_portal, update_portal
from billfold.flows.postpone_ach import PostponeAch, postpone_ach
from billfold.flows.receive import ReceiveMoney, receive_money
from billfold.flows.receive_ach import GiveBackAch, ReceiveAch, give_back_ach, receive_ach
from billfold.flows.return_ach import NoteAchChange, ReturnAch, note_ach_change, return_ach
from billfold.flows.reverse_ach import RetryAch, ReverseAch, retry_ach, reverse_ach
from billfold.flows.review_ach import ReviewAch, review_ach
from billfold.flows.send_ach import CountAchSettled, SendAch, count_ach_settled, send_ach
from billfold.flows.send_wire import SendWire, send_wire
from billfold.flows.suspense import (
    AssignFromSuspense,
    HoldInSuspense,
    ReturnFromSuspense,
    assign_from_suspense,
    hold_in_suspense,
    return_from_suspense,
)
from billfold.flows.take_back_wire import TakeBackWire, take_back_wire
from billfold.flows.transfer_bills import (
    DeliverBills,
    EndDelivery,
    ReceiveBills,
    deliver_bills,
    end_delivery,
    receive_bills,
)
from billfold.flows.transfer_on_us import TransferOnUs, transfer_on_us
from billfold.flows.verify_counterparty import (
    ConfirmDeposits,
    CorrectAccount,
    DecideVerification,
    ExpireVerification,
    FailVerification,
    SettleLink,
    confirm_deposits,
    correct_account,
    decide_verification,
    expire_verification,
    fail_verification,
    settle_link,
)
from billfold.flows.wire_moves import (
    CompleteWire,
    RejectWire,
    SubmitWire,
    complete_wire,
    reject_wire,
    submit_wire,
)

FLOWS: dict[type[Command], Flow] = {
    AddCounterparty: add_counterparty,
    AdjustPocket: adjust_pocket,
    AssignFromSuspense: assign_from_suspense,
    CatchUp: nothing_more,
    CloseCustomer: close_customer,
    CloseHouseDay: close_house_day,
    CollectAch: collect_ach,
    CountAchSettled: count_ach_settled,
    ConfirmDeposits: confirm_deposits,
    CorrectAccount: correct_account,
    DecideVerification: decide_verification,
    CompleteWire: complete_wire,
    CorrectBooking: correct_booking,
    DeliverBills: deliver_bills,
    EndDelivery: end_delivery,
    EnrolCustomer: enrol_customer,
    GiveBackAch: give_back_ach,
    NoteAchChange: note_ach_change,
    ExpireVerification: expire_verification,
    FailVerification: fail_verification,
    GiveCredit: give_credit,
    HoldInSuspense: hold_in_suspense,
    OpenPocket: open_pocket,
    OpenPortal: open_portal,
    PayBackWire: pay_back_wire,
    OriginateAch: originate_ach,
    PostponeAch: postpone_ach,
    ReceiveAch: receive_ach,
    ReceiveMoney: receive_money,
    RetryAch: retry_ach,
    ReturnAch: return_ach,
    ReverseAch: reverse_ach,
    ReviewAch: review_ach,
    SendAch: send_ach,
    SendMicroDeposits: send_micro_deposits,
    ReceiveBills: receive_bills,
    ReturnFromSuspense: return_from_suspense,
    RejectWire: reject_wire,
    SendWire: send_wire,
    SettleLink: settle_link,
    SetPocketState: set_pocket_state,
    SubmitWire: submit_wire,
    TakeBackWire: take_back_wire,
    TransferOnUs: transfer_on_us,
    UpdateCounterparty: update_counterparty,
    UpdateCustomer: update_customer,
    UpdatePocket: update_pocket,
    UpdatePortal: update_portal,
}

"""Problems of money on its way: funds, counterparties, approvals, rails, cards."""

from billfold.kit.problems.problem import Problem, by_code

TRANSFERS = by_code(
    Problem(
        "rail-not-available",
        422,
        "This rail is not available",
        "The bank does not offer this kind of counterparty or portal.",
        "Use one of the kinds named in `detail`, or ask the operator when the rail opens.",
    ),
    Problem(
        "insufficient-funds",
        422,
        "Not enough money",
        "What the pocket can raise by now, less holds and money still at risk of return, does not "
        "cover the amount and its fees. Nothing was sold or moved.",
        "Compare the amount with `liquidation_value_t0` of the pocket, lower it, or send "
        "`FULL_WITHDRAWAL` to move everything there is.",
    ),
    Problem(
        "amount-not-allowed",
        422,
        "The amount is out of bounds",
        "The amount is zero, or beyond what the rail or the customer's limits let through.",
        "Send an amount within the bounds named in `detail`, or split the payment.",
    ),
    Problem(
        "same-pocket",
        422,
        "Origin and destination are one pocket",
        "Money cannot be moved from a pocket into itself.",
        "Name another pocket as the destination.",
    ),
    Problem(
        "transfer-type-not-allowed",
        422,
        "This type of transfer does not work between these accounts",
        "The two ends do not fit the type: bills move directly only between network pockets of "
        "one customer, funding and defunding only between a partner and its customers.",
        "Use `BANK_TRANSFER`, or choose the type that fits the two accounts.",
    ),
    Problem(
        "counterparty-not-verified",
        422,
        "The counterparty cannot be paid yet",
        "Money goes only to counterparties that are `LINKED` or `VERIFIED`; unverified ones take "
        "wires only, and only where `unverified_wires` is switched on.",
        "Finish the verification (upload the documents, confirm the deposits, or wait for the "
        "incoming wire) and send the payment when `status` says `VERIFIED`.",
    ),
    Problem(
        "counterparty-not-linked",
        409,
        "The counterparty has been unlinked",
        "An unlinked counterparty stays so for good.",
        "Create the counterparty anew.",
    ),
    Problem(
        "counterparty-type-mismatch",
        422,
        "The counterparty belongs to another rail",
        "The payment needs a counterparty of another type, such as `wire` for a wire.",
        "Create a counterparty of the type named in `detail`, and use that one.",
    ),
    Problem(
        "verification-not-accepted",
        422,
        "This kind of verification is not accepted here",
        "Each API takes only certain kinds of verification for each type of counterparty.",
        "Use `supporting_documents` or `incoming_wire`, which both APIs take.",
    ),
    Problem(
        "micro-deposits-not-pending",
        409,
        "There are no micro deposits to confirm",
        "The deposits were confirmed already, failed three times, or were never sent.",
        "Read the counterparty's `verification`. After three failures create it anew.",
    ),
    Problem(
        "no-open-portal",
        409,
        "There is no open portal",
        "Money arrives through a portal, and this pocket has none that is open.",
        "Create a bank portal for the pocket, then try again.",
    ),
    Problem(
        "transfer-request-not-pending",
        409,
        "The request is already decided",
        "The transfer request has been approved, denied, cancelled, or has expired.",
        "Read the request; to move the money after all, create a new one.",
    ),
    Problem(
        "already-reviewed",
        409,
        "This reviewer has decided already",
        "Each reviewer has one voice.",
        "Have another reviewer decide, or wait for the others.",
    ),
    Problem(
        "ach-origination-not-pending",
        409,
        "The origination is past its review",
        "Only originations that are `PENDING` can be changed or cancelled.",
        "Read its status. What has left can only come back as a return or a new payment.",
    ),
    Problem(
        "ach-origination-not-sent",
        409,
        "The origination has not been sent",
        "Nothing comes back, and nothing is corrected, that is in no file yet.",
        "Wait for its window, or let the sandbox submit it.",
    ),
    Problem(
        "ach-origination-not-reversible",
        409,
        "The origination cannot be reversed",
        "Only an entry that was sent and has not come back is reversed, once, and within five "
        "banking days of its settlement.",
        "Read its status. Otherwise originate a payment the other way.",
    ),
    Problem(
        "ach-origination-not-returned",
        409,
        "The origination is not sent again",
        "Only a debit that came back for want of funds is sent again, twice at most.",
        "Read `return_code`. For another reason, put it right and originate anew.",
    ),
    Problem(
        "ach-entry-not-returnable",
        409,
        "The entry cannot go back",
        "It has gone back already, its pocket is closed, or the code's time is over.",
        "Use a code whose time still runs, or pay the sender.",
    ),
    Problem(
        "card-not-activated",
        409,
        "The card is not activated",
        "A physical card works only after its PIN is set and its status is `ONLINE`.",
        "Set the PIN, then set `card_status` to `ONLINE`.",
    ),
    Problem(
        "card-already-activated",
        409,
        "The card is activated already",
        "The PIN is set once, before the card is activated.",
        "Use the card with its PIN. If the PIN is lost, close the card and order another.",
    ),
    Problem(
        "card-frozen",
        409,
        "The card is frozen",
        "The bank has frozen the card, and only the bank unfreezes it.",
        "Contact the operator; use another card meanwhile.",
    ),
    Problem(
        "card-closed",
        409,
        "The card is closed",
        "A closed card stays closed.",
        "Create a virtual card, or order a physical one.",
    ),
    Problem(
        "card-not-virtual",
        422,
        "Only virtual cards can do this",
        "The operation is for virtual cards, and this one is physical.",
        "Name a virtual card, or use the operation for physical ones.",
    ),
    Problem(
        "card-order-not-ordered",
        409,
        "The card order has gone further",
        "The order has its card already, or is not placed yet.",
        "Read the order: `card_id` names the card once there is one.",
    ),
    Problem(
        "public-key-reused",
        422,
        "The key was used before",
        "Card details are encrypted to a key that is used exactly once.",
        "Make a new RSA key pair of 4096 bits for every request, and forget it afterwards.",
    ),
)

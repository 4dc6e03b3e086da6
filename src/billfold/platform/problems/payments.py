"""Problems of payments: funds, counterparties, approvals, rails, cards."""

from billfold.platform.errors import Problem

TRANSFERS: dict[str, Problem] = {
    "rail-not-available": Problem(
        "The rail is not available",
        status=422,
        meaning="The bank does not offer this kind of counterparty, portal or transfer, or not on this chain.",
        remedy="Use one of the kinds named in `detail`, or ask the operator when the rail opens.",
    ),
    "wallet-not-payable": Problem(
        "The wallet is not paid",
        status=422,
        meaning="The address is one of this bank, or the contract of a token, where funds would be lost.",
        remedy="Pay a Pocket of this bank by an on-us transfer; add a counterparty with the payee's own address.",
    ),
    "linking-provider-not-configured": Problem(
        "The bank has no linking provider",
        meaning="Accounts are linked by signing in at their own bank through a provider, and this bank has none.",
        remedy="Verify the account in another way, or ask the operator when there will be one.",
    ),
    "link-login-required": Problem(
        "The user must sign in at their bank again",
        meaning="The linking provider has no access to the account any more: a password or a consent has ended.",
        remedy="Create a link token with this `counterparty_id`, have the user sign in on the provider's pages, and "
        "send the request again. If no token is created either, link the account again.",
    ),
    "transfer-not-possible": Problem(
        "The bank would reject this transfer",
        status=422,
        meaning="A transfer that is made now would be rejected, as `detail` says. Nothing moved.",
        remedy="Change what `detail` names, or reject the request.",
    ),
    "insufficient-funds": Problem(
        "Not enough money",
        status=422,
        meaning="What the pocket can raise by now, less holds and money still at risk of return, does not "
        "cover the amount and its fees. Nothing was sold or moved.",
        remedy="Compare the amount with `liquidation_value_t0` of the pocket, lower it, or send "
        "`FULL_WITHDRAWAL` to move the whole balance.",
    ),
    "series-not-running": Problem(
        "The series is not running",
        meaning="The series of transfers waits for approval, was cancelled, or has ended.",
        remedy="Request another series; one that waits for approval is cancelled like any transfer request.",
    ),
    "nothing-to-move": Problem(
        "There is nothing to move",
        status=422,
        meaning="The amount is decided by what the Pockets hold, and is zero now: the Pocket that pays holds no more "
        "than it keeps, or the one that receives has what it is topped up to.",
        remedy="Send it again when the Pockets hold other amounts, or with other terms.",
    ),
    "preview-outdated": Problem(
        "The preview does not hold any more",
        meaning="It is older than a minute, or the request would now do something else than the preview showed: prices "
        "moved, or other payments were made. Nothing was carried out.",
        remedy="Preview the request again under a new idempotency key, or send it without `Preview-Id`.",
    ),
    "preview-used": Problem(
        "The preview was used",
        meaning="A request with another idempotency key has named it, and a preview is carried out once. This request "
        "did nothing.",
        remedy="Repeat the first request under its own key for its response. Preview again to do it once more.",
    ),
    "hold-not-active": Problem(
        "The hold keeps nothing any more",
        meaning="It was captured in full or released, or it has expired. The payment that named it moved nothing.",
        remedy="Read the hold. Place a new one, or pay without it.",
    ),
    "too-many-holds": Problem(
        "The pocket has too many holds",
        meaning="A pocket has at most 100 holds at the same time, with those of its collections.",
        remedy="Release one that is not needed any more, or wait until one expires.",
    ),
    "amount-not-allowed": Problem(
        "The amount is out of bounds",
        status=422,
        meaning="The amount is zero, or above the limits of the rail or the customer, or more than the hold that the "
        "payment names; or a pocket whose full withdrawal was requested has received money since.",
        remedy="Send an amount within the bounds named in `detail`, or split the payment. Request a full "
        "withdrawal again.",
    ),
    "policy-refused": Problem(
        "The policy of the customer refuses it",
        status=422,
        meaning="A rule of the policy refuses it, or could not be decided: `policy_rule` of `policy_version`.",
        remedy="Change the payment as `detail` says, or propose another policy.",
    ),
    "same-pocket": Problem(
        "Origin and destination are one pocket",
        status=422,
        meaning="Money cannot be moved from a pocket into itself.",
        remedy="Name another pocket as the destination.",
    ),
    "transfer-type-not-allowed": Problem(
        "This type of transfer does not work between these accounts",
        status=422,
        meaning="The two ends do not fit the type: bills move directly only between network pockets of "
        "one customer, funding and defunding only between a partner and its customers.",
        remedy="Use `BANK_TRANSFER`, or choose the type that fits the two accounts.",
    ),
    "counterparty-not-verified": Problem(
        "The counterparty cannot be paid yet",
        status=422,
        meaning="Money goes only to counterparties that are `LINKED` or `VERIFIED`; unverified ones take "
        "wires only, and only where `unverified_wires` is switched on.",
        remedy="Finish the verification (upload the documents, confirm the deposits, or wait for the "
        "incoming wire) and send the payment when `status` says `VERIFIED`.",
    ),
    "sanction-screen-failed": Problem(
        "The counterparty is stopped by sanctions screening",
        meaning="Its name, or its bank's, is like one on a sanctions list, or is still being compared with the list. "
        "Nothing is paid to it or collected from it until two operators of the bank have cleared the hit.",
        remedy="Wait until the bank has reviewed it. A counterparty that is `UNLINKED` for it stays so for good.",
    ),
    "counterparty-not-linked": Problem(
        "The counterparty has been unlinked",
        meaning="An unlinked counterparty stays so for good.",
        remedy="Create a new counterparty.",
    ),
    "counterparty-not-pending": Problem(
        "The counterparty is not awaiting a decision",
        meaning="Its verification is over, or it never needed one.",
        remedy="Read its `status` and its `verification`.",
    ),
    "counterparty-type-mismatch": Problem(
        "The counterparty belongs to another rail",
        status=422,
        meaning="The payment needs a counterparty of another type, such as `wire` for a wire.",
        remedy="Create a counterparty of the type named in `detail`, and use that one.",
    ),
    "micro-deposits-mismatch": Problem(
        "The amounts do not match the deposits",
        status=422,
        meaning="The two amounts are not those that were sent. After three wrong tries the counterparty is unlinked.",
        remedy="Look up both deposits on the account's statement, in cents. `tries_left` says how often "
        "they can still be entered.",
    ),
    "amount-below-minimum": Problem(
        "The amount is too small",
        status=422,
        meaning="Each USDC payment costs the bank a transaction on the chain. `minimum_usdc` is the minimum, in cents.",
        remedy="Request a transfer of at least that amount.",
    ),
    "micro-deposits-not-sent": Problem(
        "The micro deposits are not sent yet",
        meaning="The two deposits leave with the next ACH file. Before that there is nothing to confirm.",
        remedy="Wait until both are on the account's statement, two business days at most. In a sandbox advance the "
        "clock.",
        retryable=True,
    ),
    "micro-deposits-not-pending": Problem(
        "There are no micro deposits to confirm",
        meaning="The deposits were confirmed already, failed three times, or were never sent.",
        remedy="Read the counterparty's `verification`. After three failures create a new one.",
    ),
    "no-open-portal": Problem(
        "There is no open portal",
        meaning="Money arrives through a portal, and this pocket has none that is open.",
        remedy="Create a bank portal for the pocket, then try again.",
    ),
    "batch-not-pending": Problem(
        "The batch is already decided",
        meaning="The batch has been approved, denied, cancelled, or has expired.",
        remedy="Read the batch; to move the money after all, create a new one.",
    ),
    "batch-refused": Problem(
        "A row of the batch is refused",
        status=422,
        meaning="The batch is carried out all or none, and at least one of its rows cannot be. Nothing moved.",
        remedy="Read the rows: each that was refused has its own problem. Correct these, or send the batch with the "
        "mode `INDEPENDENT`.",
    ),
    "transfer-request-not-pending": Problem(
        "The request is already decided",
        meaning="The transfer request has been approved, denied, cancelled, or has expired.",
        remedy="Read the request; to move the money after all, create a new one.",
    ),
    "authorization-request-not-pending": Problem(
        "The request is already decided",
        meaning="The change has been confirmed, denied, or has expired.",
        remedy="Read the request; to make the change after all, request it again.",
    ),
    "approval-out-of-order": Problem(
        "Approval out of order",
        meaning="The rule requires approvals in an order, and another reviewer is next.",
        remedy="Wait until the reviewers before have approved; `reviews` of the request shows who has.",
    ),
    "content-changed": Problem(
        "The content is not what was approved",
        meaning="The content to be approved was changed since it was read, or means something else now.",
        remedy="Read the request again and decide about its current content.",
    ),
    "already-reviewed": Problem(
        "This reviewer has decided already",
        meaning="Each reviewer decides once.",
        remedy="Have another reviewer decide, or wait for the others.",
    ),
    "wire-not-pending": Problem(
        "The wire has left",
        meaning="The message of the wire is in a file for Fedwire, or the wire has ended; it is neither transmitted "
        "again nor cancelled.",
        remedy="Read the wire. A transmitted wire can only be returned.",
    ),
    "wire-not-processing": Problem(
        "The wire is not in process",
        meaning="Only a wire that is `PROCESSING` settles or is rejected by the network.",
        remedy="Read the wire. One that is `PENDING` waits for its hour, others have ended.",
    ),
    "wire-not-waiting": Problem(
        "The wire does not wait for funds",
        meaning="Only a wire that is due and waits for funds of the bank can be released.",
        remedy="See `billfold liquidity show` for those that wait.",
    ),
    "wire-not-completed": Problem(
        "The wire has not settled",
        meaning="Only a wire that is `COMPLETED` can come back or be recalled.",
        remedy="Read the wire and wait until it is `COMPLETED`.",
    ),
    "wire-already-returned": Problem(
        "The wire has been returned already",
        meaning="A wire is returned once and whole. Its return is a separate wire.",
        remedy="List the wires: the return names this one as `original_wire_id`.",
    ),
    "wire-already-recalled": Problem(
        "The wire is recalled already",
        meaning="A wire is recalled again only after the receiving bank has refused to return it.",
        remedy="Wait for its answer, and for the money when it has agreed.",
    ),
    "ach-origination-not-pending": Problem(
        "The origination is past its review",
        meaning="Only originations that are `PENDING` can be changed, and those that are in no file yet cancelled.",
        remedy="Read its status. A transmitted entry can only be returned or paid back.",
    ),
    "ach-origination-not-sent": Problem(
        "The origination has not been sent",
        meaning="An entry that is not in a file yet cannot be returned or corrected.",
        remedy="Wait for its window, or let the sandbox submit it.",
    ),
    "ach-origination-not-reversible": Problem(
        "The origination cannot be reversed",
        meaning="Only an entry that was sent and has not been returned can be reversed, once, and within five "
        "banking days of its settlement.",
        remedy="Read its status. Otherwise originate a payment the other way.",
    ),
    "ach-origination-not-returned": Problem(
        "The origination is not sent again",
        meaning="Only a debit returned for insufficient funds is sent again, twice at most.",
        remedy="Read `return_code`. For another reason, correct it and create a new origination.",
    ),
    "ach-entry-not-returnable": Problem(
        "The entry cannot be returned",
        meaning="It has been returned already, its pocket is closed, or the time limit of the code has passed.",
        remedy="Use a code within its time limit, or pay the sender.",
    ),
    "card-not-activated": Problem(
        "The card is not activated",
        meaning="A physical card is activated by its first ONLINE, once its PIN is set.",
        remedy="Set the PIN of the card, then set it ONLINE.",
    ),
    "card-frozen": Problem(
        "The card is frozen",
        meaning="The bank froze the card, and only the bank can unfreeze it.",
        remedy="Ask the bank, or close the card and create another.",
    ),
    "card-not-frozen": Problem(
        "The card is not frozen",
        meaning="Only a frozen card can be unfrozen.",
        remedy="Read its status; its holder switches it on and off.",
    ),
    "card-type-mismatch": Problem(
        "Not possible with this type of card",
        meaning="The operation is for physical cards, or for virtual ones.",
        remedy="Read the `type` of the card.",
    ),
    "chargeback-not-possible": Problem(
        "The purchase cannot be charged back",
        meaning="It settled more than 120 days ago, or the amount is more than what was paid and not charged back.",
        remedy="Charge back at most the rest of it, within the time limit.",
    ),
    "representment-not-possible": Problem(
        "The purchase cannot be represented",
        meaning="The amount is more than what has been charged back of the purchase.",
        remedy="Represent at most what is charged back.",
    ),
    "card-order-not-open": Problem(
        "The card was made already",
        meaning="The card of this order has been produced.",
        remedy="Read `card_id` of the order.",
    ),
    "card-already-activated": Problem(
        "The card is activated already",
        meaning="The PIN is set once, before the card is activated.",
        remedy="Use the card with its PIN. If the PIN is lost, close the card and order another.",
    ),
    "public-key-reused": Problem(
        "The key was used before",
        status=422,
        meaning="Card details are encrypted to a key that is used exactly once.",
        remedy="Make a new RSA key pair of 4096 bits for every request, and forget it afterwards.",
    ),
}

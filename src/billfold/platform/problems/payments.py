"""Problems of money on its way: funds, counterparties, approvals, rails, cards."""

from billfold.platform.problems.problem import Problem

TRANSFERS = (
    Problem(
        "market-data-stale",
        503,
        "No current market data",
        meaning="The bank has no prices of today for T-bills, so it neither buys nor sells any. Nothing was "
        "done. Money that arrives meanwhile is kept as cash and invested when there are prices again.",
        remedy="Send the identical request under the same idempotency key after `Retry-After`.",
        retryable=True,
    ),
    Problem(
        "rail-not-available",
        422,
        "The rail is not available",
        meaning="The bank does not offer this kind of counterparty or portal.",
        remedy="Use one of the kinds named in `detail`, or ask the operator when the rail opens.",
    ),
    Problem(
        "linking-provider-not-configured",
        409,
        "The bank has no linking provider",
        meaning="Accounts are linked by signing in at their own bank through a provider, and this bank has none.",
        remedy="Verify the account in another way, or ask the operator when there will be one.",
    ),
    Problem(
        "link-login-required",
        409,
        "The user must sign in at their bank again",
        meaning="The linking provider has no access to the account any more: a password or a consent has ended.",
        remedy="Create a link token with this `counterparty_id`, have the user sign in on the provider's pages, and "
        "send the request again. When no token is created either, link the account anew.",
    ),
    Problem(
        "insufficient-funds",
        422,
        "Not enough money",
        meaning="What the pocket can raise by now, less holds and money still at risk of return, does not "
        "cover the amount and its fees. Nothing was sold or moved.",
        remedy="Compare the amount with `liquidation_value_t0` of the pocket, lower it, or send "
        "`FULL_WITHDRAWAL` to move everything there is.",
    ),
    Problem(
        "amount-not-allowed",
        422,
        "The amount is out of bounds",
        meaning="The amount is zero, or beyond what the rail or the customer's limits let through; or a pocket whose "
        "full withdrawal was requested has received money since.",
        remedy="Send an amount within the bounds named in `detail`, or split the payment. Request a full "
        "withdrawal again.",
    ),
    Problem(
        "same-pocket",
        422,
        "Origin and destination are one pocket",
        meaning="Money cannot be moved from a pocket into itself.",
        remedy="Name another pocket as the destination.",
    ),
    Problem(
        "transfer-type-not-allowed",
        422,
        "This type of transfer does not work between these accounts",
        meaning="The two ends do not fit the type: bills move directly only between network pockets of "
        "one customer, funding and defunding only between a partner and its customers.",
        remedy="Use `BANK_TRANSFER`, or choose the type that fits the two accounts.",
    ),
    Problem(
        "counterparty-not-verified",
        422,
        "The counterparty cannot be paid yet",
        meaning="Money goes only to counterparties that are `LINKED` or `VERIFIED`; unverified ones take "
        "wires only, and only where `unverified_wires` is switched on.",
        remedy="Finish the verification (upload the documents, confirm the deposits, or wait for the "
        "incoming wire) and send the payment when `status` says `VERIFIED`.",
    ),
    Problem(
        "sanction-screen-failed",
        409,
        "The counterparty is stopped by sanctions screening",
        meaning="Its name, or its bank's, is like one on a sanctions list, or is still being compared with the list. "
        "Nothing is paid to it or collected from it until two operators of the bank have cleared the hit.",
        remedy="Wait until the bank has reviewed it. A counterparty that is `UNLINKED` for it stays so for good.",
    ),
    Problem(
        "counterparty-not-linked",
        409,
        "The counterparty has been unlinked",
        meaning="An unlinked counterparty stays so for good.",
        remedy="Create the counterparty anew.",
    ),
    Problem(
        "counterparty-not-pending",
        409,
        "The counterparty does not wait for a decision",
        meaning="Its verification is over, or it never needed one.",
        remedy="Read its `status` and its `verification`.",
    ),
    Problem(
        "counterparty-type-mismatch",
        422,
        "The counterparty belongs to another rail",
        meaning="The payment needs a counterparty of another type, such as `wire` for a wire.",
        remedy="Create a counterparty of the type named in `detail`, and use that one.",
    ),
    Problem(
        "micro-deposits-mismatch",
        422,
        "The amounts do not match the deposits",
        meaning="The two amounts are not those that were sent. After three wrong tries the counterparty is unlinked.",
        remedy="Look up both deposits on the account's statement, in cents. `tries_left` says how often "
        "they can still be named.",
    ),
    Problem(
        "micro-deposits-not-pending",
        409,
        "There are no micro deposits to confirm",
        meaning="The deposits were confirmed already, failed three times, or were never sent.",
        remedy="Read the counterparty's `verification`. After three failures create it anew.",
    ),
    Problem(
        "no-open-portal",
        409,
        "There is no open portal",
        meaning="Money arrives through a portal, and this pocket has none that is open.",
        remedy="Create a bank portal for the pocket, then try again.",
    ),
    Problem(
        "transfer-request-not-pending",
        409,
        "The request is already decided",
        meaning="The transfer request has been approved, denied, cancelled, or has expired.",
        remedy="Read the request; to move the money after all, create a new one.",
    ),
    Problem(
        "authorization-request-not-pending",
        409,
        "The request is already decided",
        meaning="The change has been confirmed, denied, or has expired.",
        remedy="Read the request; to make the change after all, request it anew.",
    ),
    Problem(
        "approval-out-of-order",
        409,
        "Approval out of order",
        meaning="The rule requires approvals in an order, and another reviewer is next.",
        remedy="Wait until the reviewers before have approved; `reviews` of the request shows who has.",
    ),
    Problem(
        "content-changed",
        409,
        "The content is not what was approved",
        meaning="What is to be approved was changed since it was read, or stands for something else now.",
        remedy="Read the request again and decide about what it says now.",
    ),
    Problem(
        "already-reviewed",
        409,
        "This reviewer has decided already",
        meaning="Each reviewer decides once.",
        remedy="Have another reviewer decide, or wait for the others.",
    ),
    Problem(
        "wire-not-pending",
        409,
        "The wire has left",
        meaning="The message of the wire has been transmitted; it is not transmitted again.",
        remedy="Read the wire. What has left comes back only as a return.",
    ),
    Problem(
        "wire-not-processing",
        409,
        "The wire is not on its way",
        meaning="Only a wire that is `PROCESSING` settles or is rejected by the network.",
        remedy="Read the wire. One that is `PENDING` waits for its hour, others have ended.",
    ),
    Problem(
        "wire-not-completed",
        409,
        "The wire has not settled",
        meaning="Only a wire that is `COMPLETED` can come back or be recalled.",
        remedy="Read the wire and wait until it is `COMPLETED`.",
    ),
    Problem(
        "wire-already-returned",
        409,
        "The wire has come back already",
        meaning="A wire is returned once and whole. Its return is a wire of its own.",
        remedy="List the wires: the return names this one as `original_wire_id`.",
    ),
    Problem(
        "wire-already-recalled",
        409,
        "The wire is recalled already",
        meaning="A wire is recalled again only after the receiving bank has refused to return it.",
        remedy="Wait for its answer, and for the money when it has agreed.",
    ),
    Problem(
        "ach-origination-not-pending",
        409,
        "The origination is past its review",
        meaning="Only originations that are `PENDING` can be changed or cancelled.",
        remedy="Read its status. What has left can only come back as a return or a new payment.",
    ),
    Problem(
        "ach-origination-not-sent",
        409,
        "The origination has not been sent",
        meaning="Nothing comes back, and nothing is corrected, that is in no file yet.",
        remedy="Wait for its window, or let the sandbox submit it.",
    ),
    Problem(
        "ach-origination-not-reversible",
        409,
        "The origination cannot be reversed",
        meaning="Only an entry that was sent and has not come back is reversed, once, and within five "
        "banking days of its settlement.",
        remedy="Read its status. Otherwise originate a payment the other way.",
    ),
    Problem(
        "ach-origination-not-returned",
        409,
        "The origination is not sent again",
        meaning="Only a debit that came back for want of funds is sent again, twice at most.",
        remedy="Read `return_code`. For another reason, put it right and originate anew.",
    ),
    Problem(
        "ach-entry-not-returnable",
        409,
        "The entry cannot go back",
        meaning="It has gone back already, its pocket is closed, or the code's time is over.",
        remedy="Use a code whose time still runs, or pay the sender.",
    ),
    Problem(
        "card-already-activated",
        409,
        "The card is activated already",
        meaning="The PIN is set once, before the card is activated.",
        remedy="Use the card with its PIN. If the PIN is lost, close the card and order another.",
    ),
    Problem(
        "public-key-reused",
        422,
        "The key was used before",
        meaning="Card details are encrypted to a key that is used exactly once.",
        remedy="Make a new RSA key pair of 4096 bits for every request, and forget it afterwards.",
    ),
)

"""Problems of states: customers, pockets, portals, documents, people."""

from billfold.platform.errors import Problem

STATES: dict[str, Problem] = {
    "customer-not-open": Problem(
        "The customer is not open",
        meaning="The customer is closed, or frozen, or still waits for its approval.",
        remedy="Read `account_status`. A pending customer opens with its first pocket; a frozen one only receives, "
        "until the bank lifts it; a closed one must apply again.",
    ),
    "customer-changed": Problem(
        "The customer was changed concurrently",
        meaning="Other requests kept changing the customer while this one was being merged with it.",
        remedy="Send the request again under a new key.",
        retryable=True,
    ),
    "secret-changed": Problem(
        "The signing secret has been changed",
        meaning="Somebody has made another signing secret since the page was shown, or the form was sent twice.",
        remedy="Open the page again. The newest secret was shown to the person who created it.",
    ),
    "agreement-not-accepted": Problem(
        "The agreements have not been accepted",
        meaning="The agreements changed, and the day has come by which the customer had to accept them. Until then"
        " nothing is paid out and no pocket is opened; money comes in and moves between the customer's own pockets.",
        remedy="Let the customer read and accept the current agreements, then send the request again. A partner"
        " reports it with `POST /api/v1/customers/{customer_id}/agreement-consent/`; an administrator accepts them on"
        " the bank's pages after signing in.",
    ),
    "agreement-not-in-force": Problem(
        "These agreements are not in force",
        meaning="Only the version in force can be accepted: not an earlier one, nor one whose day has not come.",
        remedy="Read `GET /api/v1/agreements/`, show its documents, and accept its `version`.",
    ),
    "customer-has-balance": Problem(
        "The customer still has money",
        status=422,
        meaning="A customer can be closed only when all its pockets are empty and no payments are pending.",
        remedy="Transfer everything out, wait until it is settled, then close.",
    ),
    "approval-impossible": Problem(
        "Nobody can approve it",
        meaning="An approval rule applies, and the team has too few other members who may approve under it.",
        remedy="Invite another approver, name other reviewers, or change the rule named in `detail`.",
    ),
    "bill-not-deliverable": Problem(
        "The bill cannot be transferred",
        status=422,
        meaning="Only outstanding, settled bills can be transferred to or from another custodian.",
        remedy="Look at `detail`: the bill is unknown, has matured, or has not settled yet.",
    ),
    "delivery-ended": Problem(
        "The delivery has ended",
        meaning="The other side has already accepted or refused the bills.",
        remedy="Look at the trades of the pocket.",
    ),
    "already-corrected": Problem(
        "It has been corrected already",
        meaning="A credit, an adjustment or a fee is reversed as a whole, and only once.",
        remedy="Look at the transaction of kind `GENERIC` that reversed it.",
    ),
    "suspense-item-settled": Problem(
        "The item is no longer held",
        meaning="The item held for an unknown owner has already been returned or booked to its owner.",
        remedy="List the items that are still held.",
    ),
    "suspense-item-stays": Problem(
        "The item stays",
        meaning="No message can return the item, or it is not of a kind that can be assigned or written off.",
        remedy="Look at `detail`: credit it to its owner (`billfold suspense assign`), record that it was returned "
        "by hand (`billfold suspense return --by-hand`), or write a debit off (`billfold suspense write-off`).",
    ),
    "suspense-item-returnable": Problem(
        "A message returns the item",
        meaning="Only items that no message can return are returned by hand.",
        remedy="Return it without `--by-hand`.",
    ),
    "file-not-waiting": Problem(
        "The file is not pending",
        meaning="Only an inbound file with unbooked items can be closed.",
        remedy="Look at its state and report: `billfold files show`.",
    ),
    "subscription-disabled": Problem(
        "The subscription is disabled",
        meaning="A disabled subscription receives no events, and nothing is sent to it again.",
        remedy="Set its `status` to `enabled` first.",
    ),
    "pocket-not-open": Problem(
        "The pocket is not open",
        meaning="The pocket is closed, or still being opened.",
        remedy="Use an open pocket, or wait until `status` says `OPEN`.",
    ),
    "pocket-frozen": Problem(
        "The pocket is frozen",
        meaning="The bank has frozen the pocket: it can be read and receives money, but cannot send any.",
        remedy="Contact the operator, or pay from another pocket.",
    ),
    "pocket-not-empty": Problem(
        "The pocket is not empty",
        status=422,
        meaning="A pocket closes only when it holds no bills and less than $100 of cash, every trade has settled "
        "and no transfer waits. Closing charges its fee and pays the rest to another pocket of the customer.",
        remedy="Transfer what it holds to another pocket or payee, wait for the settlement, then close it.",
    ),
    "last-open-pocket": Problem(
        "The last open pocket stays",
        status=422,
        meaning="A customer keeps at least one open pocket.",
        remedy="Open another pocket first, or close the customer.",
    ),
    "pocket-strategy-locked": Problem(
        "The strategy of this pocket is fixed",
        meaning="The bank has set the strategy of this pocket.",
        remedy="Leave the strategy out of the change, or open another pocket with the one you want.",
    ),
    "already-closed": Problem(
        "Already closed",
        status=412,
        meaning="The portal or card has been closed before, and closing cannot be undone.",
        remedy="No action is needed. Create another one.",
    ),
    "already-approved": Problem(
        "Already approved",
        status=412,
        meaning="The document is approved, so its file can no longer be replaced.",
        remedy="No action is needed. For another document create a new one.",
    ),
    "document-in-review": Problem(
        "The document is in review",
        meaning="The file of the document is being reviewed; it can be replaced when it is `INVALID`.",
        remedy="Wait for the review, or upload another document.",
    ),
    "document-not-in-review": Problem(
        "The document is not awaiting a review",
        meaning="It has no file yet, or its review is over.",
        remedy="Read its `status`; upload a file when it waits for one.",
    ),
    "document-not-readable": Problem(
        "The file cannot be used",
        status=422,
        meaning="The file is damaged, encrypted, contains scripts or other files, or has too many pages or pixels.",
        remedy="Save it again as a plain PDF, PNG or JPEG and upload that.",
    ),
    "application-not-editable": Problem(
        "The application can no longer be changed",
        meaning="Applications are changed while they are `CREATED` or `DOCUMENTS_NEEDED`.",
        remedy="Wait for the decision. If something has to be corrected, upload the requested "
        "documents, or contact the operator.",
    ),
    "application-incomplete": Problem(
        "The application is incomplete",
        status=422,
        meaning="Something that is needed to decide the application is missing: a field, a person, or a document.",
        remedy="Fill in, or upload, what `missing_requirements` names, then submit again.",
    ),
    "invite-limit-reached": Problem(
        "Too many invites were e-mailed",
        status=429,
        meaning="The number of invites per day is limited for one address, one application and one customer. An "
        "application has at most 100 invites.",
        remedy="Wait until tomorrow (UTC), or remove invites that are not needed.",
        retryable=True,
    ),
    "application-not-approved": Problem(
        "The application is not approved",
        meaning="A team is invited while the application is `SUBMITTED` or `APPROVED`.",
        remedy="Submit the application, or wait until `status` is `APPROVED`, then send the request again.",
    ),
    "application-not-in-review": Problem(
        "The application is not awaiting a decision",
        meaning="An application is decided after it was submitted, and only once.",
        remedy="Read the `status` of the application.",
    ),
    "sanctions-hit-open": Problem(
        "A name may be on a sanctions list",
        meaning="No application is approved and no customer is unfrozen while a hit of the sanctions screening is not "
        "cleared.",
        remedy="Look at the hit with `billfold screening hits`; two operators clear it, or one confirms it.",
    ),
    "sanctions-hit-decided": Problem(
        "The hit is decided",
        meaning="A hit is cleared or confirmed once.",
        remedy="See it with `billfold screening show`.",
    ),
    "proposal-open": Problem(
        "A proposal is open",
        meaning="A freeze of it, the end of its freeze, or a movement of its money is proposed already.",
        remedy="Confirm or withdraw the proposal: `billfold proposals list`.",
    ),
    "proposal-decided": Problem(
        "The proposal is decided",
        meaning="A proposal is confirmed or withdrawn once.",
        remedy="See it with `billfold proposals list`.",
    ),
    "proposal-lapsed": Problem(
        "The proposal has lapsed",
        meaning="A proposal can be confirmed for seven days, and while its author is an operator who may propose.",
        remedy="Propose it again: this withdraws the lapsed proposal.",
    ),
    "freeze-changed": Problem(
        "It was frozen again",
        meaning="A proposal ends the freeze that it names. That one has ended, and another is in force.",
        remedy="See why it is frozen now, and propose to end that freeze.",
    ),
    "freeze-changes-nothing": Problem(
        "It would change nothing",
        meaning="It cannot be frozen twice, and only an existing freeze can be ended.",
        remedy="Look at its state. An open proposal that no longer changes anything can be withdrawn.",
    ),
    "movement-made": Problem(
        "The movement has been decided already",
        meaning="A movement of money that operators propose counts once by its idempotency key.",
        remedy="See it with `billfold proposals list`. Use another key for another movement.",
    ),
    "break-state": Problem(
        "The break or the reconciled day does not allow this",
        meaning="A break is closed once, and a day has one statement. A posting must fit the cause of the break.",
        remedy="See the break with `billfold reconcile show`, and propose what is still open.",
    ),
    "desk-paused": Problem(
        "The trading desk is paused or running already",
        meaning="A paused desk places no orders. It is paused once, and resumed once.",
        remedy="See it with `billfold desk show`. Resume it with `billfold desk resume`.",
    ),
    "order-state": Problem(
        "The order cannot change like that",
        meaning="An order to a dealer has ended, or was never sent, or another round of orders was placed first.",
        remedy="See the orders with `billfold desk orders`.",
    ),
    "settlement-state": Problem(
        "The instruction cannot change like that",
        meaning="It was settled, cancelled or sent again meanwhile, or the difference was decided.",
        remedy="Look at the instruction with `billfold settlement show`.",
    ),
    "execution-refused": Problem(
        "The execution does not fit",
        meaning="A dealer's execution contradicts its order or itself, or is booked already. Nothing was booked.",
        remedy="Compare it with the dealer's confirmation, correct it as `detail` says, and enter it again.",
    ),
    "same-operator": Problem(
        "Another operator decides too",
        meaning="A hit is cleared, and a freeze or a movement of money is proposed and confirmed, by two different "
        "operators.",
        remedy="Let another operator do it.",
    ),
    "last-administrator": Problem(
        "The last administrator stays",
        meaning="A team keeps at least one active administrator.",
        remedy="Make another member administrator first.",
    ),
    "last-key": Problem(
        "The last key stays",
        meaning="An OAuth client in use keeps at least one key to prove itself with.",
        remedy="Add the next key first, or revoke the client.",
    ),
    "member-not-active": Problem(
        "The member is not active",
        meaning="The member has not accepted the invitation yet, or was deactivated.",
        remedy="Resend the invitation, or activate the member first.",
    ),
    "invite-not-pending": Problem(
        "The invitation is no longer open",
        meaning="The invitation was accepted: the person is now a member.",
        remedy="Edit or deactivate the member instead.",
    ),
    "member-already-invited": Problem(
        "The person is already in the team",
        meaning="A member, active or deactivated, or an open invitation with this e-mail address exists.",
        remedy="Resend the invitation, or edit or activate the member.",
    ),
    "member-shut-out": Problem(
        "The operator has disabled the user",
        meaning="The operator of the bank has disabled the user, who cannot sign in anywhere.",
        remedy="Contact the operator; a team cannot undo it.",
    ),
    "download-url-invalid": Problem(
        "The download URL is invalid",
        status=403,
        meaning="The URL of a report, statement or confirmation was altered or cut off.",
        remedy="Use the URL exactly as returned, with its whole query, or ask for a new one.",
    ),
    "download-url-expired": Problem(
        "The download URL has expired",
        status=410,
        meaning="URLs of reports, statements and confirmations are valid for 10 minutes.",
        remedy="Ask for a new one just before you download, and do not store it.",
    ),
    "report-not-completed": Problem(
        "The report is not completed",
        meaning="This format of the report is still being created, or could not be created.",
        remedy="Read the report until the format's `status` is COMPLETED, or wait for the event `reports.completed`.",
    ),
    "too-many-reports": Problem(
        "Too many reports are being created",
        status=429,
        meaning="At most 100 formats of reports of one customer are pending at once.",
        remedy="Send the request again after `Retry-After`, when some of them are finished.",
        retryable=True,
    ),
}

"""Problems of the state something is in: customers, pockets, portals, documents, people."""

from billfold.kit.problems.problem import Problem, by_code

STATES = by_code(
    Problem(
        "customer-not-open",
        409,
        "The customer is not open",
        "The customer is closed, or still waits for its approval.",
        "Read `account_status`. A pending customer opens with its first pocket; a closed one has "
        "to apply again.",
    ),
    Problem(
        "customer-frozen",
        409,
        "The customer is frozen",
        "The bank has frozen the customer: money still comes in, none goes out.",
        "Contact the operator, who alone can lift it.",
    ),
    Problem(
        "customer-has-balance",
        422,
        "The customer still has money",
        "A customer can be closed only when all its pockets are empty and nothing is on its way.",
        "Move everything out with `FULL_WITHDRAWAL`, wait until it is settled, then close.",
    ),
    Problem(
        "subscription-disabled",
        409,
        "The subscription is disabled",
        "A disabled subscription is told nothing, and nothing is sent to it again.",
        "Set its `status` to `enabled` first.",
    ),
    Problem(
        "pocket-not-open",
        409,
        "The pocket is not open",
        "The pocket is closed, or still being opened.",
        "Use an open pocket, or wait until `status` says `OPEN`.",
    ),
    Problem(
        "pocket-frozen",
        409,
        "The pocket is frozen",
        "The bank has frozen the pocket: it can be read and receives money, but none goes out.",
        "Contact the operator, or pay from another pocket.",
    ),
    Problem(
        "pocket-not-empty",
        422,
        "The pocket still holds something",
        "A pocket closes only when it is worth nothing, every trade has settled and no transfer "
        "waits.",
        "Move everything out with `FULL_WITHDRAWAL`, wait for the settlement, then close it.",
    ),
    Problem(
        "last-open-pocket",
        422,
        "The last open pocket stays",
        "A customer keeps at least one open pocket.",
        "Open another pocket first, or close the customer.",
    ),
    Problem(
        "pocket-strategy-locked",
        409,
        "The strategy of this pocket is fixed",
        "The pocket runs on a strategy that the bank has set up for it.",
        "Leave the strategy out of the change, or open another pocket with the one you want.",
    ),
    Problem(
        "portal-not-open",
        409,
        "The portal is not open",
        "The portal is closed, or its address is still being made.",
        "Use an open portal of the pocket, or wait until `status` says `OPEN`.",
    ),
    Problem(
        "already-closed",
        412,
        "Already closed",
        "The portal has been closed before, and closing cannot be undone.",
        "Nothing is left to do. For another address create a new portal.",
    ),
    Problem(
        "already-approved",
        412,
        "Already approved",
        "The document is approved, so its file can no longer be replaced.",
        "Nothing is left to do. For another document create a new one.",
    ),
    Problem(
        "document-not-readable",
        422,
        "The file cannot be used",
        "The file is damaged, encrypted, contains scripts or other files, or has too many pages "
        "or pixels.",
        "Save it anew as a plain PDF, PNG or JPEG and upload that.",
    ),
    Problem(
        "application-not-editable",
        409,
        "The application can no longer be changed",
        "Applications are changed while they are `CREATED` or `DOCUMENTS_NEEDED`.",
        "Wait for the decision. If something has to be corrected, upload the documents you are "
        "asked for, or contact the operator.",
    ),
    Problem(
        "application-not-complete",
        422,
        "The application is not complete",
        "Something that is needed for the review is missing; `detail` names it.",
        "Add what is missing, then apply again.",
    ),
    Problem(
        "report-not-completed",
        409,
        "The report is not ready",
        "The report is still being made, or could not be made.",
        "Wait for the event `reports.completed`, or read the request: `failure_reason` says what "
        "went wrong.",
        retryable=True,
    ),
    Problem(
        "last-administrator",
        409,
        "The last administrator stays",
        "A team keeps at least one active administrator.",
        "Make another member administrator first.",
    ),
    Problem(
        "last-key",
        409,
        "The last key stays",
        "A program in use keeps at least one key to prove itself with.",
        "Add the next key first, or take the program out of use.",
    ),
    Problem(
        "member-not-active",
        409,
        "The member is not active",
        "The member has not accepted the invitation yet, or was deactivated.",
        "Resend the invitation, or activate the member first.",
    ),
    Problem(
        "invite-not-pending",
        409,
        "The invitation is no longer open",
        "The invitation was accepted: what there is now is a member.",
        "Edit or deactivate the member instead.",
    ),
    Problem(
        "member-already-invited",
        409,
        "The person is already in the team",
        "A member, active or deactivated, or an open invitation with this e-mail address exists.",
        "Resend the invitation, or edit or activate the member.",
    ),
    Problem(
        "member-shut-out",
        409,
        "The operator has shut the person out",
        "The person may not sign in anywhere: the operator of the bank has decided so.",
        "Contact the operator; a team cannot undo it.",
    ),
)

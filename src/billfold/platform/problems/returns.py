"""Problems of reversals of on-us transfers, and of disputes of card payments."""

from billfold.platform.errors import Problem

RETURNS: dict[str, Problem] = {
    "dispute-not-possible": Problem(
        "The payment cannot be disputed, or the dispute not be moved on",
        status=422,
        meaning="The time for it is over, the amount is more than is neither disputed nor returned, or the dispute has "
        "ended, as `detail` says.",
        remedy="Read the payment's disputes, and lower the amount.",
    ),
    "transfer-not-reversible": Problem(
        "The transfer cannot be reversed",
        status=422,
        meaning="It is not completed, is a reversal itself, moved bills, is too old, or has been paid back already, as "
        "`detail` says.",
        remedy="Read the transfer and what has reversed it; a new transfer pays any amount back.",
    ),
    "reversal-open": Problem(
        "The payee is being asked already",
        meaning="A request to pay the transfer back is open. There is one at a time.",
        remedy="Wait for the answer, or cancel that request.",
    ),
    "reversal-not-open": Problem(
        "There is no open request for this reversal",
        meaning="The request to pay the transfer back was answered or cancelled, has expired, or asks for other money.",
        remedy="Read the request. Between customers, only what was requested is paid back as a reversal.",
    ),
}

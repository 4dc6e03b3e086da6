"""Problems of the request itself: authentication, shape, key, rate; and of a bank that does not answer."""

from billfold.platform.errors import Problem

ACCESS: dict[str, Problem] = {
    "https-required": Problem(
        "HTTPS is required",
        status=403,
        meaning="The request came over plain http. Neither its headers nor its body were read.",
        remedy="Send it to the https address. Treat what it carried (token, signature, body) as seen by "
        "others: log in again, and use a new idempotency key.",
    ),
    "unauthorized": Problem(
        "Not logged in",
        status=401,
        meaning="There is no access token, or it is unknown, expired, revoked, or belongs to another "
        "partner than that of the host name.",
        remedy="Get a token at the login or token endpoint and send it as `Authorization: Bearer "
        "<token>` (`DPoP <token>` when it is bound to a key). Partner tokens last one hour: log in "
        "again, and use the host name you were given.",
    ),
    "invalid-credentials": Problem(
        "Wrong user name or password",
        status=401,
        meaning="The user name or the password is wrong, or the user may not log in.",
        remedy="Check both and try again. After several failures the login is locked for a while.",
    ),
    "login-locked": Problem(
        "Too many failed logins",
        status=429,
        meaning="Too many logins failed for this user or from this IP address. Logins are refused for a while.",
        remedy="Wait as many seconds as `Retry-After` says, then log in with the right password. Read the "
        "credentials from your secret store instead of retrying in a loop.",
        retryable=True,
    ),
    "invalid-signature": Problem(
        "The signature does not match",
        status=401,
        meaning="The signature does not match what was received. The request was dropped: nothing was "
        "done, and its idempotency key is still free.",
        remedy="Sign idempotency key + path (no host, no query, closing slash as sent) + the exact bytes "
        "of the body with HMAC-SHA256 under the shared secret, and send the standard base64 of "
        "it. Sign the text you send: serialising the JSON twice gives two texts. Without a body "
        "sign either nothing or the `{}` you send.",
    ),
    "ambiguous-signature": Problem(
        "The signed text is ambiguous",
        status=400,
        meaning="The three signed parts stand next to each other, so each must have an unmistakable shape: "
        "the key a UUID of 36 characters, the path only letters, digits and `/ _ . -`, the "
        "body empty or JSON.",
        remedy="Send a canonical UUID as the idempotency key, an unescaped path, and a JSON object or array.",
    ),
    "invalid-dpop-proof": Problem(
        "The DPoP proof is not valid",
        status=401,
        meaning="The proof is missing, was used before, is too old, was signed by another key than the "
        "token is bound to, or names another method or URL.",
        remedy="Make a new proof for every request: a new `jti`, the current `iat`, `htm` and `htu` of "
        "this very request, `ath` of the token, signed by the key of the token request.",
        retryable=True,
    ),
    "insufficient-user-authentication": Problem(
        "A fresh login of the user is required",
        status=401,
        meaning="The operation requires a recent login of the user; this token comes from an older login.",
        remedy="Send the user through the authorization endpoint with `max_age=300` (see the "
        "`WWW-Authenticate` header) and repeat the request with the new token.",
    ),
    "forbidden": Problem(
        "Not allowed",
        status=403,
        meaning="The caller is known, but its scope or role does not include this operation.",
        remedy="Use a token with the scope named in `detail`, or have an administrator extend the role.",
    ),
    "ip-not-allowed": Problem(
        "IP address not allowed",
        status=403,
        meaning="The partner accepts requests only from listed addresses, and this one is not listed.",
        remedy="Call from a listed address, or have the address you call from added to the list.",
    ),
    "feature-not-enabled": Problem(
        "The feature is not switched on",
        status=403,
        meaning="The operation belongs to a feature that is not switched on for this customer or partner.",
        remedy="Ask the operator to switch on the feature named in `detail`.",
    ),
    "sec-code-not-enabled": Problem(
        "The ACH entry class is not switched on",
        status=403,
        meaning="The account may not originate entries of this class (`CCD` is switched on per account).",
        remedy="Use `WEB` or `PPD`, or ask the operator to switch on `CCD` for the account.",
    ),
    "self-approval": Problem(
        "Self-approval is not allowed",
        status=403,
        meaning="The reviewer made the request, or acts for the member who did.",
        remedy="Have another member with the right to approve decide on it.",
    ),
    "not-a-reviewer": Problem(
        "Not one of the reviewers",
        status=403,
        meaning="The caller is not among the reviewers of the request or of its rule, or became one after it was made.",
        remedy="Have one of the reviewers decide on it, or send the request again.",
    ),
    "notification-type-not-configurable": Problem(
        "The notification always goes to administrators",
        status=403,
        meaning="Who receives this type of notification is fixed.",
        remedy="Leave the type out; the other types can be assigned to roles and users.",
    ),
}


REQUESTS: dict[str, Problem] = {
    "invalid-input": Problem(
        "The request does not have the declared shape",
        status=422,
        meaning="A header, parameter or field is missing, unknown, or not of the declared type. The body "
        'is `{"detail": [{"loc", "msg", "type"}, ...]}`, one entry for each mistake.',
        remedy="Read `loc` for where and `msg` for what is expected, correct every entry, and send the "
        "request under a new idempotency key.",
    ),
    "bad-request": Problem(
        "The request cannot be read",
        status=400,
        meaning="The request is not proper HTTP, or contradicts itself.",
        remedy="Check the address, the headers and the encoding that your client sends.",
    ),
    "malformed-json": Problem(
        "The body is not JSON",
        status=400,
        meaning="The body cannot be parsed as JSON in UTF-8, nests too deeply, or repeats a name.",
        remedy="Serialise the body with a JSON library and send it as `application/json`.",
    ),
    "not-found": Problem(
        "Not found",
        status=404,
        meaning="There is no such object or path, or the object belongs to somebody else.",
        remedy="Check the id and that it belongs to your customer; in production there are no sandbox "
        "operations. An object just requested may need a moment: wait for its event.",
    ),
    "request-timeout": Problem(
        "The body arrives too slowly",
        status=408,
        meaning="The body stopped for ten seconds, or came more slowly than 32 KiB a second.",
        remedy="Send the identical request under the same idempotency key again, over a faster connection.",
        retryable=True,
    ),
    "too-many-connections": Problem(
        "Too many connections",
        status=429,
        meaning="Your network has reached its limit of concurrent requests, and this was the slowest.",
        remedy="Use fewer connections, keep them open, and send bodies without a pause.",
        retryable=True,
    ),
    "method-not-allowed": Problem(
        "The method is not offered here",
        status=405,
        meaning="The path exists, but not with this method.",
        remedy="Use one of the methods in the `Allow` header.",
    ),
    "not-acceptable": Problem(
        "No acceptable media type",
        status=406,
        meaning="The `Accept` header names only media types that this response does not have.",
        remedy="Accept `application/json`, or a type that the reference lists for this operation.",
    ),
    "payload-too-large": Problem(
        "The body is too large",
        status=413,
        meaning="Bodies may have 1 MiB, images 10 MiB (pictures of an identity document 5 MB), PDF files "
        "less than 52,428,800 bytes.",
        remedy="Send a smaller file, or split the request.",
    ),
    "unsupported-media-type": Problem(
        "The media type is not accepted here",
        status=415,
        meaning="The `Content-Type` is not one this operation reads, or the content is not of the declared type.",
        remedy="Send JSON as `application/json`; upload PDF, PNG or JPEG under its true type.",
    ),
    "idempotency-key-reused": Problem(
        "The idempotency key belongs to another request",
        status=422,
        meaning="The caller used this key within 24 hours with another method, path, query or body. Nothing was done.",
        remedy="Use a new random UUID for every action. To repeat a request, repeat it exactly: same "
        "method, path, query and bytes of the body.",
    ),
    "idempotency-in-progress": Problem(
        "The same request is still running",
        meaning="The request was sent before under this key, and has no response yet.",
        remedy="Send the identical request again after the seconds in `Retry-After`: you get the "
        "response to the first, and nothing runs twice.",
        retryable=True,
    ),
    "external-id-taken": Problem(
        "Another object has this external id",
        meaning="An `external_id` is unique among the objects of one kind of a customer; payments are one kind, "
        "whatever their rail.",
        remedy="Read the object named in `id`: it may be the one that you were about to create. Otherwise send another "
        "`external_id`.",
    ),
    "duplicate-id": Problem(
        "The id is taken",
        meaning="An object with the id you chose exists and differs from what you sent.",
        remedy="Read the object under that id. If it is not what you want, send yours under a new id.",
    ),
    "rate-limited": Problem(
        "Too many requests",
        status=429,
        meaning="The limit for this group of operations, or for this object, is used up for now.",
        remedy="Wait as many seconds as `Retry-After` says. Watch `X-RateLimit-Remaining`, and listen to "
        "events instead of polling.",
        retryable=True,
    ),
    "usage-limit-reached": Problem(
        "Done too often",
        status=429,
        meaning="Actions that cost the bank or others are limited per day (UTC), for an account, a customer, a partner "
        "or a recipient: `limit` names which. After three wrong tries an account is not verified for seven days, "
        "whichever counterparty carries it.",
        remedy="Wait for the seconds in `Retry-After`, or ask the bank for a higher limit.",
        retryable=True,
    ),
    "name-checks-exhausted": Problem(
        "Too many names did not match",
        status=429,
        meaning="Too many names tried today did not match the owners of the accounts.",
        remedy="Ask the payee for its registered name, and try again tomorrow.",
        retryable=True,
    ),
    "too-many-streams": Problem(
        "Too many streams",
        status=429,
        meaning="The maximum number of event streams is open.",
        remedy="Close one that is no longer read. One stream carries every event: share it among your clients.",
        retryable=True,
    ),
    "history-not-kept": Problem(
        "The state at that instant was not kept",
        meaning="States are kept from the release on that reads them as of an instant: what was changed before is known"
        " only as it was then.",
        remedy="Read as of a later instant. Statements, earnings, trades and transactions cover all of the past.",
    ),
    "too-many-pockets": Problem(
        "Too many pockets in one call",
        status=422,
        meaning="Earnings are answered for at most 30 pockets per call.",
        remedy="Name at most 30 in `pocket_id[]` and send several calls; `aggregate` values add up.",
    ),
    "clock-would-go-back": Problem(
        "The clock cannot be set back",
        meaning="The sandbox clock cannot be set to an instant in this bank's past.",
        remedy="Set it to an instant after the one in `now`, or start over with a fresh sandbox.",
    ),
    "clock-too-far": Problem(
        "The clock cannot go that far",
        status=422,
        meaning="The sandbox clock can be set to instants before 2098 only.",
        remedy="Choose an earlier instant.",
    ),
    "clock-stopped": Problem(
        "The clock was stopped while advancing",
        meaning="While the sandbox clock was moving, somebody froze it. What was due until `now` is done.",
        remedy="Send the request again to continue from where it stopped.",
    ),
    "nothing-ahead": Problem(
        "No event of this kind is due",
        meaning="The sandbox clock was to move to the next event of a kind, and none is due. It did not move.",
        remedy="Create something first: an investment, or a payment.",
    ),
    "unavailable": Problem(
        "Temporarily unavailable",
        status=503,
        meaning="Something the bank needs for this does not answer, or it is starting or shutting down.",
        remedy="Send the identical request under the same idempotency key after `Retry-After`, then at "
        "growing intervals. Nothing is done twice.",
        retryable=True,
    ),
    "internal-error": Problem(
        "Something went wrong on our side",
        status=500,
        meaning="A bug, or an invariant that does not hold. The transaction was rolled back.",
        remedy="Send the identical request under the same idempotency key once more. If it persists, "
        "report the `trace_id`: the log has the rest.",
        retryable=True,
    ),
}


SANDBOX: dict[str, Problem] = {
    "sandbox-busy": Problem(
        "The sandbox is busy with another task",
        meaning="One fork, rewind, reset or scenario runs at a time, and waits for requests and commands under way.",
        remedy="Read `GET /api/v1/sandbox/tasks/` until nothing is RUNNING; freeze the clock if it is moving. Then send"
        " the request again under a new key.",
        retryable=True,
    ),
    "fork-exists": Problem(
        "A fork with this name exists",
        meaning="A fork keeps what it holds; another one needs another name.",
        remedy="Choose another name, or remove the fork first.",
    ),
    "sandbox-of-another-partner": Problem(
        "Another partner started this sandbox",
        status=403,
        meaning="The clock, forks, resets and scenarios concern every partner of the bank. They belong to the first.",
        remedy="Ask the person who started the sandbox, or start your own.",
    ),
    "fork-needed": Problem(
        "This fork is needed",
        meaning="A reset of the sandbox returns to the fork `opening`.",
        remedy="Keep it. A fresh sandbox makes another.",
    ),
    "too-many-forks": Problem(
        "There are too many forks",
        meaning="A sandbox has at most 20 forks.",
        remedy="Remove one that is no longer needed.",
    ),
    "fork-disk-full": Problem(
        "There is not enough disk space for a copy of the bank",
        meaning="A fork and a rewind copy the database and the files of the bank, and leave 256 MB of the disk free.",
        remedy="Remove forks, or free space on the disk.",
    ),
    "fork-not-possible": Problem(
        "This bank cannot be copied",
        meaning="The database server does not let the bank copy its database, or documents are kept in a bucket.",
        remedy="Look at `detail`; the embedded database and a folder for documents can always be copied.",
    ),
}

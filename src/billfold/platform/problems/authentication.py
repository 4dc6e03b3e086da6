"""Problems of authentication and permission: transport, tokens, signatures, roles."""

from billfold.platform.problems.problem import Problem

ACCESS = (
    Problem(
        "https-required",
        403,
        "HTTPS is required",
        meaning="The request came over plain http. Neither its headers nor its body were read.",
        remedy="Send it to the https address. Treat what it carried (token, signature, body) as seen by "
        "others: log in again, and use a new idempotency key.",
    ),
    Problem(
        "unauthorized",
        401,
        "Not logged in",
        meaning="There is no access token, or it is unknown, expired, revoked, or belongs to another "
        "partner than that of the host name.",
        remedy="Get a token at the login or token endpoint and send it as `Authorization: Bearer "
        "<token>` (`DPoP <token>` when it is bound to a key). Partner tokens last one hour: log in "
        "again, and use the host name you were given.",
    ),
    Problem(
        "invalid-credentials",
        401,
        "Wrong user name or password",
        meaning="The user name or the password is wrong, or the user may not log in.",
        remedy="Check both and try again. After several failures the login is locked for a while.",
    ),
    Problem(
        "login-locked",
        429,
        "Too many failed logins",
        meaning="Too many logins failed for this user or from this address, so further logins are refused for now.",
        remedy="Wait as many seconds as `Retry-After` says, then log in with the right password. Read the "
        "credentials from your secret store instead of retrying in a loop.",
        retryable=True,
    ),
    Problem(
        "invalid-signature",
        401,
        "The signature does not match",
        meaning="The signature does not match what was received. The request was dropped: nothing was "
        "done, and its idempotency key is still free.",
        remedy="Sign idempotency key + path (no host, no query, closing slash as sent) + the exact bytes "
        "of the body with HMAC-SHA256 under the shared secret, and send the standard base64 of "
        "it. Sign the text you send: serialising the JSON twice gives two texts. Without a body "
        "sign either nothing or the `{}` you send.",
    ),
    Problem(
        "ambiguous-signature",
        400,
        "The signed text is ambiguous",
        meaning="The three signed parts stand next to each other, so each must have an unmistakable shape: "
        "the key a UUID of 36 characters, the path only letters, digits and `/ _ . -`, the "
        "body empty or JSON.",
        remedy="Send a canonical UUID as the idempotency key, an unescaped path, and a JSON object or array.",
    ),
    Problem(
        "invalid-dpop-proof",
        401,
        "The DPoP proof is not valid",
        meaning="The proof is missing, was used before, is too old, was signed by another key than the "
        "token is bound to, or names another method or URL.",
        remedy="Make a new proof for every request: a new `jti`, the current `iat`, `htm` and `htu` of "
        "this very request, `ath` of the token, signed by the key of the token request.",
        retryable=True,
    ),
    Problem(
        "insufficient-user-authentication",
        401,
        "A fresh login of the user is required",
        meaning="The operation requires a recent login of the user; this token comes from an older login.",
        remedy="Send the user through the authorization endpoint with `max_age=300` (see the "
        "`WWW-Authenticate` header) and repeat the request with the new token.",
    ),
    Problem(
        "forbidden",
        403,
        "Not allowed",
        meaning="The caller is known, but its scope or role does not include this operation.",
        remedy="Use a token with the scope named in `detail`, or have an administrator extend the role.",
    ),
    Problem(
        "ip-not-allowed",
        403,
        "IP address not allowed",
        meaning="The partner accepts requests only from listed addresses, and this one is not listed.",
        remedy="Call from a listed address, or have the address you call from added to the list.",
    ),
    Problem(
        "feature-not-enabled",
        403,
        "The feature is not switched on",
        meaning="The operation belongs to a feature that is not switched on for this customer or partner.",
        remedy="Ask the operator to switch on the feature named in `detail`.",
    ),
    Problem(
        "sec-code-not-enabled",
        403,
        "The ACH entry class is not switched on",
        meaning="The account may not originate entries of this class (`CCD` is switched on per account).",
        remedy="Use `WEB` or `PPD`, or ask the operator to switch on `CCD` for the account.",
    ),
    Problem(
        "self-approval",
        403,
        "Self-approval is not allowed",
        meaning="The reviewer made the request, or acts for the member who did.",
        remedy="Have another member with the right to approve decide on it.",
    ),
    Problem(
        "not-a-reviewer",
        403,
        "Not one of the reviewers",
        meaning="The caller is not among the reviewers of the request or of its rule, or became one after it was made.",
        remedy="Have one of the reviewers decide on it, or send the request again.",
    ),
    Problem(
        "notification-type-not-configurable",
        403,
        "The notification always goes to administrators",
        meaning="Who receives this type of notification is fixed.",
        remedy="Leave the type out; the other types can be assigned to roles and users.",
    ),
)

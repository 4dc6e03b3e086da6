"""A call in a shell: curl, and openssl for signatures."""

import json
import shlex
from collections.abc import Iterator

from billfold.documentation.reference.call import FILE, FILE_TYPE, Call
from billfold.documentation.reference.operations import Content, Proof

_ONE_LINE = 60
_SIGN = """\
key=$(python3 -c 'import uuid; print(uuid.uuid4())')
signature=$(printf %s "$key$path{body}" | openssl dgst -sha256 -hmac "$PARTNER_SECRET" -binary | base64)"""
_KEY = "key=$(python3 -c 'import uuid; print(uuid.uuid4())')"


def curl_sample(call: Call) -> str:
    """Return the commands of a call."""
    operation = call.operation
    lines = [f"{name}={shlex.quote(value)}" for name, value in call.variables.items()]
    lines.append(f'path="{operation.path.replace("{", "$").replace("}", "")}"')
    if operation.content is Content.JSON:
        lines.append(f"body={shlex.quote(_json(call.body))}")
    if operation.proof is Proof.SIGNATURE:
        lines.append(_SIGN.format(body="$body" if operation.content is Content.JSON else ""))
    elif operation.proof is Proof.TOKEN_AND_KEY or (operation.proof is Proof.OAUTH and operation.method != "GET"):
        lines.append(_KEY)
    url = f'"${operation.api.upper()}_URL$path{"?" + call.query if call.query else ""}"'
    return "\n".join([*lines, " \\\n  ".join([f"curl {url}", *_options(call)])])


def _json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _ONE_LINE else json.dumps(value, ensure_ascii=False, indent=2)


def _options(call: Call) -> Iterator[str]:
    operation = call.operation
    implied = "POST" if operation.content is not Content.NONE else "GET"
    if operation.method != implied:
        yield f"--request {operation.method}"
    if call.is_stream:
        yield "--no-buffer"
    yield from (f'--header "{name}: {value}"' for name, value in _headers(operation.proof, operation.method))
    if operation.content is Content.JSON:
        yield '--json "$body"'
    elif operation.content is Content.FILE:
        yield f'--form "file=@{FILE};type={FILE_TYPE}"'
    elif operation.content is Content.FORM:
        yield from (f"--data-urlencode {shlex.quote(f'{name}={value}')}" for name, value in call.body.items())
        if operation.proof is Proof.ASSERTION:
            yield '--data-urlencode "client_assertion_type=$CLIENT_ASSERTION_TYPE"'
            yield '--data-urlencode "client_assertion=$CLIENT_ASSERTION"'


def _headers(proof: Proof, method: str) -> Iterator[tuple[str, str]]:
    if proof is Proof.OAUTH:
        yield "Authorization", "Bearer $CUSTOMER_TOKEN"
        if method != "GET":
            yield "Idempotency-Key", "$key"
    elif proof in {Proof.TOKEN, Proof.TOKEN_AND_KEY, Proof.SIGNATURE}:
        yield "Authorization", "Bearer $PARTNER_TOKEN"
        if proof is not Proof.TOKEN:
            yield "X-Service-Idempotency", "$key"
        if proof is Proof.SIGNATURE:
            yield "X-Service-Signature", "$signature"

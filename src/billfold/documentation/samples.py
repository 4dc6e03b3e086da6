"""Samples of an operation: its call in curl, Python and TypeScript, each of which runs, and its response."""

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from billfold.documentation.operations import FILE, FILE_TYPE, ApiOperation, Call, Content, Proof, call_of, resolved
from billfold.documentation.site import Sample, Samples

_ONE_LINE = 60
_SIGN = """\
key=$(python3 -c 'import uuid; print(uuid.uuid4())')
signature=$(printf %s "$key$path{body}" | openssl dgst -sha256 -hmac "$PARTNER_SECRET" -binary | base64)"""
_KEY = "key=$(python3 -c 'import uuid; print(uuid.uuid4())')"


class Home(NamedTuple):
    """The sandbox that samples run against: the command that tells a shell its credentials, and their file."""

    shell: str
    file: str


class OwnCall(NamedTuple):
    """A call with the values of a sandbox, and what a reader is told about those that it has none of."""

    call: Call
    home: Home
    note: str


def curl_sample(call: Call, home: Home | None = None) -> str:
    """Return the commands of a call."""
    operation = call.operation
    lines = [home.shell] if home else []
    lines += [f"{name}={shlex.quote(value)}" for name, value in call.variables.items()]
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
    yield from (f'--header "{name}: {value}"' for name, value in _curl_headers(operation.proof, operation.method))
    if operation.content is Content.JSON:
        yield '--json "$body"'
    elif operation.content is Content.FILE:
        yield f'--form "file=@{FILE};type={FILE_TYPE}"'
    elif operation.content is Content.FORM:
        yield from (f"--data-urlencode {shlex.quote(f'{name}={value}')}" for name, value in call.body.items())
        if operation.proof is Proof.ASSERTION:
            yield '--data-urlencode "client_assertion_type=$CLIENT_ASSERTION_TYPE"'
            yield '--data-urlencode "client_assertion=$CLIENT_ASSERTION"'


def _curl_headers(proof: Proof, method: str) -> Iterator[tuple[str, str]]:
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


_FIRST = "First, in the shell: "
_INDENT = "    "
_ARGUMENTS = 90


def python_sample(call: Call, home: Home | None = None) -> str:
    """Return the program of a call; the authorization server is not called by the client's operations."""
    file = _literal(home.file, 0) if home else ""
    if call.operation.api != "auth":
        return _client_sample(call, file)
    first = f"# {_FIRST}{home.shell}\n" if home and call.operation.proof is Proof.ASSERTION else ""
    return first + _http_sample(call, file)


def _client_sample(call: Call, file: str) -> str:
    operation = call.operation
    client = f"sandbox_{operation.api}"
    imports = ["from pathlib import Path\n"] if operation.content is Content.FILE else []
    values = [f"{name} = {_literal(value, 0)}" for name, value in call.variables.items()]
    arguments = [*call.variables, *_keywords(call)]
    sent = ", ".join(arguments)
    if len(sent) > _ARGUMENTS or "\n" in sent:
        sent = "\n" + "".join(f"{_INDENT * 2}{each},\n" for each in arguments) + _INDENT
    asked = f"api.{operation.id}({sent})"
    if call.is_stream or not {"cursor", "offset"}.isdisjoint(each["name"] for each in operation.parameters_in("query")):
        action = [f"{_INDENT}for each in {asked}:", f"{_INDENT * 2}print(each)"]
    else:
        action = [f"{_INDENT}answer = {asked}", "print(answer)"] if operation.answers else [f"{_INDENT}{asked}"]
    imports.append(f"from billfold_client.sandbox import {client}")
    return "\n".join([*imports, "", *values, *([""] if values else []), f"with {client}({file}) as api:", *action])


def _keywords(call: Call) -> Iterator[str]:
    """Yield the query and the body as arguments, named as the client does; a body without fields is one argument."""
    operation = call.operation
    has_fields = "properties" in resolved(operation.document, operation.body_schema)
    if operation.content is Content.JSON and not has_fields:
        yield _literal(call.body, 2)
    for name, value in parse_qsl(call.query):
        yield f"{name.removesuffix('[]')}={_literal([value] if name.endswith('[]') else value, 2)}"
    if operation.content is Content.FILE:
        yield f'file=("{FILE}", Path("{FILE}").read_bytes(), "{FILE_TYPE}")'
    elif has_fields:
        yield from (f"{name}={_literal(value, 2)}" for name, value in (call.body or {}).items())


def _http_sample(call: Call, file: str) -> str:
    """Return the program of a call of the authorization server."""
    operation = call.operation
    imports = ["import os\n"] if operation.proof is Proof.ASSERTION else []
    imports.append("from billfold_client.sandbox import sandbox_auth_server")
    quoted = f'"{operation.path}{"?" + call.query if call.query else ""}"'
    sent = ", ".join([quoted, *_python_form(call)])
    action = f"{_INDENT}answer = http.{operation.method.lower()}({sent})"
    if call.is_redirect:
        read = ['print(answer.headers["location"])']
    else:
        shown = "answer.json()" if call.answers_json else "answer.status_code, answer.text"
        read = ["answer.raise_for_status()", f"print({shown})"]
    return "\n".join([*imports, "", f"with sandbox_auth_server({file}) as http:", action, *read])


def _python_form(call: Call) -> list[str]:
    if call.operation.content is not Content.FORM:
        return []
    proof = {"client_assertion_type": "CLIENT_ASSERTION_TYPE", "client_assertion": "CLIENT_ASSERTION"}
    fields = [f'"{name}": {_literal(value, 0)}' for name, value in call.body.items()]
    if call.operation.proof is Proof.ASSERTION:
        fields += [f'"{name}": os.environ["{variable}"]' for name, variable in proof.items()]
    inner = "".join(f"{_INDENT * 2}{each},\n" for each in fields)
    return [f"data={{\n{inner}{_INDENT}}}"]


def _literal(value: object, depth: int) -> str:
    """Return a value as Python source; long values have one entry per line."""
    if isinstance(value, dict):
        entries = [f"{_literal(name, 0)}: {_literal(each, depth + 1)}" for name, each in value.items()]
        return _enclosed("{", entries, "}", depth)
    if isinstance(value, list):
        return _enclosed("[", [_literal(each, depth + 1) for each in value], "]", depth)
    if isinstance(value, str):
        text = repr(value)
        return text if '"' in value else f'"{text[1:-1]}"'.replace("\\'", "'")
    return repr(value)


def _enclosed(start: str, entries: list[str], end: str, depth: int) -> str:
    line = f"{start}{', '.join(entries)}{end}"
    if len(line) <= _ONE_LINE and "\n" not in line:
        return line
    inner = _INDENT * (depth + 1)
    return start + "\n" + "".join(f"{inner}{each},\n" for each in entries) + _INDENT * depth + end


_KEYED = {Proof.TOKEN_AND_KEY, Proof.SIGNATURE}


def typescript_sample(call: Call, home: Home | None = None) -> str:
    """Return the program of a call."""
    operation = call.operation
    has_key = operation.takes_key
    lines = [f"// {_FIRST}{home.shell}"] if home else []
    lines += [*_imports(call, has_key=has_key)]
    lines += [f'const {_camel(name)} = "{value}";' for name, value in call.variables.items()]
    query = f"?{call.query}" if call.query else ""
    path = re.sub(r"{(\w+)}", lambda found: f"${{{_camel(found[1])}}}", operation.path)
    lines.append(f"const path = `{path}`;" if call.variables else f'const path = "{path}";')
    lines += _typescript_body(call)
    if has_key:
        lines.append("const key = randomUUID();")
    if operation.proof is Proof.SIGNATURE:
        signed = "key + path + body" if operation.content is Content.JSON else "key + path"
        lines.append('const signature = createHmac("sha256", process.env.PARTNER_SECRET ?? "")')
        lines.append(f'  .update({signed}).digest("base64");')
    url = f"process.env.{operation.api.upper()}_URL + path" + (f' + "{query}"' if query else "")
    return "\n".join([*lines, "", *_fetch(call, url), *_typescript_read(call)])


def _imports(call: Call, *, has_key: bool) -> list[str]:
    names = (["createHmac"] if call.operation.proof is Proof.SIGNATURE else []) + (["randomUUID"] if has_key else [])
    lines = [f'import {{ {", ".join(names)} }} from "node:crypto";'] if names else []
    if call.operation.content is Content.FILE:
        lines.append('import { readFile } from "node:fs/promises";')
    return [*lines, ""] if lines else []


def _typescript_body(call: Call) -> list[str]:
    content = call.operation.content
    if content is Content.JSON:
        return [f"const body = JSON.stringify({json.dumps(call.body, ensure_ascii=False, indent=2)});"]
    if content is Content.FILE:
        blob = f'new Blob([await readFile("{FILE}")], {{ type: "{FILE_TYPE}" }})'
        return ["const body = new FormData();", f'body.append("file", {blob}, "{FILE}");']
    if content is Content.FORM:
        fields = [f"  {name}: {json.dumps(value)}," for name, value in call.body.items()]
        if call.operation.proof is Proof.ASSERTION:
            fields.append('  client_assertion_type: process.env.CLIENT_ASSERTION_TYPE ?? "",')
            fields.append('  client_assertion: process.env.CLIENT_ASSERTION ?? "",')
        return ["const body = new URLSearchParams({", *fields, "});"]
    return []


def _fetch(call: Call, url: str) -> list[str]:
    operation = call.operation
    options = [] if operation.method == "GET" else [f'  method: "{operation.method}",']
    headers = [f"    {each}," for each in _typescript_headers(call)]
    options += ["  headers: {", *headers, "  },"] if headers else []
    if call.is_redirect:
        options.append('  redirect: "manual",')
    if operation.content is not Content.NONE:
        options.append("  body,")
    return (
        [f"const answer = await fetch({url}, {{", *options, "});"]
        if options
        else [f"const answer = await fetch({url});"]
    )


def _typescript_headers(call: Call) -> Iterator[str]:
    proof, content = call.operation.proof, call.operation.content
    if proof is Proof.OAUTH:
        yield "authorization: `Bearer ${process.env.CUSTOMER_TOKEN}`"
        if call.operation.method != "GET":
            yield '"idempotency-key": key'
    elif proof in {Proof.TOKEN, *_KEYED}:
        yield "authorization: `Bearer ${process.env.PARTNER_TOKEN}`"
        if proof in _KEYED:
            yield '"x-service-idempotency": key'
        if proof is Proof.SIGNATURE:
            yield '"x-service-signature": signature'
    if content is Content.JSON:
        yield '"content-type": "application/json"'


def _typescript_read(call: Call) -> list[str]:
    if call.is_redirect:
        return ['console.log(answer.headers.get("location"));']
    check = "if (!answer.ok) throw new Error(await answer.text());"
    if call.is_stream:
        return [
            check,
            "for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {",
            "  console.log(chunk);",
            "}",
        ]
    return [check, "console.log(await answer.json());" if call.answers_json else "console.log(await answer.text());"]


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)


_LONG = 8_000
"""Length in characters from which the lists of an example are shortened."""


def samples_of(operation: ApiOperation, own: OwnCall | None = None) -> list[Samples]:
    """Return the samples of an operation, in a sandbox with its own values."""
    call, home = (own.call, own.home) if own else (call_of(operation), None)
    variants = [
        Sample("curl", "sh", curl_sample(call, home)),
        Sample("Python", "python", python_sample(call, home)),
        Sample("TypeScript", "typescript", typescript_sample(call, home)),
    ]
    return [Samples("Request", variants, own.note if own else ""), *_responses(operation)]


def _responses(operation: ApiOperation) -> Iterator[Samples]:
    for status, response in operation.responses(is_error=False):
        for content in response.get("content", {}).values():
            if "example" in content:
                text = json.dumps(content["example"], indent=2, ensure_ascii=False)
                is_long = len(text) > _LONG
                if is_long:
                    text = json.dumps(_shortened(content["example"]), indent=2, ensure_ascii=False)
                label = "Of each list only the first entry is shown." if is_long else ""
                yield Samples(f"Response {status}", [Sample(label, "json", text)])


def _shortened(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return JSON with only the first entry of each list."""
    if isinstance(value, dict):
        return {name: _shortened(each) for name, each in value.items()}
    return [_shortened(each) for each in value[:1]] if isinstance(value, list) else value

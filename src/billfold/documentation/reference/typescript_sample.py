"""A call in TypeScript: `fetch`, and `node:crypto` for signatures. What has both runs it as it is."""

import json
import re
from collections.abc import Iterator

from billfold.documentation.reference.call import FILE, FILE_TYPE, Call
from billfold.documentation.reference.operations import Content, Proof

_KEYED = {Proof.TOKEN_AND_KEY, Proof.SIGNATURE}


def typescript_sample(call: Call) -> str:
    """Return the program of a call."""
    operation = call.operation
    has_key = operation.proof in _KEYED or (operation.proof is Proof.OAUTH and operation.method != "GET")
    lines = [*_imports(call, has_key=has_key)]
    lines += [f'const {_camel(name)} = "{value}";' for name, value in call.variables.items()]
    query = f"?{call.query}" if call.query else ""
    path = re.sub(r"{(\w+)}", lambda found: f"${{{_camel(found[1])}}}", operation.path)
    lines.append(f"const path = `{path}`;" if call.variables else f'const path = "{path}";')
    lines += _body(call)
    if has_key:
        lines.append("const key = randomUUID();")
    if operation.proof is Proof.SIGNATURE:
        signed = "key + path + body" if operation.content is Content.JSON else "key + path"
        lines.append('const signature = createHmac("sha256", process.env.PARTNER_SECRET ?? "")')
        lines.append(f'  .update({signed}).digest("base64");')
    url = f"process.env.{operation.api.upper()}_URL + path" + (f' + "{query}"' if query else "")
    return "\n".join([*lines, "", *_fetch(call, url), *_read(call)])


def _imports(call: Call, *, has_key: bool) -> list[str]:
    names = (["createHmac"] if call.operation.proof is Proof.SIGNATURE else []) + (["randomUUID"] if has_key else [])
    lines = [f'import {{ {", ".join(names)} }} from "node:crypto";'] if names else []
    if call.operation.content is Content.FILE:
        lines.append('import { readFile } from "node:fs/promises";')
    return [*lines, ""] if lines else []


def _body(call: Call) -> list[str]:
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
    headers = [f"    {each}," for each in _headers(call)]
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


def _headers(call: Call) -> Iterator[str]:
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


def _read(call: Call) -> list[str]:
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

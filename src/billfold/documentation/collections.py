"""The operations of a document as requests for the HTTP clients of developers: Postman, Bruno, `.http` files.

All use the names of the samples for addresses and secrets, and one variable for each id in a path. The secrets are
empty: `python -m billfold_client.sandbox` prints those of a sandbox.
"""

import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode

from billfold.documentation.operations import (
    FILE,
    FILE_TYPE,
    ApiOperation,
    Call,
    Content,
    Proof,
    call_of,
    group_name,
    operations_of,
)
from billfold.documentation.samples import samples_of

_SECRETS = {
    "partner": ("PARTNER_TOKEN", "PARTNER_SECRET"),
    "customer": ("CUSTOMER_TOKEN",),
    "auth": ("CLIENT_ASSERTION_TYPE", "CLIENT_ASSERTION"),
}
_TYPES = {Content.JSON: "application/json", Content.FORM: "application/x-www-form-urlencoded"}
_BRUNO_BODIES = {
    Content.NONE: "none",
    Content.JSON: "json",
    Content.FORM: "formUrlEncoded",
    Content.FILE: "multipartForm",
}
_POSTMAN_SCHEMA = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
_SIGNED = """\
const signature = crypto.HmacSHA256(key + path + body, {shared});
{set}("key", key);
{set}("signature", crypto.enc.Base64.stringify(signature));"""
_POSTMAN_SIGNS = """\
const crypto = require("crypto-js");
const key = pm.variables.replaceIn("{{$guid}}");
const path = pm.variables.replaceIn(pm.request.url.getPath());
const isText = pm.request.body && pm.request.body.mode === "raw";
const body = isText ? pm.variables.replaceIn(pm.request.body.raw) : "";
""" + _SIGNED.format(shared='pm.variables.get("PARTNER_SECRET")', set="pm.variables.set")
_BRUNO_SIGNS = """\
const crypto = require("crypto-js");
const key = require("uuid").v4();
const path = bru.interpolate(req.getUrl()).replace(/^https?:..[^/]+/, "").split("?")[0];
const isText = (req.getHeader("Content-Type") || "") === "application/json";
const body = isText ? bru.interpolate(JSON.stringify(req.getBody())) : "";
if (isText) req.setBody(body);
""" + _SIGNED.format(shared='bru.interpolate("{{PARTNER_SECRET}}")', set="bru.setVar")
_HTTP_SIGNS = """\
< {%
const key = $random.uuid;
const path = request.url.tryGetSubstituted().replace(/^https?:..[^/]+/, "").split("?")[0];
const isText = request.headers.findByName("Content-Type");
const body = isText ? request.body.tryGetSubstituted() : "";
const signature = crypto.hmac.sha256().withTextSecret(request.variables.get("PARTNER_SECRET"));
request.variables.set("key", key);
request.variables.set("signature", signature.updateWithText(key + path + body).digest().toBase64());
%}"""
Collection = Callable[[str, Mapping[str, Any]], bytes]
"""Makes a collection of an API, by its name and its document."""


class _Request(NamedTuple):
    """One request. `fields` are those of a form; of `variables`, those of its path, the values are examples."""

    name: str
    group: str
    about: str
    method: str
    path: str
    query: list[tuple[str, str, bool]]
    """Names and values, and whether they are required."""
    headers: list[tuple[str, str]]
    text: str
    fields: Mapping[str, str]
    content: Content
    is_signed: bool
    variables: Mapping[str, str]


def with_samples(api: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document whose operations have the samples of the reference (`x-codeSamples`)."""
    samples = {
        (each.path, each.method.lower()): [
            {"lang": variant.language, "label": variant.label, "source": variant.code}
            for variant in samples_of(each)[0].variants
        ]
        for each in operations_of(api, document)
    }
    paths = {
        path: {
            method: {**node, "x-codeSamples": samples[path, method]} if (path, method) in samples else node
            for method, node in item.items()
        }
        for path, item in document["paths"].items()
    }
    return {**document, "paths": paths}


def postman(api: str, document: Mapping[str, Any]) -> bytes:
    """Return a collection of Postman, format 2.1."""
    requests = _requests(api, document)
    info = {"name": document["info"]["title"], "description": _about(document), "schema": _POSTMAN_SCHEMA}
    script = {"type": "text/javascript", "exec": _POSTMAN_SIGNS.splitlines()}
    folders = [
        {"name": group, "item": [_postman_item(api, each) for each in members]}
        for group, members in groupby(requests, lambda each: each.group)
    ]
    events = [{"listen": "prerequest", "script": script}] if api == "partner" else []
    variables = [{"key": name, "value": value} for name, value in _variables(api, document, requests).items()]
    collection = {"info": info, "item": folders, "event": events, "variable": variables}
    return json.dumps(collection, ensure_ascii=False, indent=1).encode()


def _postman_item(api: str, request: _Request) -> dict[str, Any]:
    query = [{"key": name, "value": value, "disabled": not needed} for name, value, needed in request.query]
    sent = urlencode([(name, value) for name, value, needed in request.query if needed])
    base = f"{{{{{api.upper()}_URL}}}}"
    url = {
        "raw": f"{base}{request.path}{'?' + sent if sent else ''}",
        "host": [base],
        "path": request.path.strip("/").split("/") + [""] * request.path.endswith("/"),
        "query": query,
    }
    shown: dict[str, Any] = {
        "method": request.method,
        "header": [{"key": name, "value": value} for name, value in request.headers],
        "url": url,
        "description": request.about,
    }
    if request.content is Content.FILE:
        shown["body"] = {"mode": "formdata", "formdata": [{"key": "file", "type": "file", "src": FILE}]}
    elif request.fields:
        form = [{"key": name, "value": value} for name, value in request.fields.items()]
        shown["body"] = {"mode": "urlencoded", "urlencoded": form}
    elif request.text:
        shown["body"] = {"mode": "raw", "raw": request.text, "options": {"raw": {"language": "json"}}}
    return {"name": request.name, "request": shown, "response": []}


def bruno(api: str, document: Mapping[str, Any]) -> bytes:
    """Return a collection of Bruno: an archive of its folder."""
    requests = _requests(api, document)
    title = str(document["info"]["title"])
    files = {
        "bruno.json": json.dumps({"version": "1", "name": title, "type": "collection"}),
        "collection.bru": _bru("vars:pre-request", _variables(api, document, requests))
        + (_block("script:pre-request", _BRUNO_SIGNS) if api == "partner" else ""),
    }
    for place, each in enumerate(requests, start=1):
        files[f"{each.group}/{each.name}.bru"] = _bruno_request(api, each, place)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as written:
        for name, text in files.items():
            written.writestr(zipfile.ZipInfo(f"{title}/{name}"), text, zipfile.ZIP_DEFLATED)
    return archive.getvalue()


def _bruno_request(api: str, request: _Request, place: int) -> str:
    url = f"{{{{{api.upper()}_URL}}}}{request.path}"
    query = {f"{'' if needed else '~'}{name}": value for name, value, needed in request.query}
    blocks = [
        _bru("meta", {"name": request.name, "type": "http", "seq": str(place)}),
        _bru(request.method.lower(), {"url": url, "body": _BRUNO_BODIES[request.content], "auth": "none"}),
        _bru("params:query", query),
        _bru("headers", dict(request.headers)),
        _block("body:json", request.text),
        _bru("body:form-urlencoded", request.fields),
        _bru("body:multipart-form", {"file": f"@file({FILE})"} if request.content is Content.FILE else {}),
        _block("docs", request.about),
    ]
    return "\n".join(filter(None, blocks))


def _bru(name: str, values: Mapping[str, str]) -> str:
    return _block(name, "\n".join(f"{key}: {value}" for key, value in values.items()))


def _block(name: str, text: str) -> str:
    if not text:
        return ""
    return f"{name} {{\n" + "".join(f"  {line}".rstrip() + "\n" for line in text.splitlines()) + "}\n"


def http_file(api: str, document: Mapping[str, Any]) -> bytes:
    """Return a file of requests for the HTTP clients of editors; those of JetBrains also sign them."""
    requests = _requests(api, document)
    variables = _variables(api, document, requests)
    lines = [f"# {document['info']['title']}. {_about(document)}", ""]
    lines += [f"@{name} = {value}" for name, value in variables.items()]
    for each in requests:
        lines += ["", f"### {each.name}", f"# @name {each.name}", *_http_request(api, each)]
    return ("\n".join(lines) + "\n").encode()


def _http_request(api: str, request: _Request) -> Iterator[str]:
    if request.is_signed:
        yield _HTTP_SIGNS
    sent = urlencode([(name, value) for name, value, needed in request.query if needed])
    yield f"{request.method} {{{{{api.upper()}_URL}}}}{request.path}{'?' + sent if sent else ''}"
    yield from (f"{name}: {value}" for name, value in request.headers)
    if request.content is Content.FILE:
        yield from ("Content-Type: multipart/form-data; boundary=part", "", "--part")
        yield from (f'Content-Disposition: form-data; name="file"; filename="{FILE}"', f"Content-Type: {FILE_TYPE}")
        yield from ("", f"< ./{FILE}", "--part--")
    elif request.fields:
        yield from ("", "&".join(f"{name}={value}" for name, value in request.fields.items()))
    elif request.text:
        yield from ("", request.text)


def _about(document: Mapping[str, Any]) -> str:
    return (
        f"Version {document['info']['version']}. `python -m billfold_client.sandbox` prints the secrets of a sandbox."
    )


def _requests(api: str, document: Mapping[str, Any]) -> list[_Request]:
    """Return a request for each operation, by group; streams and what a browser follows are left out."""
    calls = [call_of(each) for each in operations_of(api, document)]
    found = [_request_of(each) for each in calls if not each.is_stream and not each.is_redirect]
    return sorted(found, key=lambda each: each.group)


def _request_of(call: Call) -> _Request:
    operation = call.operation
    assertion = {"client_assertion_type": "{{CLIENT_ASSERTION_TYPE}}", "client_assertion": "{{CLIENT_ASSERTION}}"}
    fields = dict(call.body) if operation.content is Content.FORM else {}
    given = dict(parse_qsl(call.query))
    return _Request(
        name=operation.id,
        group=group_name(operation.node["tags"][0]),
        about=f"{operation.name}. [Reference]({operation.address})",
        method=operation.method,
        path=operation.path.replace("{", "{{").replace("}", "}}"),
        query=[
            (each["name"], given.get(each["name"], ""), bool(each.get("required")))
            for each in operation.parameters_in("query")
        ],
        headers=list(_headers(operation)),
        text=json.dumps(call.body, ensure_ascii=False, indent=2) if operation.content is Content.JSON else "",
        fields=fields | (assertion if operation.proof is Proof.ASSERTION else {}),
        content=operation.content,
        is_signed=operation.proof is Proof.SIGNATURE,
        variables=call.variables,
    )


def _headers(operation: ApiOperation) -> Iterator[tuple[str, str]]:
    proof = operation.proof
    if proof in {Proof.TOKEN, Proof.TOKEN_AND_KEY, Proof.SIGNATURE}:
        yield "Authorization", "Bearer {{PARTNER_TOKEN}}"
    elif proof is Proof.OAUTH:
        yield "Authorization", "Bearer {{CUSTOMER_TOKEN}}"
    if operation.takes_key:
        name = "Idempotency-Key" if proof is Proof.OAUTH else "X-Service-Idempotency"
        yield name, "{{key}}" if proof is Proof.SIGNATURE else "{{$guid}}"
    if proof is Proof.SIGNATURE:
        yield "X-Service-Signature", "{{signature}}"
    if operation.content in _TYPES:
        yield "Content-Type", _TYPES[operation.content]


def _variables(api: str, document: Mapping[str, Any], requests: Iterable[_Request]) -> dict[str, str]:
    """Return the variables of a collection: the bank's address, empty secrets, and an example of each id."""
    server = (document.get("servers") or [{"url": ""}])[0]
    url = server["url"].format(**{name: each["default"] for name, each in server.get("variables", {}).items()})
    ids = {name: value for each in requests for name, value in each.variables.items()}
    return {f"{api.upper()}_URL": url, **dict.fromkeys(_SECRETS[api], ""), **dict(sorted(ids.items()))}


COLLECTIONS: Final[Mapping[str, tuple[str, str, Collection]]] = {
    "postman": ("postman.json", "application/json", postman),
    "bruno": ("bruno.zip", "application/zip", bruno),
    "http": ("requests.http", "text/plain; charset=utf-8", http_file),
}
"""For each kind of collection the name and type of its file, and what makes it."""

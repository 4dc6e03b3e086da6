"""A call in Python: the client of both APIs, which authenticates and signs."""

from billfold.documentation.reference.call import FILE, FILE_TYPE, Call
from billfold.documentation.reference.operations import Content, Proof

_INDENT = "    "
_ONE_LINE, _ARGUMENTS = 60, 90
_CLIENTS = {
    "partner": ("from billfold.client.sandbox import sandbox_partner", "sandbox_partner()"),
    "customer": ("from billfold.client.sandbox import sandbox_customer", "sandbox_customer()"),
    "auth": ("from billfold.client.sandbox import sandbox_auth_server", "sandbox_auth_server()"),
}


def python_sample(call: Call) -> str:
    """Return the program of a call."""
    operation = call.operation
    imported, client = _CLIENTS[operation.api]
    imports = ["import os\n"] if operation.proof is Proof.ASSERTION else []
    imports += ["from pathlib import Path\n"] if operation.content is Content.FILE else []
    values = [f"{name} = {value!r}".replace("'", '"') for name, value in call.variables.items()]
    path = operation.path + (f"?{call.query}" if call.query else "")
    quoted = f'{"f" if call.variables else ""}"{path}"'
    arguments = [quoted, *_body(call)]
    sent = ", ".join(arguments)
    if len(sent) > _ARGUMENTS and "\n" not in sent:
        sent = "\n" + "".join(f"{_INDENT * 2}{each},\n" for each in arguments) + _INDENT
    if call.is_stream:
        action = [
            f'with {client} as http, http.stream("GET", {sent}) as answer:',
            f"{_INDENT}for line in answer.iter_lines():",
            f"{_INDENT * 2}print(line)",
        ]
    else:
        action = [
            f"with {client} as http:",
            f"{_INDENT}answer = http.{operation.method.lower()}({sent})",
            *_read(call),
        ]
    return "\n".join([*imports, imported, "", *values, *([""] if values else []), *action])


def _read(call: Call) -> list[str]:
    if call.is_redirect:
        return ['print(answer.headers["location"])']
    shown = "answer.json()" if call.answers_json else "answer.status_code, answer.text"
    return ["answer.raise_for_status()", f"print({shown})"]


def _body(call: Call) -> list[str]:
    content = call.operation.content
    if content is Content.JSON:
        return [f"json={_literal(call.body, 1)}"]
    if content is Content.FILE:
        return [f'files={{"file": ("{FILE}", Path("{FILE}").read_bytes(), "{FILE_TYPE}")}}']
    if content is Content.FORM:
        proof = {"client_assertion_type": "CLIENT_ASSERTION_TYPE", "client_assertion": "CLIENT_ASSERTION"}
        fields = [f'"{name}": {_literal(value, 0)}' for name, value in call.body.items()]
        if call.operation.proof is Proof.ASSERTION:
            fields += [f'"{name}": os.environ["{variable}"]' for name, variable in proof.items()]
        inner = "".join(f"{_INDENT * 2}{each},\n" for each in fields)
        return [f"data={{\n{inner}{_INDENT}}}"]
    return []


def _literal(value: object, depth: int) -> str:
    """Return a value as Python writes it; what is long with an entry on each line."""
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

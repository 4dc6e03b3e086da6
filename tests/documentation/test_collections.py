"""The operations for Postman, Bruno and editors: none is missing, and the programs' own readers find them."""

import io
import json
import re
import subprocess
import zipfile

from tests.node.runtime import node_command
from tests.reference.documents import DOCUMENTS


def sent(document):
    """Return method and path of each operation that a request can be made of."""
    return {
        (method.upper(), re.sub(r"{(\w+)}", r"{{\1}}", path))
        for path, item in document["paths"].items()
        for method, node in item.items()
        if "text/event-stream" not in str(node["responses"])
    }


async def test_every_operation_is_a_request_in_each_collection(browser):
    for api, document in DOCUMENTS.items():
        url, wanted = f"{{{{{api.upper()}_URL}}}}", sent(document)
        collection = (await browser.get(f"/docs/api/{api}/postman.json")).json()
        items = [each["request"] for folder in collection["item"] for each in folder["item"]]
        assert {(each["method"], f"/{'/'.join(each['url']['path'])}") for each in items} == wanted
        assert all("".join(each["url"]["raw"].partition("/")[:1]) == url for each in items)
        text = (await browser.get(f"/docs/api/{api}/requests.http")).text
        lines = re.findall(rf"^([A-Z]+) {re.escape(url)}([^?\n]*)", text, re.MULTILINE)
        assert set(lines) == wanted
        assert len(lines) == len(items) == len(wanted)
        assert text.count("< {%") == (text.count("X-Service-Signature") if api == "partner" else 0)


async def test_bruno_reads_its_collection(browser):
    archive = zipfile.ZipFile(io.BytesIO((await browser.get("/docs/api/partner/bruno.zip")).content))
    files = {each: archive.read(each).decode() for each in archive.namelist()}
    command = node_command("parse_bruno.cjs")
    read = json.loads(subprocess.check_output(command, input=json.dumps(files), text=True))
    assert "crypto.HmacSHA256" in read.pop("Partner API/collection.bru")["script"]["req"]
    requests = {(each["http"]["method"].upper(), each["http"]["url"].partition("}}")[2]) for each in read.values()}
    assert requests == sent(DOCUMENTS["partner"])
    wire = read["Partner API/Wires/create_wire.bru"]
    assert {each["name"]: each["value"] for each in wire["headers"]}["X-Service-Signature"] == "{{signature}}"
    assert "amount_usdc" in json.loads(wire["body"]["json"])


async def test_an_openapi_document_has_the_samples_of_the_reference(browser):
    document = (await browser.get("/docs/api/customer/openapi.json")).json()
    nodes = [node for item in document["paths"].values() for node in item.values()]
    assert {tuple(each["lang"] for each in node["x-codeSamples"]) for node in nodes} == {("sh", "python", "typescript")}
    shown = (await browser.get("/docs/api/customer/list_pockets.md")).text
    assert document["paths"]["/api/v2/pockets/"]["get"]["x-codeSamples"][1]["source"] in shown

"""Both OpenAPI documents in third-party generators: nothing is missing, and nothing is declared twice."""

import json
import os
import re
import subprocess
import sys
from itertools import combinations

import msgspec
import pytest
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry
from referencing.jsonschema import DRAFT202012
from tests.node.runtime import NODE, package_file
from tests.reference import documents
from tests.support.maven import jars_of
from tests.support.python_tools import program_of

DOCUMENTS = msgspec.to_builtins(documents.DOCUMENTS)
SECONDS = 300
both = pytest.mark.parametrize("api", DOCUMENTS)


def operations_of(document):
    return [each for item in document["paths"].values() for each in item.values()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with both documents as files."""
    made = tmp_path_factory.mktemp("generated")
    for api, document in DOCUMENTS.items():
        (made / f"{api}.json").write_text(json.dumps(document))
    return made


def missing_in(folder, ending, document):
    """Return the operations without a function or a file in a generated client."""
    files = folder.rglob(f"*{ending}")
    text = "".join(f"{each.name}\n{each.read_text()}" for each in files).replace("_", "").lower()
    names = [each["operationId"] for each in operations_of(document)]
    return [each for each in names if each.replace("_", "").lower() not in text]


@both
def test_parameter_names_are_unique_after_normalization(api):
    for each in operations_of(DOCUMENTS[api]):
        names = [re.sub(r"\W", "", p["name"]).lower() for p in each.get("parameters", ()) if "name" in p]
        assert len(names) == len(set(names)), (each["operationId"], names)


def test_only_the_report_path_is_documented_without_a_trailing_slash():
    paths = DOCUMENTS["customer"]["paths"]
    assert [each for each in paths if not each.endswith(("/", ".csv"))] == ["/api/v1/report/{report_id}"]


@both
def test_schema_names_do_not_clash_with_go_constructors(api):
    names = DOCUMENTS[api]["components"]["schemas"]
    assert [each for each in names if f"New{each}" in names] == []


def alternatives_in(node):
    """Yield the alternatives of each `oneOf` of a document, without null."""
    if isinstance(node, dict):
        if "oneOf" in node:
            yield [each for each in node["oneOf"] if each.get("type") != "null"]
        for each in node.values():
            yield from alternatives_in(each)
    elif isinstance(node, list):
        for each in node:
            yield from alternatives_in(each)


def tags_of(schema):
    """The values of each field that an object of this schema must have, where the schema names them."""
    fields = {name: schema["properties"][name] for name in schema.get("required", ()) if "properties" in schema}
    return {name: {each["const"]} if "const" in each else set(each.get("enum", ())) for name, each in fields.items()}


def are_told_apart(one, other):
    if one.get("type") != other.get("type"):
        return True
    tags = tags_of(one), tags_of(other)
    return any(
        tags[0][name] and tags[1][name] and not tags[0][name] & tags[1][name] for name in {*tags[0]} & {*tags[1]}
    )


@both
def test_one_of_alternatives_are_mutually_exclusive(api):
    schemas = DOCUMENTS[api]["components"]["schemas"]
    for alternatives in alternatives_in(DOCUMENTS[api]):
        found = [schemas[each["$ref"].rpartition("/")[2]] if "$ref" in each else each for each in alternatives]
        assert all(are_told_apart(*pair) for pair in combinations(found, 2)), alternatives


@both
def test_every_schema_is_valid_and_every_example_matches_its_schema(api):
    document = DOCUMENTS[api]
    registry = Registry().with_resource("urn:api", DRAFT202012.create_resource(document))
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    wrong = []
    for each in [*operations_of(document), *(each["post"] for each in document.get("webhooks", {}).values())]:
        parts = [each.get("requestBody", {}), *each["responses"].values()]
        for kind, content in ((kind, c) for part in parts for kind, c in part.get("content", {}).items()):
            if kind.endswith("json") and "example" in content:
                schema = json.loads(json.dumps(content["schema"]).replace('"#/', '"urn:api#/'))
                validator = Draft202012Validator(schema, registry=registry, format_checker=FormatChecker())
                found = validator.iter_errors(content["example"])
                wrong += [(each["operationId"], error.json_path, error.message[:200]) for error in found]
    assert wrong == []


@both
def test_the_python_client_generator_keeps_every_operation_and_schema(api, folder, tmp_path_factory):
    packages = program_of("openapi-python-client", "0.29.1", tmp_path_factory)
    settings = folder / "settings.yml"
    settings.write_text("post_hooks: []\n")
    run = "import sys; from openapi_python_client.cli import app; sys.exit(app())"
    words = ["generate", "--path", f"{api}.json", "--output-path", f"{api}-python", "--meta", "none"]
    made = subprocess.run(
        [sys.executable, "-c", run, *words, "--config", str(settings)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert made.returncode == 0, made.stderr
    assert "WARNING" not in made.stdout.upper(), made.stdout
    assert missing_in(folder / f"{api}-python", ".py", DOCUMENTS[api]) == []


@both
def test_openapi_typescript_keeps_every_operation_and_schema(api, folder):
    program = package_file("openapi-typescript/bin/cli.js")
    words = [str(NODE), str(program), f"{api}.json", "-o", f"{api}-types/types.ts"]
    made = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert made.returncode == 0, made.stderr
    assert missing_in(folder / f"{api}-types", ".ts", DOCUMENTS[api]) == []


def test_openapi_generator_keeps_every_operation_and_schema_in_go_or_java(folder, tmp_path_factory):
    jars = jars_of("org.openapitools", "openapi-generator-cli", "7.14.0", tmp_path_factory)
    languages = {"customer": "go", "partner": "java"}
    plans = []
    for api, language in languages.items():
        plan = {
            "generatorName": language,
            "inputSpec": str(folder / f"{api}.json"),
            "outputDir": str(folder / f"{api}-{language}"),
            "globalProperties": {"modelDocs": "false", "apiDocs": "false", "modelTests": "false"},
        }
        plans.append(folder / f"{api}-{language}.json")
        plans[-1].write_text(json.dumps(plan))
    words = [
        "java",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{jars}/*",
        "org.openapitools.codegen.OpenAPIGenerator",
        "batch",
        *map(str, plans),
    ]
    made = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS)
    said = made.stdout + made.stderr
    assert "Exception" not in re.sub(r"\w+Exception\.java", "", said), said[:4000]
    assert made.returncode == 0, said[-4000:]
    for api, language in languages.items():
        assert missing_in(folder / f"{api}-{language}", f".{language}", DOCUMENTS[api]) == [], (api, language)

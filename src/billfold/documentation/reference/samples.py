"""What stands beside an operation: its call in every language, and what it answers."""

import json
from collections.abc import Iterator
from typing import Any

from billfold.documentation.reference.call import call_of
from billfold.documentation.reference.curl_sample import curl_sample
from billfold.documentation.reference.operations import ApiOperation
from billfold.documentation.reference.python_sample import python_sample
from billfold.documentation.reference.typescript_sample import typescript_sample
from billfold.documentation.types import Sample, Samples

_LONG = 8_000
"""From how many characters on the lists of an example are shortened."""


def samples_of(operation: ApiOperation) -> list[Samples]:
    """Return the samples of an operation."""
    call = call_of(operation)
    variants = [
        Sample("curl", "sh", curl_sample(call)),
        Sample("Python", "python", python_sample(call)),
        Sample("TypeScript", "typescript", typescript_sample(call)),
    ]
    return [Samples("Request", variants), *_responses(operation)]


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
    """Return JSON with the first entry of each list alone."""
    if isinstance(value, dict):
        return {name: _shortened(each) for name, each in value.items()}
    return [_shortened(each) for each in value[:1]] if isinstance(value, list) else value

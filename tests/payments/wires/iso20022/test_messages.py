"""Written messages conform to the standards: they are read by third-party libraries and schemas."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from tests.payments.wires.iso20022.wires import MESSAGES, a_wire
from xsdata.formats.dataclass.parsers import XmlParser
from xsdata.formats.dataclass.parsers.config import ParserConfig
from xsdata.formats.dataclass.serializers import XmlSerializer

from billfold.payments.wires.iso20022.envelope import write_messages

SCHEMAS = Path(__file__).parent / "schemas"
"""ISO 20022's own, as published."""
STRICT = ParserConfig(fail_on_unknown_properties=True, fail_on_unknown_attributes=True)


def _parts(name: str) -> tuple[etree._Element, etree._Element]:
    """The header and the document of one message, each a document of its own."""
    root = etree.fromstring(write_messages([a_wire(MESSAGES[name])], "outgoing"))
    header, document = root[0][0]
    return etree.fromstring(etree.tostring(header)), etree.fromstring(etree.tostring(document))


@pytest.mark.parametrize("name", MESSAGES)
def test_written_messages_round_trip_through_an_independent_library(name):
    for element in _parts(name):
        kind = _library_class(element)
        read: Any = XmlParser(config=STRICT).from_bytes(etree.tostring(element), kind)
        again = XmlSerializer().render(read, ns_map={None: etree.QName(element).namespace})

        assert _canonical(etree.fromstring(again.encode())) == _canonical(element)


@pytest.mark.parametrize("name", [name for name in MESSAGES if "credit transfer" in name])
def test_a_written_credit_transfer_validates_against_its_schema(name):
    schema = etree.XMLSchema(etree.parse(SCHEMAS / "pacs.008.001.08.xsd"))
    _, document = _parts(name)

    assert schema.validate(document), schema.error_log


def _library_class(element: etree._Element) -> type:
    name = etree.QName(element)
    module = str(name.namespace).rpartition(":")[2].replace(".", "_")
    package = import_module(f"pyiso20022.{module[:4]}.{module}")
    found: type = getattr(package, name.localname)
    return found


def _canonical(element: etree._Element) -> bytes:
    plain = etree.fromstring(etree.tostring(element), etree.XMLParser(remove_blank_text=True))
    etree.cleanup_namespaces(plain)
    return etree.tostring(plain, method="c14n")

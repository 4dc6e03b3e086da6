"""Which operations are called straight from the door, and that they answer as all others do."""

import pytest

from billfold.interfaces.customer_api.app import build_customer_app
from billfold.interfaces.partner_api.app import build_partner_app, partner_routes


@pytest.fixture(scope="module")
def operations():
    """The operations of both APIs by their names."""
    apps = build_partner_app(partner_routes()), build_customer_app()
    return {each.name: each for app in apps for each in app.state.operations.values()}


@pytest.mark.parametrize("name", ["create_on_us_transfer", "create_wire", "get_portal", "get_user"])
def test_what_takes_a_body_and_names_of_the_path_is_called_straight(operations, name):
    assert operations[name].straight is not None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("list_events", "it reads the query"),
        ("stream_events", "it streams"),
        ("show_health", "it does not wait"),
        ("delete_subscription", "it answers without a body"),
        ("upload_document_file", "it takes a file"),
    ],
)
def test_what_needs_the_framework_is_left_to_it(operations, name, why):
    assert operations[name].straight is None, why

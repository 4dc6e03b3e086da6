"""The catalog of simulations agrees with the operations of the sandbox."""

from billfold.http.openapi import examples_of
from billfold.sandbox.routes.catalogue import magic_values, simulations
from billfold.sandbox.routes.operations import sandbox_operations

EXAMPLES = examples_of("billfold.apis.partner_api")


def test_every_simulation_is_in_the_catalog_with_the_parameters_of_its_example():
    catalogue = {each.name: each for each in simulations()}
    others = {"sandbox_fork", "sandbox_rewind", "sandbox_reset", "sandbox_play_scenario", "sandbox_rotate_credentials"}
    assert set(catalogue) == {each.name for each in sandbox_operations() if each.method == "POST"} - others
    for name, each in catalogue.items():
        sent = EXAMPLES[name].get("request") or {}
        body = {parameter.name: parameter for parameter in each.parameters if parameter.place == "body"}
        assert set(sent) <= set(body), name
        assert {parameter.name for parameter in body.values() if parameter.required} <= set(sent), name
        assert "$ref" not in str(each.parameters)
    assert catalogue["sandbox_ach_submit"].events == ["transfers.ach.out.sent"]


def test_the_catalog_lists_the_magic_values_of_simulations():
    assert {("wires", "ends in 01"), ("ach", "ends in 03"), ("card-money", "ends in 04"), ("ach", "091000019")} <= {
        (each.area, each.value) for each in magic_values()
    }

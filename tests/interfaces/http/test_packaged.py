"""What a package of operations brings along."""

from billfold.interfaces.http.packaged import examples_of, routes_of


def test_the_routes_of_every_module_are_found_and_those_of_inner_packages_are_not() -> None:
    outer = routes_of("billfold.interfaces.auth")
    inner = routes_of("billfold.interfaces.auth.pages")

    assert outer
    assert inner
    assert not set(map(id, outer)) & set(map(id, inner))


def test_examples_are_those_of_the_package_and_without_a_file_there_are_none() -> None:
    assert examples_of("billfold.kit") == {}
    assert "response" in examples_of("billfold.interfaces.partner_api")["create_account_portal"]

"""The page of settings names each, with its default as people write it."""

from billfold.platform.settings import settings
from billfold.platform.settings.reference import reference


def test_every_setting_is_in_the_reference():
    table = reference()

    for name in settings.declared_settings():
        assert f"| `{settings.variable_name(name)}`" in table
    assert "`BILLFOLD_SEED` or `BILLFOLD_SEED_FILE`" in table
    assert "| 8443 |" in table
    assert "| `BILLFOLD_WIRE_CUTOFF` | 16:00 |" in table

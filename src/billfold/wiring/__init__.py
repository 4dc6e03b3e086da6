"""The only place that knows everybody: settings become a database, a bank, a server.

`partner_app` is what each worker of the https server calls, `Wiring` what the command line
stands on. Nothing else picks an adapter.
"""

from billfold.wiring.ground import Wiring
from billfold.wiring.opening import found, open_bank
from billfold.wiring.serving import make_partner_app, partner_app

__all__ = ["Wiring", "found", "make_partner_app", "open_bank", "partner_app"]

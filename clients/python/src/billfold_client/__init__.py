"""A client of a Billfold bank: every operation of both its APIs, for programs that wait and programs that await.

from billfold_client.partner import PartnerApi
from billfold_client.signing import PartnerAuth

with PartnerApi(httpx.Client(base_url=url, auth=PartnerAuth(url=url, ...))) as api:
    pocket = api.create_pocket(customer_id, pocket_name="Operating", deposit_strategy_id="UST-4W")
"""

from billfold_client.errors import ApiError, FieldError

__version__ = "0.1.0"
__all__ = ["ApiError", "FieldError", "__version__"]

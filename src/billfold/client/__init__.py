"""Calls both APIs as any program would: httpx with the right headers, typed answers.

    with httpx.Client(base_url=..., auth=PartnerAuth(...)) as http:
        PartnerApi(http).pockets()

Nothing of the bank but its shapes is used, so what works here works from anywhere.
"""

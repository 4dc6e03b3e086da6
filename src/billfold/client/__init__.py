"""Calls both APIs as any program would: httpx with the right headers, typed answers.

    with httpx.Client(base_url=..., auth=PartnerAuth(...)) as http:
        PartnerApi(http).pockets()

It uses nothing of the bank but its shapes, so any program can do the same from anywhere.
"""

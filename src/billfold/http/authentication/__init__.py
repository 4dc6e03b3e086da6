"""Authentication: access tokens with DPoP, signed requests."""

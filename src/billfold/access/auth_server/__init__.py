"""The authorization server: where programs get tokens and people decide what they may do."""

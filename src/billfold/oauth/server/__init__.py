"""The authorization server: where clients get tokens and users decide what they may do."""

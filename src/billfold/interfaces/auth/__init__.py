"""The authorization server: who may do what, decided by people on pages and proven to programs."""

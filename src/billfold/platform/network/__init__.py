"""Network addresses given by others: the SSRF guard, TLS certificates, guarded HTTP calls."""

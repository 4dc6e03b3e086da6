"""HTTP operations that only a sandbox has, mounted on the Partner API."""

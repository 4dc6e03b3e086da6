"""The two HTTP APIs put together from the operations of all parts, and their documents."""

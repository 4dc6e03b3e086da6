"""The reference of each API: a page for each operation, made from its OpenAPI document, with samples that run."""

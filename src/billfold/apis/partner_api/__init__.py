"""The Partner API, one file per resource."""

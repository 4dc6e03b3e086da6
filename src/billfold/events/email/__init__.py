"""Outbound e-mail: templates, outbox, senders."""

"""Fedwire files: messages that go out, messages that come in, and what is booked of them."""

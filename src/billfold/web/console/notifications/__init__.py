"""What members are notified of, and which of them."""

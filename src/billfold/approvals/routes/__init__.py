"""Customer API operations of dual control."""

"""What applications may say, what they lack, and how they move. Pure."""

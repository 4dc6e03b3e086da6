"""What cards may take, hold, take and give back."""

"""What waits for a second person: the queue, the exact content of each request, and the decision about it."""

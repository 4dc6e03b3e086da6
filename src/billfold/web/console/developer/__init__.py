"""What a company's engineers need: programs and their keys, webhook subscriptions with attempts, the log of events."""

"""What the simulated counterparts with a process of their own share."""

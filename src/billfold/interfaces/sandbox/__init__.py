"""The doors that exist only in the sandbox: simulated money, markets and time."""

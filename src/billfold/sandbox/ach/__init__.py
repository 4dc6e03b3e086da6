"""The simulated ACH network, and the operations that act for other banks."""

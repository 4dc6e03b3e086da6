"""The catalogue of what a sandbox simulates, made from its operations and the values that its counterparts obey."""

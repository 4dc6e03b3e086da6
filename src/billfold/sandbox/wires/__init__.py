"""The simulated Fedwire Funds Service, and the operations that act for the other side."""

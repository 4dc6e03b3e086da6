"""What a process lets its operator see: metrics and traces. Nothing of either is loaded before it is switched on."""

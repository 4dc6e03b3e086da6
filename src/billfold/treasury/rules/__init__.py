"""Investment decisions, pure: invest, liquidate, mature, fees, day end, catch-up."""

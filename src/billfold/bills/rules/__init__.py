"""Bill arithmetic and choices, pure: pricing, market, lots, valuation, earnings, fees."""

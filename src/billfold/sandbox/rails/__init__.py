"""The rails of a sandbox: the ACH network and the Fedwire service, with the other banks behind them."""

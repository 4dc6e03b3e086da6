"""Moving money: what a transfer would do is shown before it is requested; requests are listed, read and cancelled."""

"""HTTP in, ledger calls, HTTP out. What is said here is decided in `ledger`; how it is carried is decided here."""

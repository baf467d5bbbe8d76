"""What an auditor installs: verification that trusts no server, built on the pure parts of the ledger only."""

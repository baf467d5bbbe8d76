"""How every request of the command line calls itself.

It names no program, so that a ledger cannot tell an audit from other requests by it and answer the auditor alone
truthfully. A service names itself to the hosts and issuers that it asks (`ledger.net.fetch`), who may want to know.
"""

USER_AGENT = "Mozilla/5.0"

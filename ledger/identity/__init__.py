"""Who speaks: DIDs and their keys, credentials and their issuers, and what is kept of a guest."""

"""What is asked of others over the network: by one fetcher, which nobody can send into the operator's own network."""

"""What is known of a host, as it is answered to people and agents."""

"""Reviews and responses, from what is sent in to the receipt (RFC-005 sections 7, 9, 10)."""

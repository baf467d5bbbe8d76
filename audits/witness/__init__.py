"""A witness (c2sp.org/tlog-witness): a small service that keeps logs from showing two histories."""

"""Staylog's domain: the log, who may write to it, and what it says about a host."""

"""Alembic revisions of the tables in ledger/store/tables.py."""

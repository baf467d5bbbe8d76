"""Where the log is kept: SQLite or PostgreSQL, through SQLAlchemy Core."""

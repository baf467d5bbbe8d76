"""What is typed. Everything that needs the `server` extra is imported when a command runs: an auditor's small install
has none of it."""

"""The monitor: an audit that does not stop, listens to what others have heard of the log, and raises the alarm."""

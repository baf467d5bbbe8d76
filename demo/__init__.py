"""`make demo`: the whole story in a terminal. Real keys, a real service, a real clock; what it says, it has checked."""

"""Ports for programs that listen where they are told."""

import secrets
import socket


def free_port() -> int:
    """One below those that the system chooses from: until the program listens there, no connection of another test
    takes it."""
    while True:
        port = 10_000 + secrets.randbelow(20_000)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue

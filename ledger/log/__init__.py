"""The tamper-evident log: design/protocol.md as pure code. Formats are named as the C2SP specifications name them."""

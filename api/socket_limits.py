"""What one connection may cost the service, and how many there may be. The operator's guide has the same table."""

from dataclasses import dataclass

# Files of the database (two for each of 48 readers, the writer, the limiter), connections to PostgreSQL, sockets to
# hosts and issuers (50 submissions that ask, 72 names that are resolved), witnesses, logs, and some to spare.
RESERVED_FILES = 384
# Below this a service could be kept busy by a handful of clients.
LEAST_CONNECTIONS = 64


@dataclass(frozen=True, slots=True)
class SocketLimits:
    """Bounds of the HTTP server. Times are in seconds."""

    # In all; of one IPv4 address or IPv6 /64, and four times as many of a /48 (None: no such bound).
    connections: int = 1024
    per_address: int | None = 128
    # A request line and its header lines.
    head_bytes: int = 16 * 1024
    header_lines: int = 100
    url_bytes: int = 8 * 1024
    # From the connection to its first byte; from the first byte of a request to the end of its head; between requests.
    first_byte: float = 10
    head: float = 10
    idle: float = 60
    # A body has this long, and a second more for each so many bytes of it that have come; an answer likewise, for each
    # so many bytes that were to be read.
    grace: float = 10
    bytes_per_second: int = 4096
    # All answers that are not read yet, together.
    unread_bytes: int = 64 * 1024 * 1024
    # After a refusal, or an answer that did not wait for the body: how long and how much is still read and dropped, so
    # that the client can read the answer.
    linger: float = 2
    linger_bytes: int = 256 * 1024

    @property
    def sweep(self) -> float:
        """How often connections are looked at."""
        return min(0.5, self.first_byte / 4, self.head / 4, self.idle / 4, self.grace / 4)

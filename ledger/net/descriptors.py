"""Open files of this process: how many connections leave enough of them for storage."""

import resource

from ledger.errors import Misconfigured

# More are never useful, and some systems have no limit at all.
MOST_FILES = 65_536


def connections_allowed(wanted: int, *, reserved: int, least: int) -> int:
    """Raises the limit of open files as far as it goes, and says how many connections there may be so that `reserved`
    files stay free: `wanted`, or fewer. Raises Misconfigured when that would be fewer than `least`."""
    limit = _raise_limit()
    allowed = min(wanted, limit - reserved)
    if allowed < min(wanted, least):
        raise Misconfigured(
            "settings_invalid",
            f"this process may open {limit} files, and needs {reserved + least}, of which {reserved} are kept free of "
            "connections; raise the limit (ulimit -n, or LimitNOFILE)",
        )
    return allowed


def _raise_limit() -> int:
    """Up to the hard limit; the limit that holds now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return MOST_FILES if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        # Some systems have another bound beside it.
        return soft
    return wanted

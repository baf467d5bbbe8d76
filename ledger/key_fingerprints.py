"""Fingerprints of service.key, which the database keeps.

With other secrets than before a ledger would recognise none of its guests and bookings: the same stay could be reviewed
twice. So a key file that is another ledger's, or older than the last rotation of the pepper, is refused. A fingerprint
is a hash of 32 random bytes, so it does not give them away.
"""

import json
import re
from hashlib import sha256

from ledger.errors import Halted, Misconfigured
from ledger.keys import ServiceKeys

_ADVICE = (
    "With it the same stay could be reviewed twice. Bring back the service.key that this ledger was last opened with, "
    "from a backup or from another machine that runs a service on this database."
)
_NAME = re.compile("booking key|statements key|pepper p[1-9][0-9]{0,5}")
_HASH = re.compile("[0-9a-f]{64}")


def fingerprints(keys: ServiceKeys, known: str | None = None) -> str:
    """What the database keeps of `keys` from now on; `known` is what it has kept so far, None before the first time.

    New peppers join, and peppers that the operator has deleted stay known. Raises Misconfigured (`key_mismatch`) when
    `keys` are not the ones that `known` was made from, Halted (`log_damaged`) when `known` is damaged.
    """
    own = {name: _hash(name, secret) for name, secret in _secrets(keys).items()}
    if known is None:
        return _text(own)
    before = _parse(known)
    if changed := sorted(name for name in before.keys() & own.keys() if before[name] != own[name]):
        raise Misconfigured("key_mismatch", f"service.key is not this ledger's: it has another {changed[0]}. {_ADVICE}")
    newest = max(before, key=_number)
    if _number(newest) > max(map(_number, own)):
        raise Misconfigured("key_mismatch", f"service.key is older than this ledger: it lacks {newest}. {_ADVICE}")
    return _text(before | own)


def _secrets(keys: ServiceKeys) -> dict[str, bytes]:
    peppers = {f"pepper {key_id}": secret for key_id, secret in keys.peppers.by_id.items()}
    return {"booking key": keys.booking, "statements key": bytes(keys.statements), **peppers}


def _hash(name: str, secret: bytes) -> str:
    return sha256(f"staylog/fingerprint/v1/{name}\n".encode() + secret).hexdigest()


def _number(name: str) -> int:
    """Of a pepper; the other secrets have none."""
    return int(name.removeprefix("pepper p")) if name.startswith("pepper ") else 0


def _parse(text: str) -> dict[str, str]:
    try:
        before: dict[str, str] = json.loads(text)
        is_whole = {"booking key", "statements key"} < before.keys() and all(
            _NAME.fullmatch(name) and _HASH.fullmatch(kept) for name, kept in before.items()
        )
    except (ValueError, TypeError, AttributeError):
        is_whole = False
    if not is_whole:
        what = "the fingerprints of service.key in the table setting are damaged: bring that row back"
        raise Halted("log_damaged", what)
    return before


def _text(own: dict[str, str]) -> str:
    return json.dumps(own, sort_keys=True)

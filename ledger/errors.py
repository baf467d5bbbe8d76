"""Every refusal has one class and one stable code.

    StaylogError
    ├── Malformed          the bytes are not what they claim to be
    │   ├── BadJSON        malformed_json, duplicate_key, too_deep, not_utf8, number_out_of_range
    │   ├── BadBase64      base64_invalid, hash_length
    │   ├── BadDID         did_not_canonical
    │   ├── BadNote        note_malformed, vkey_malformed, checkpoint_malformed, cosignature_malformed,
    │   │                  tlog_proof_malformed, policy_malformed
    │   ├── BadTilePath    tile_path_invalid
    │   └── BadEntry       entry_too_large, entry_malformed, entry_not_canonical, entry_unknown_type, entry_invalid
    ├── BrokenRule         well-formed, but no ledger may contain it (protocol.md 3 and 4)
    ├── NotProved          a proof, signature or derived value does not hold
    └── NotStored          a tile or page that must exist is missing or damaged

A code never changes its meaning; messages may. Codes are what metrics count and what tests pin.
"""


class StaylogError(Exception):
    """Base of every refusal: `code` is for machines, the message for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Malformed(StaylogError):
    pass


class BadJSON(Malformed):
    pass


class BadBase64(Malformed):
    pass


class BadDID(Malformed):
    def __init__(self, message: str) -> None:
        super().__init__("did_not_canonical", message)


class BadNote(Malformed):
    pass


class BadTilePath(Malformed):
    def __init__(self, message: str) -> None:
        super().__init__("tile_path_invalid", message)


class BadEntry(Malformed):
    pass


class BrokenRule(StaylogError):
    pass


class NotProved(StaylogError):
    pass


class NotStored(StaylogError):
    def __init__(self, message: str) -> None:
        super().__init__("not_stored", message)

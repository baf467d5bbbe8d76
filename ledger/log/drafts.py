"""Drafts: what is to become an entry. Everything but its time, which the sequencer gives at integration."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from ledger.canon import base64, jcs, multikey, strict_json
from ledger.errors import BadEntry, Malformed
from ledger.log.entries import MEMBERS, VRP_ARTIFACT, Entry, make_entry, parse_entry
from ledger.log.openings import Opening, commitment, is_blank

# Written by the log itself, about itself.
OWN_TYPES = {"genesis", "map_head"}
# Readers know it, so that they need not be replaced when search is built; until then no ledger writes one.
UNWRITTEN = "index_head"

_ANY_TIME = "2000-01-01T00:00:00Z"
_AT = b'"at":"%s"' % _ANY_TIME.encode()


@dataclass(frozen=True, slots=True)
class Author:
    """By what a review's guest and booking are known again, as keys that are no part of the log.

    Nobody who has one of `bookings` already may have it again. Whoever has one of `guests` already is marked as a
    repeated guest. Another guest with the same `stay` is a conflict, of which an entry tells, with the commitment
    `booking`; so is told that a denial was contradicted, which is known by one of `denials`. All keys are kept, those
    under older secrets too: a service that has not heard of a new one yet must know the guest again.
    """

    bookings: tuple[bytes, ...] = ()
    guests: tuple[bytes, ...] = ()
    # None where nothing but the guest's word shows the stay: that contradicts nobody.
    stay: bytes | None = None
    denials: tuple[bytes, ...] = ()
    booking: str | None = None
    # The index of the newest issuer entry when the issuers were found to be trusted; None where none is needed.
    trusted_at: int | None = None

    @property
    def keys(self) -> tuple[bytes, ...]:
        return (*self.bookings, *self.guests, *((self.stay,) if self.stay is not None else ()))


@dataclass(frozen=True, slots=True)
class Feedback:
    """Private words, sealed to the host's key of the name `method`; kept until the day `forget_on`."""

    sealed: bytes
    method: str
    forget_on: str


@dataclass(frozen=True, slots=True)
class Draft:
    """`members` are the entry's, but for `at`. `opening` is the text that a review or response commits to, where it may
    be served; `pinned` the list of keys, in JCS, whose hash an issuer entry has; `salt` opens the commitment that is
    for the speaker alone, `beside` is what else the receipt has, sealed. A second draft with the same `key` is a
    repetition: it gets the entry of the first."""

    type: str
    members: Mapping[str, Any]
    # The entry's bytes at `_ANY_TIME`.
    form: bytes
    opening: Opening | None = None
    key: bytes | None = None
    pinned: bytes | None = None
    salt: bytes | None = None
    author: Author | None = None
    beside: bytes | None = None
    feedback: Feedback | None = None

    @property
    def most_entries(self) -> int:
        """How many entries it may become: what an author says, that it is in conflict, and that it contradicts."""
        return 1 if self.author is None else 3

    def trusted(self, at: int) -> "Draft":
        """The same, after the author's issuer was found to be trusted once more."""
        return replace(self, author=self.author and replace(self.author, trusted_at=at))

    def at(self, time: str, *, repeat: bool = False) -> Entry:
        """The entry, of a guest who has reviewed the host before if it is a `repeat`. Its members were checked when the
        draft was made; these two change nothing about them."""
        if self.type == VRP_ARTIFACT:
            return parse_entry(self.form)
        # No text in an entry has a bare quotation mark, so this is the member and nothing else.
        data = self.form.replace(_AT, b'"at":"%s"' % time.encode(), 1)
        members = {**self.members, "at": time}
        if repeat:
            data = data.replace(b'"repeat":false', b'"repeat":true', 1)
            members["repeat"] = True
        return Entry(data, self.type, members)


def make_draft(
    type_: str,
    members: Mapping[str, Any],
    *,
    opening: Opening | None = None,
    key: bytes | None = None,
    salt: bytes | None = None,
    author: Author | None = None,
    beside: bytes | None = None,
    feedback: Feedback | None = None,
) -> Draft:
    """A draft of an entry that would be well-formed, or BadEntry. The `keys` of an issuer are a list of multikeys."""
    if type_ == UNWRITTEN:
        raise BadEntry("entry_invalid", f"no ledger writes an {UNWRITTEN} entry: leave it out")
    pinned = None
    if type_ == "issuer":
        pinned = pin(members.get("keys"))
        members = {**members, "keys": base64.encode(sha256(pinned).digest())}
    checked = make_entry(type_, **members, at=_ANY_TIME)
    if opening is not None:
        committed = checked.members.get("text")
        if type_ not in ("review", "response") or committed is None:
            raise BadEntry("entry_invalid", f"a {type_} without a text commitment has no opening")
        opening.require(committed)
        if "\0" in opening.text:
            # PostgreSQL has no such character.
            raise BadEntry("entry_invalid", f"the text of a {type_} may not have U+0000")
        if is_blank(opening.text):
            raise BadEntry("entry_invalid", f"the text of a {type_} is white space only: write null for a review")
    kept = {name: value for name, value in checked.members.items() if name != "at"}
    return Draft(type_, kept, checked.data, opening, key, pinned, salt, author, beside, feedback)


def pin(keys: Any) -> bytes:
    """What an issuer entry has the hash of: JCS of the sorted list of multikeys."""
    if not isinstance(keys, list) or not keys or not all(isinstance(key, str) for key in keys):
        raise BadEntry("entry_invalid", "issuer.keys: a list of multikeys expected, of which the entry gets the hash")
    for key in keys:
        try:
            multikey.decode(key)
        except Malformed as error:
            raise BadEntry("entry_invalid", f"issuer.keys: {error}") from None
    return jcs.dumps(sorted(set(keys)))


def artifact_draft(digest: bytes) -> Draft:
    """A VRP artifact by the SHA-256 of its bytes; the same artifact again is the same leaf."""
    data = b"sha256:" + digest.hex().encode()
    parse_entry(data)
    return Draft(VRP_ARTIFACT, {}, data, key=b"vrp " + digest)


def parse_draft(line: bytes | str, new_salt: bytes) -> Draft:
    """A draft from one JSON object as `staylog log add` takes them: an entry without `at`.

    Where an entry has the commitment of a text, a draft may have the text itself, as {"text": ..., "salt": ...};
    without a salt it gets `new_salt`. Where an issuer entry has a hash, the draft has the list of keys.
    """
    members = strict_json.loads(line)
    if not isinstance(members, dict):
        raise BadEntry("entry_malformed", "a JSON object expected")
    type_, version = members.pop("type", None), members.pop("v", None)
    if not isinstance(type_, str) or type_ not in MEMBERS or type(version) is not int or version != 1:
        raise BadEntry("entry_unknown_type", f"no entry has the type {str(type_)[:40]!r} and version {version!r}")
    if type_ in OWN_TYPES:
        raise BadEntry("entry_invalid", f"a {type_} entry is written by the log itself")
    if "at" in members:
        raise BadEntry("entry_invalid", "leave out `at`: the log gives an entry its time when it takes it in")
    opening = None
    if isinstance(members.get("text"), dict):
        try:
            opening = Opening.parse({"salt": base64.encode(new_salt), **members["text"]})
        except Malformed as error:
            raise BadEntry("entry_invalid", f"{type_}.text: {error}") from None
        members["text"] = commitment(opening.salt, opening.text.encode())
    return make_draft(type_, members, opening=opening)

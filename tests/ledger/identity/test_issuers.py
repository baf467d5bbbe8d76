"""Trusted issuers: the state is the fold of entries, and keys are believed by their hash only."""

from hashlib import sha256
from typing import Any

import pytest
from sqlalchemy import delete, insert, update

from ledger.canon import base64, jcs, multikey
from ledger.errors import BadEntry, Malformed, Misconfigured, NotAccepted, NotStored
from ledger.folder import open_ledger
from ledger.identity.issuers import Issuer, Registries, Registry, distrust, trust
from ledger.log.drafts import parse_draft
from ledger.store import tables
from tests.identities import IDV, ISSUER, THIEF, Speaker, credential, judge
from tests.ledger.canon.test_ed25519 import did_jwk
from tests.running import Running, Writer

SECOND = Speaker(8, IDV, "/keys/2")


def change(running: Running, draft: Any) -> Issuer:
    assert draft is not None
    [added] = running.add(draft)
    assert not added.repeated
    known = running.ledger.issuers().get(draft.members["role"], draft.members["issuer"])
    assert known is not None
    assert (known.index, known.at) == (added.index, added.entry.at)
    return known


def test_every_change_is_an_entry(running: Running) -> None:
    def registry() -> Registry:
        return running.ledger.issuers()

    added = change(running, trust(registry(), "guest", IDV, [ISSUER.multikey], "identity_verified"))
    assert (added.status, added.keys, added.max_idv_level) == ("trusted", (ISSUER.multikey,), "identity_verified")
    assert registry().get("host", IDV) is None
    more = change(running, trust(registry(), "guest", IDV, [SECOND.multikey], None))
    assert more.keys == tuple(sorted((ISSUER.multikey, SECOND.multikey)))
    assert more.max_idv_level == "identity_verified"
    raised = change(running, trust(registry(), "guest", IDV, [], "payment_verified"))
    assert (raised.keys, raised.max_idv_level) == (more.keys, "payment_verified")
    assert trust(registry(), "guest", IDV, [ISSUER.multikey], "payment_verified") is None
    gone = change(running, distrust(registry(), "guest", IDV, None))
    assert (gone.status, gone.keys, gone.since) == ("removed", more.keys, None)
    back = change(running, trust(registry(), "guest", IDV, [SECOND.multikey], None))
    assert (back.status, back.keys, back.max_idv_level) == ("trusted", (SECOND.multikey,), None)
    lost = change(running, distrust(registry(), "guest", IDV, "2026-05-01T00:00:00Z"))
    assert (lost.status, lost.since) == ("compromised", "2026-05-01T00:00:00Z")
    assert list(running.reopen().issuers()) == [lost]
    assert running.fsck().findings == []


def test_a_credential_counts_while_its_issuer_is_trusted(running: Running) -> None:
    document = credential()

    def verdict() -> str:
        try:
            judge(document, trust=running.ledger.issuers())
        except NotAccepted as refusal:
            return refusal.code
        return "accepted"

    assert verdict() == "issuer_not_trusted"
    change(running, trust(running.ledger.issuers(), "guest", IDV, [SECOND.multikey], None))
    assert verdict() == "proof_invalid"
    change(running, trust(running.ledger.issuers(), "guest", IDV, [ISSUER.multikey], None))
    assert verdict() == "accepted"
    change(running, distrust(running.ledger.issuers(), "guest", IDV, "2026-05-01T00:00:00Z"))
    assert verdict() == "issuer_not_trusted"


def test_compromised_keys_are_not_pinned_again(running: Running) -> None:
    change(running, trust(running.ledger.issuers(), "guest", IDV, [ISSUER.multikey], None))
    change(running, distrust(running.ledger.issuers(), "guest", IDV, "2026-05-01T00:00:00Z"))
    registry = running.ledger.issuers()
    for role, issuer in (("guest", IDV), ("host", "https://other.example")):
        with pytest.raises(Misconfigured) as refused:
            trust(registry, role, issuer, [ISSUER.multikey], None)
        assert refused.value.code == "issuer_key_compromised"
    assert change(running, trust(registry, "guest", IDV, [SECOND.multikey], None)).keys == (SECOND.multikey,)


def test_of_two_changes_at_once_one_happens(running: Running) -> None:
    """The second would undo the first without having seen it."""
    registry = running.ledger.issuers()
    first = trust(registry, "guest", IDV, [ISSUER.multikey], None)
    second = trust(registry, "guest", IDV, [SECOND.multikey], None)
    assert first is not None
    assert second is not None
    assert not running.add(first)[0].repeated
    assert running.add(second)[0].repeated
    known = running.ledger.issuers().get("guest", IDV)
    assert known is not None
    assert known.keys == (ISSUER.multikey,)


@pytest.mark.parametrize(
    ("issuer", "keys", "code"),
    [
        (IDV, [], "issuer_key_missing"),
        (IDV, ["z6Mk"], "key_not_acceptable"),
        ("did:web:idv.example", [], "issuer_key_missing"),
        (IDV, [multikey.encode_secret(ISSUER.key)], "key_not_acceptable"),
        (THIEF.did, [ISSUER.multikey], "issuer_key_foreign"),
        ("http://idv.example", [ISSUER.multikey], "issuer_invalid"),
        ("did:web:IDV.example", [ISSUER.multikey], "issuer_invalid"),
        (IDV, [Speaker(seed).multikey for seed in range(10, 27)], "issuer_keys_many"),
    ],
)
def test_what_cannot_be_trusted_is_explained(issuer: str, keys: list[str], code: str) -> None:
    with pytest.raises((Misconfigured, Malformed)) as refused:
        trust(Registry([]), "guest", issuer, keys, None)
    assert refused.value.code == code
    assert "z3u2" not in refused.value.message


@pytest.mark.parametrize("name", [THIEF.did, did_jwk(THIEF.public)])
def test_a_did_with_its_key_in_its_name_needs_no_other(name: str) -> None:
    draft = trust(Registry([]), "host", name, [], None)
    assert draft is not None
    assert draft.pinned == jcs.dumps([THIEF.multikey])
    assert trust(Registry([]), "host", name, [THIEF.multikey], None) == draft


SINCE = "2026-05-01T00:00:00Z"


@pytest.mark.parametrize(
    ("status", "known_since", "since"),
    [("removed", None, None), ("compromised", SINCE, None), ("compromised", SINCE, SINCE)],
)
def test_nobody_is_removed_twice(status: str, known_since: str | None, since: str | None) -> None:
    gone = Registry([Issuer("guest", IDV, status, (ISSUER.multikey,), since=known_since)])
    with pytest.raises(Misconfigured) as refused:
        distrust(gone, "guest", IDV, since)
    assert refused.value.code == "issuer_already"


def test_who_was_never_trusted_is_not_removed() -> None:
    with pytest.raises(Misconfigured) as refused:
        distrust(Registry([]), "guest", IDV, None)
    assert refused.value.code == "issuer_unknown"


def test_who_was_removed_may_turn_out_to_be_compromised() -> None:
    removed = Registry([Issuer("guest", IDV, "removed", (ISSUER.multikey,))])
    assert distrust(removed, "guest", IDV, SINCE).members["action"] == "compromised"
    with pytest.raises(BadEntry):
        distrust(removed, "guest", IDV, "yesterday")


def test_a_compromised_key_counts_nowhere() -> None:
    """Not in the other role, not of another issuer, and not when that one gets a new key."""
    both = (ISSUER.multikey, SECOND.multikey)
    known = [
        Issuer("guest", IDV, "trusted", (ISSUER.multikey,)),
        Issuer("host", IDV, "trusted", (ISSUER.multikey,)),
        Issuer("host", "https://other.example", "trusted", both),
        Issuer("guest", IDV, "compromised", (ISSUER.multikey,), since=SINCE),
    ]
    registry = Registry(known)
    with pytest.raises(NotAccepted) as refused:
        judge(credential("host"), "host", trust=registry)
    assert refused.value.code == "issuer_not_trusted"
    assert registry.keys("host", "https://other.example") == [SECOND.public]
    more = trust(registry, "host", IDV, [SECOND.multikey], None)
    assert more is not None
    assert more.pinned == jcs.dumps([SECOND.multikey])


def test_what_another_process_has_changed_counts_at_once(running: Running) -> None:
    """Nobody has told this one of it, and nothing follows the log here."""
    other = open_ledger(running.settings, clock=running.clock)
    draft = trust(other.issuers(), "guest", IDV, [ISSUER.multikey], None)
    assert draft is not None
    other.sequencer.append([draft])
    assert running.ledger.registries.newest().keys("guest", IDV) == [ISSUER.public]
    removal = distrust(other.issuers(), "guest", IDV, None)
    assert removal is not None
    other.sequencer.append([removal])
    with pytest.raises(NotAccepted, match="removed"):
        running.ledger.registries.newest().keys("guest", IDV)
    other.close()


def test_keys_beside_an_entry_are_believed_by_their_hash(running: Running) -> None:
    added = change(running, trust(running.ledger.issuers(), "guest", IDV, [ISSUER.multikey], None))
    forged = jcs.dumps([THIEF.multikey])
    with running.ledger.store.write() as connection:
        connection.execute(update(tables.issuer_keys).values(keys=forged))
    with pytest.raises(NotStored):
        Registries(running.ledger.reader).newest()
    assert running.fsck().findings == [f"the keys that entry {added.index} pins are not stored, or are others"]


def test_keys_beside_another_entry_are_not_read(running: Running) -> None:
    with running.ledger.store.write() as connection:
        connection.execute(insert(tables.issuer_keys).values(idx=0, keys=b"[]"))
    with pytest.raises(NotStored):
        running.ledger.issuers()


def test_missing_and_needless_keys_are_found(running: Running, writer: Writer) -> None:
    added = change(running, trust(running.ledger.issuers(), "guest", IDV, [ISSUER.multikey], None))
    [review] = running.add(writer.review())
    with running.ledger.store.write() as connection:
        connection.execute(delete(tables.issuer_keys))
        for index in (0, review.index):
            connection.execute(insert(tables.issuer_keys).values(idx=index, keys=b"[]"))
    assert running.fsck().findings == [
        "keys are stored for entry 0, which is not one of an issuer",
        f"the keys that entry {added.index} pins are not stored, or are others",
        f"keys are stored for entry {review.index}, which is not one of an issuer",
    ]


def test_an_entry_by_hand_names_its_keys(running: Running) -> None:
    """`staylog log add` takes the list, as it takes a text."""
    line = (
        '{"type":"issuer","v":1,"role":"host","issuer":"https://idv.example","action":"trusted","keys":["%s","%s"],'
        '"max_idv_level":null,"since":null}'
    )
    keys = sorted((ISSUER.multikey, SECOND.multikey))
    draft = parse_draft(line % (keys[1], keys[0]), bytes(32))
    assert draft.members["keys"] == base64.encode(sha256(jcs.dumps(keys)).digest())
    assert change(running, draft).keys == tuple(keys)
    for wrong in ("[]", '"' + "A" * 43 + '="', '["z6Mk"]', "[1]", "null"):
        with pytest.raises(BadEntry):
            parse_draft(line.replace('["%s","%s"]', wrong), bytes(32))

"""What is kept of a guest, against the definition by another library; and that it leads nowhere else."""

import asyncio
import hmac
import os
from hashlib import sha256
from itertools import combinations

import pytest
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import Unavailable
from ledger.identity.guestref import GuestReferences, guest_ref, person, prefixed
from ledger.keys import Peppers
from tests.waiting import refused_at_once

PEPPER = bytes([7] * 32)
GUEST = "did:key:z6Mko9hTggMwjSTEaJaPUfE6tqcy2xvU6BnNq3e3o8qVBiyH"
HOST = "did:web:cottage.example"


def lp(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def mac(key: bytes, *parts: bytes) -> bytes:
    return hmac.new(key, lp(*parts), sha256).digest()


def defined_reference(key_id: str, pepper: bytes, host: str, guest: str) -> str:
    """The design, written out again with another Argon2."""
    salt = mac(pepper, b"staylog/guest-salt/v1", host.encode())[:16]
    argon = Argon2id(salt=salt, length=32, iterations=2, lanes=1, memory_cost=19456)
    inner = argon.derive(lp(b"staylog/guest-ref/v1", guest.encode()))
    return f"gr1:{key_id}:{mac(pepper, b'staylog/guest-ref-outer/v1', inner).hex()}"


def defined_person(pepper: bytes, host: str, issuer: str, issuer_guest_id: str) -> bytes:
    return mac(pepper, b"staylog/person/v1", host.encode(), issuer.encode(), issuer_guest_id.encode())


def test_a_reference_is_as_the_design_defines_it() -> None:
    made = guest_ref("p1", PEPPER, HOST, GUEST)
    assert made == defined_reference("p1", PEPPER, HOST, GUEST)
    # Pinned: guests must be known again by later versions.
    assert made == "gr1:p1:5aa42cb2a8f1c10bf13d7ac3689ff6f8e0efe04ed9619e8416aeb667b493256b"


def test_a_person_is_as_the_design_defines_it() -> None:
    parts = (PEPPER, HOST, "https://idv.example", "ig-55")
    assert person(*parts) == defined_person(*parts)


def test_references_differ_by_host_guest_and_pepper() -> None:
    found = {
        guest_ref("p1", pepper, host, guest).rpartition(":")[2]
        for pepper in (PEPPER, bytes(32))
        for host in (HOST, "did:web:harbour.example")
        for guest in (GUEST, "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK")
    }
    assert len(found) == 8


def test_persons_differ_by_each_part() -> None:
    cases = [
        person(*parts)
        for parts in (
            (PEPPER, HOST, "https://idv.example", "1"),
            (bytes(32), HOST, "https://idv.example", "1"),
            (PEPPER, HOST + "x", "https://idv.example", "1"),
            (PEPPER, HOST, "https://idv.example1", ""),
            (PEPPER, HOST, "https://idv.example", "2"),
        )
    ]
    assert all(one != other for one, other in combinations(cases, 2))


@given(st.lists(st.binary(max_size=5), max_size=4), st.lists(st.binary(max_size=5), max_size=4))
def test_no_two_lists_of_parts_give_the_same_bytes(one: list[bytes], other: list[bytes]) -> None:
    assert (prefixed(*one) == prefixed(*other)) == (one == other)


def test_after_a_rotation_a_guest_is_known_again() -> None:
    """The newest pepper first; what was made before the rotation is among the rest."""
    before, after = (
        GuestReferences(Peppers({key_id: bytes([number] * 32) for number, key_id in enumerate(ids)}))
        for ids in (["p1"], ["p1", "p2"])
    )
    [old], [new, again] = (asyncio.run(each.guest_refs(HOST, GUEST)) for each in (before, after))
    assert again == old
    assert new.startswith("gr1:p2:")
    assert new.rpartition(":")[2] != old.rpartition(":")[2]
    assert after.persons(HOST, "https://idv.example", "1")[1:] == before.persons(HOST, "https://idv.example", "1")


@pytest.mark.parametrize("spelled", [GUEST + "#key", GUEST + " "])
def test_other_spellings_are_other_guests(spelled: str) -> None:
    assert guest_ref("p1", PEPPER, HOST, spelled) != guest_ref("p1", PEPPER, HOST, GUEST)


def test_beyond_the_queue_callers_are_told_to_come_back() -> None:
    references = GuestReferences(Peppers({"p1": PEPPER}), cores=1, waiting_per_core=0)
    with references._places:
        refused = refused_at_once(lambda: asyncio.run(references.guest_refs(HOST, GUEST)))
    assert (type(refused), refused.code) == (Unavailable, "busy")
    assert asyncio.run(references.guest_refs(HOST, GUEST)) == [guest_ref("p1", PEPPER, HOST, GUEST)]


def test_as_many_are_made_at_once_as_there_are_cores() -> None:
    references = GuestReferences(Peppers({"p1": PEPPER}))
    cores = os.cpu_count() or 1
    assert references._threads._max_workers == cores
    assert references._places._places._value == cores + 32 * cores

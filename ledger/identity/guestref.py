"""What is kept of a guest: two values per host that lead nowhere else (design: guest privacy; RFC-005 9.2).

`guest_ref` tells whether the same DID has reviewed this host before, `person` whether the same person has, by the
reference that the credential's issuer has of them. Neither can be compared across hosts, nor computed without the
pepper, which is never in the database; Argon2id makes trying many DIDs dear even for who has both.
"""

import hmac
import os
from asyncio import get_running_loop
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

from argon2.low_level import Type, hash_secret_raw

from ledger.keys import Peppers
from ledger.turns import Places

MEMORY_KIB = 19456
PASSES = 2


def prefixed(*parts: str | bytes) -> bytes:
    """LP: each part after its length in 4 bytes, so that no two lists of parts give the same bytes."""
    data = [part.encode() if isinstance(part, str) else part for part in parts]
    return b"".join(len(part).to_bytes(4) + part for part in data)


def guest_ref(key_id: str, pepper: bytes, host_did: str, guest_did: str) -> str:
    salt = _mac(pepper, "staylog/guest-salt/v1", host_did)[:16]
    secret = prefixed("staylog/guest-ref/v1", guest_did)
    inner = hash_secret_raw(
        secret, salt, time_cost=PASSES, memory_cost=MEMORY_KIB, parallelism=1, hash_len=32, type=Type.ID
    )
    return f"gr1:{key_id}:{_mac(pepper, 'staylog/guest-ref-outer/v1', inner).hex()}"


def person(pepper: bytes, host_did: str, issuer: str, issuer_guest_id: str) -> bytes:
    return _mac(pepper, "staylog/person/v1", host_did, issuer, issuer_guest_id)


class GuestReferences:
    """References under the current pepper first, then under the older ones: a guest is known again after a rotation.

    Argon2 takes nearly all the CPU of a review. It runs outside of the interpreter's lock, on as many cores as there
    are; beyond the queue callers are told to come back.
    """

    def __init__(self, peppers: Peppers, *, cores: int | None = None, waiting_per_core: int = 32) -> None:
        self._peppers = peppers
        cores = cores or os.cpu_count() or 1
        self._places = Places("a guest reference", cores + waiting_per_core * cores)
        # One for each core: it keeps its 19 MiB, and the next reference finds them where the caches have them.
        self._threads = ThreadPoolExecutor(cores, thread_name_prefix="argon2")

    async def guest_refs(self, host_did: str, guest_did: str) -> list[str]:
        run, refs = get_running_loop().run_in_executor, []
        for key_id, pepper in self._peppers:
            with self._places:
                refs.append(await run(self._threads, guest_ref, key_id, pepper, host_did, guest_did))
        return refs

    def persons(self, host_did: str, issuer: str, issuer_guest_id: str) -> list[bytes]:
        return [person(pepper, host_did, issuer, issuer_guest_id) for _, pepper in self._peppers]


def _mac(key: bytes, *parts: str | bytes) -> bytes:
    return hmac.new(key, prefixed(*parts), sha256).digest()

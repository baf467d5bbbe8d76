"""did:web over real sockets: one fetch for many, kept and not kept, and what is remembered of hosts."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha512
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ledger.canon import base58
from ledger.canon.times import format_time
from ledger.errors import NotAccepted, NotFetched, Unavailable
from ledger.identity.archive import MOST_KEYS, KeyArchive
from ledger.identity.did import document_url
from ledger.identity.resolution import NEW_PER_DOMAIN, HostKeys, Resolution
from ledger.net.fetch import Fetcher
from ledger.store.engine import Store
from ledger.store.limiter import Limiter
from ledger.store.rows import run
from ledger.store.schema import migrate
from tests.identities import GUEST, NOW, Speaker, did_document
from tests.ledger.canon.test_ed25519 import SMALL, did_jwk
from tests.network import Neighbourhood
from tests.running import SetClock

NAME = "did:web:cottage.example"
URL = "https://cottage.example/.well-known/did.json"
OLD, NEW = Speaker(3, NAME, "#key-1"), Speaker(13, NAME, "#key-2")


class World:
    """A resolution with an archive, on either engine, and a clock."""

    def __init__(self, store: Store, outside: Neighbourhood) -> None:
        self.store = store
        self.outside = outside
        self.clock = SetClock()
        self.archive = KeyArchive(store, self.clock)
        self.fetcher = Fetcher("staylog/test", outside.development)
        self.resolution = self.new()

    def new(self, **options: Any) -> Resolution:
        """As after a restart: nothing is kept."""
        self.resolution = Resolution(self.fetcher, self.clock, self.archive, **options)
        return self.resolution

    def publish(self, *speakers: Speaker, **options: Any) -> None:
        self.outside.put(document_url(speakers[0].did), did_document(*speakers), **options)

    def host(self) -> HostKeys:
        """Asked for, and remembered as one that is a host."""

        async def ask() -> HostKeys:
            keys = await self.resolution.host(NAME)
            await self.resolution.remember(keys)
            # As they are remembered by then.
            return await self.resolution.host(NAME)

        return asyncio.run(ask())

    @property
    def asked(self) -> int:
        return self.outside.requests[URL]


@contextmanager
def world_on(url: str, outside: Neighbourhood) -> Iterator[World]:
    store = Store(url)
    migrate(store)
    yield World(store, outside)
    store.close()


@pytest.fixture
def world(database_url: str, neighbourhood: Neighbourhood) -> Iterator[World]:
    with world_on(database_url, neighbourhood) as made:
        yield made


def outcome(question: Coroutine[Any, Any, Any]) -> Any:
    """What comes, or its code."""
    try:
        return asyncio.run(question)
    except (NotAccepted, NotFetched, Unavailable) as refused:
        return refused.code


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("did:web:cottage.example", "https://cottage.example/.well-known/did.json"),
        ("did:web:a.example:hosts:7", "https://a.example/hosts/7/did.json"),
        ("did:web:a.example:b%20c", "https://a.example/b%20c/did.json"),
        ("did:web:a.example%3A8443", "https://a.example:8443/.well-known/did.json"),
    ],
)
def test_where_a_document_is(name: str, url: str) -> None:
    assert document_url(name) == url


def test_the_keys_of_a_host(world: World) -> None:
    world.publish(OLD)
    keys = world.host()
    assert keys.now() == {OLD.method: OLD.public}
    assert keys.shares([OLD.public, NEW.public])
    assert not keys.shares([NEW.public])
    assert asyncio.run(world.resolution.host(GUEST.did)).now() == {GUEST.method: GUEST.public}


def test_a_host_below_a_path(world: World) -> None:
    host = Speaker(3, "did:web:a.example:hosts:7", "#key-1")
    world.publish(host)
    assert asyncio.run(world.resolution.guest(host.did)) == {host.method: host.public}


def test_a_document_is_kept_for_five_minutes(world: World) -> None:
    world.publish(OLD)
    world.host()
    world.publish(NEW)
    world.clock.forward(seconds=299)
    assert world.host().now() == {OLD.method: OLD.public}
    assert world.asked == 1
    world.clock.forward(seconds=1)
    assert world.host().now() == {NEW.method: NEW.public}
    assert world.asked == 2


@pytest.mark.parametrize(
    ("said", "seconds"), [("max-age=120", 120), ("no-store", 60), ("max-age=0", 60), ("public, max-age=86400", 300)]
)
def test_its_server_may_say_for_how_long_within_bounds(
    neighbourhood: Neighbourhood, tmp_path: Any, said: str, seconds: int
) -> None:
    with world_on(f"sqlite:///{tmp_path}/x.db", neighbourhood) as world:
        world.publish(OLD, cache_control=said)
        for forward, asked in ((0, 1), (seconds - 1, 1), (1, 2)):
            world.clock.forward(seconds=forward)
            world.host()
            assert world.asked == asked


def test_a_thousand_ask_at_once_and_one_is_sent(world: World) -> None:
    world.publish(OLD, delay=0.1)

    async def ask() -> list[HostKeys]:
        return await asyncio.gather(*(world.resolution.host(NAME) for _ in range(1000)))

    assert all(keys.now() == {OLD.method: OLD.public} for keys in asyncio.run(ask()))
    assert world.asked == 1
    assert world.outside.connections == 1


def test_what_failed_is_not_asked_again_for_half_a_minute(world: World) -> None:
    world.outside.host("cottage.example")
    world.outside.take_down("cottage.example")
    for seconds, wait in ((0, 30), (12, 18)):
        world.clock.forward(seconds=seconds)
        with pytest.raises(Unavailable) as refused:
            world.host().now()
        assert (refused.value.code, refused.value.retry_after) == ("host_did_unavailable", wait)
    assert outcome(world.resolution.guest(NAME)) == "guest_did_unavailable"
    world.publish(OLD)
    assert outcome(world.resolution.guest(NAME)) == "guest_did_unavailable"
    assert world.asked == 0
    world.clock.forward(seconds=18)
    assert world.host().now() == {OLD.method: OLD.public}


def test_a_domain_is_asked_for_so_many_new_hosts_and_no_more(world: World) -> None:
    """A domain has any number of DIDs, and a stranger may name them all. That harms none who was seen before, and no
    guest, for whom an issuer has vouched."""
    world.publish(OLD)
    world.host()
    limiter = Limiter(world.store, b"s" * 32, world.clock)
    resolution = world.new(limiter=limiter)
    for _ in range(NEW_PER_DOMAIN.burst):
        limiter.take(NEW_PER_DOMAIN, "cottage.example")
    stranger = Speaker(9, f"{NAME}:1", "#key-1")
    world.publish(stranger)
    with pytest.raises(Unavailable) as refused:
        asyncio.run(resolution.host(stranger.did)).now()
    assert "fetch_too_often" in refused.value.message
    # It is our own doing, and not the host's silence.
    assert refused.value.code == "busy"
    assert world.outside.requests[document_url(stranger.did)] == 0
    assert world.host().now() == {OLD.method: OLD.public}
    assert asyncio.run(resolution.guest(stranger.did)) == {stranger.method: stranger.public}
    limiter.close()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("did:web:127.0.0.1", "address_not_allowed"),
        ("did:web:2130706433", "address_not_allowed"),
        ("did:web:0x7f.1", "address_not_allowed"),
        ("did:web:localhost", "address_not_allowed"),
        ("did:web:a.example%3A8443", "address_not_allowed"),
        ("did:web:169.254.169.254", "address_not_allowed"),
    ],
)
def test_names_that_are_never_asked(world: World, name: str, code: str) -> None:
    assert outcome(world.resolution.guest(name)) == code
    with pytest.raises(NotAccepted) as refused:
        asyncio.run(world.resolution.host(name)).now()
    assert refused.value.code == code
    assert world.outside.connections == 0


def test_a_document_of_somebody_else(world: World) -> None:
    """A guest is told; a host must not get rid of its receipts in this way, so it is as if it did not answer."""
    world.outside.put(URL, did_document(Speaker(4, "did:web:other.example", "#key-1")))
    assert outcome(world.resolution.guest(NAME)) == "did_document_invalid"
    with pytest.raises(Unavailable) as refused:
        world.host().now()
    assert refused.value.code == "host_did_unavailable"


# To which key private words for a host are sealed


def x25519_of(speaker: Speaker) -> bytes:
    """The conversion by its definition (RFC 8032, section 5.1.5, and RFC 7748), by another library."""
    secret = X25519PrivateKey.from_private_bytes(sha512(bytes(speaker.key)).digest()[:32])
    return secret.public_key().public_bytes_raw()


SEAL = Speaker(21, NAME, "#seal-1")


def with_agreement(*speakers: Speaker, **changes: Any) -> dict[str, Any]:
    key = "z" + base58.encode(b"\xec\x01" + x25519_of(SEAL))
    method = {"id": SEAL.method, "type": "Multikey", "controller": NAME, "publicKeyMultibase": key, **changes}
    return did_document(*speakers, keyAgreement=[method])


def test_private_words_are_sealed_to_the_key_that_is_there_for_such(world: World) -> None:
    world.outside.put(URL, with_agreement(OLD))
    keys = world.host()
    assert keys.sealing() == (SEAL.method, x25519_of(SEAL))
    # Which signs nothing, and whose coming is no change of what does.
    assert keys.now() == {OLD.method: OLD.public}
    assert [method for method, *_ in spans(world)] == [OLD.multikey]
    world.publish(OLD)
    world.clock.forward(hours=1)
    assert world.host().sealing() == (OLD.method, x25519_of(OLD))
    assert world.archive.changed_at(NAME) is None


def test_else_to_the_first_key_by_which_the_host_signs(world: World) -> None:
    world.outside.put(URL, did_document(OLD, NEW, assertionMethod=[NEW.method, OLD.method]))
    assert world.host().sealing() == (NEW.method, x25519_of(NEW))
    world.outside.put(URL, did_document(OLD, assertionMethod=[]))
    world.clock.forward(hours=1)
    assert world.host().sealing() is None


def test_a_key_that_expires_while_the_document_is_kept(world: World) -> None:
    ends = format_time(world.clock() + timedelta(seconds=60))
    world.outside.put(URL, with_agreement(OLD, expires=ends))
    world.clock.forward(seconds=59)
    assert world.host().sealing() == (SEAL.method, x25519_of(SEAL))
    world.clock.forward(seconds=1)
    assert world.host().sealing() == (OLD.method, x25519_of(OLD))
    assert world.asked == 1


def test_nothing_is_sealed_to_a_host_that_is_down(world: World) -> None:
    """A key that it had before may be one that it lost."""
    world.outside.put(URL, with_agreement(OLD))
    world.host()
    world.outside.take_down("cottage.example")
    world.clock.forward(days=1)
    assert world.host().sealing() is None


@pytest.mark.parametrize("speaker", [GUEST, Speaker(5, did_jwk(Speaker(5).public), "#0")], ids=["did:key", "did:jwk"])
def test_a_host_whose_key_is_in_its_name(neighbourhood: Neighbourhood, tmp_path: Any, speaker: Speaker) -> None:
    with world_on(f"sqlite:///{tmp_path}/x.db", neighbourhood) as world:
        keys = asyncio.run(world.resolution.host(speaker.did))
    assert keys.sealing() == (speaker.method, x25519_of(speaker))


def test_a_key_without_a_counterpart_is_passed_over() -> None:
    weak = {f"{NAME}#weak-{number}": key for number, key in enumerate(SMALL)}
    assert HostKeys(weak).sealing() is None
    assert HostKeys({**weak, OLD.method: OLD.public}).sealing() == (OLD.method, x25519_of(OLD))


# What is remembered


def spans(world: World) -> list[tuple[str, str, str]]:
    return [(each.multikey, each.first_seen, each.last_seen) for each in world.archive.recall(NAME)]


def test_every_resolution_of_a_host_is_remembered(world: World) -> None:
    first = world.clock()
    world.publish(OLD)
    world.host()
    world.host()
    assert spans(world) == [(OLD.multikey, format_time(first), format_time(first))]
    world.clock.forward(days=3)
    world.host()
    later = world.clock()
    assert spans(world) == [(OLD.multikey, format_time(first), format_time(later))]
    assert world.archive.changed_at(NAME) is None
    world.publish(OLD, NEW)
    world.clock.forward(days=1)
    world.host()
    now = format_time(world.clock())
    assert spans(world) == [(OLD.multikey, format_time(first), now), (NEW.multikey, now, now)]
    assert world.archive.changed_at(NAME) == now


def test_a_key_that_is_gone_is_a_change_and_stays_remembered(world: World) -> None:
    world.publish(OLD, NEW)
    world.host()
    seen = format_time(world.clock())
    world.publish(NEW)
    world.clock.forward(hours=1)
    assert world.host().now() == {NEW.method: NEW.public}
    assert (OLD.multikey, seen, seen) in spans(world)
    assert world.archive.changed_at(NAME) == format_time(world.clock())


def test_a_guest_is_never_remembered(world: World) -> None:
    world.publish(OLD)
    asyncio.run(world.resolution.guest(NAME))
    assert world.archive.recall(NAME) == []
    with world.store.read() as connection:
        assert run(connection, "SELECT * FROM did_document") == []
    # Nor is who is only called a host: that is for whoever knows better to say.
    keys = asyncio.run(world.resolution.host(NAME))
    assert world.archive.recall(NAME) == []
    asyncio.run(world.resolution.remember(keys))
    assert len(world.archive.recall(NAME)) == 1


def test_a_hundred_who_wait_cause_one_entry_in_the_archive(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the one lock that all writers share."""
    world.publish(OLD)
    times, remember = [], world.archive.remember

    def counted(*what: Any) -> None:
        times.append(what)
        remember(*what)

    monkeypatch.setattr(world.archive, "remember", counted)

    async def one() -> None:
        await world.resolution.remember(await world.resolution.host(NAME))

    async def all_of_them() -> None:
        await asyncio.gather(*(one() for _ in range(100)))

    asyncio.run(all_of_them())
    asyncio.run(all_of_them())
    assert len(times) == 1


def test_a_host_with_ever_new_keys_does_not_make_us_forget_the_old_ones(world: World) -> None:
    first = {OLD.method: OLD.public}
    world.archive.remember(NAME, first, NOW)
    for number in range(MOST_KEYS + 50):
        world.archive.remember(NAME, {f"{NAME}#{number}": NEW.public}, NOW + timedelta(minutes=number))
    assert len(world.archive.recall(NAME)) == MOST_KEYS
    later = NOW + timedelta(days=1)
    world.archive.remember(NAME, first, later)
    [old] = [each for each in world.archive.recall(NAME) if each.method == OLD.method]
    assert (old.first_seen, old.last_seen) == (format_time(NOW), format_time(later))


def test_when_keys_count_for_what_was_signed_then(world: World) -> None:
    """Now: any time. Gone: as long as they were seen."""
    world.publish(OLD)
    world.host()
    seen_first = world.clock()
    world.clock.forward(days=10)
    world.host()
    seen_last = world.clock()
    world.publish(NEW)
    world.clock.forward(days=10)
    keys, day = world.host(), timedelta(days=1)
    for moment, expected in (
        (seen_first - day, []),
        (seen_first, [OLD.public]),
        (seen_first + day, [OLD.public]),
        (seen_last, [OLD.public]),
        (seen_last + timedelta(seconds=1), []),
        (world.clock(), []),
    ):
        assert keys.at(OLD.method, moment) == expected
    for moment in (seen_first - day, world.clock()):
        assert keys.at(NEW.method, moment)[:1] == [NEW.public]
    assert keys.at(f"{NAME}#key-9", seen_first) == []


def test_a_name_that_changes_its_key(world: World) -> None:
    renewed = Speaker(14, NAME, "#key-1")
    world.publish(OLD)
    world.host()
    then = world.clock()
    world.publish(renewed)
    world.clock.forward(days=1)
    assert world.host().at(OLD.method, then) == [renewed.public, OLD.public]
    assert world.host().at(OLD.method, then + timedelta(hours=1)) == [renewed.public]


def test_a_host_that_is_down_leaves_what_is_remembered(world: World) -> None:
    world.publish(OLD)
    world.host()
    then = world.clock()
    world.outside.take_down("cottage.example")
    world.clock.forward(days=1)
    keys = world.host()
    assert keys.at(OLD.method, then) == [OLD.public]
    with pytest.raises(Unavailable):
        keys.now()


def test_another_process_learns_of_a_change(world: World) -> None:
    other = KeyArchive(world.store, world.clock)
    world.publish(OLD)
    world.host()
    world.publish(NEW)
    world.clock.forward(hours=1)
    world.host()
    assert other.changed_at(NAME) is None
    version = other.version
    other.refresh()
    assert other.changed_at(NAME) == world.archive.changed_at(NAME) == format_time(world.clock())
    assert other.version == version + 1
    other.refresh()
    assert other.version == version + 1
    # And one that starts now knows.
    assert KeyArchive(world.store, world.clock).changed_at(NAME) is not None


def test_a_change_that_another_clock_saw_earlier_is_learned_too(world: World) -> None:
    other = KeyArchive(world.store, world.clock)
    late, early = NOW, NOW - timedelta(hours=2)
    other.remember("did:web:b.example", {NEW.method: NEW.public}, late)
    other.remember("did:web:b.example", {}, late)
    world.archive.refresh()
    other.remember(NAME, {OLD.method: OLD.public}, early)
    other.remember(NAME, {}, early)
    world.archive.refresh()
    assert world.archive.changed_at(NAME) == format_time(early)


def test_a_clock_that_is_set_back_shortens_no_span(world: World) -> None:
    keys = {OLD.method: OLD.public}
    world.archive.remember(NAME, keys, NOW)
    world.archive.remember(NAME, keys, NOW - timedelta(days=1))
    assert spans(world) == [(OLD.multikey, format_time(NOW), format_time(NOW))]


def test_a_clock_that_was_ahead_hides_no_change(world: World) -> None:
    other = KeyArchive(world.store, world.clock)
    far = NOW + timedelta(days=9999)
    other.remember("did:web:b.example", {NEW.method: NEW.public}, far)
    other.remember("did:web:b.example", {}, far)
    world.archive.refresh()
    other.remember(NAME, {OLD.method: OLD.public}, NOW)
    other.remember(NAME, {}, NOW)
    world.archive.refresh()
    assert world.archive.changed_at(NAME) == format_time(NOW)

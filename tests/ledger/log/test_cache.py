"""What was used last is kept, and never more than is allowed."""

from ledger.log.cache import Cache


def test_the_cache_forgets_what_was_used_longest_ago() -> None:
    cache: Cache[str, int] = Cache(4)
    for place, key in enumerate("abcd"):
        cache.put(key, place)
        assert cache.get("a") == 0
    assert [cache.get(key) for key in "abcd"] == [0, None, 2, 3]


def test_the_cache_keeps_half_of_what_it_may_and_never_more() -> None:
    cache: Cache[int, int] = Cache(10)
    for number in range(100):
        cache.put(number, number)
        kept = [old for old in range(number + 1) if old in cache._young or old in cache._old]
        assert kept[-5:] == list(range(max(0, number - 4), number + 1))
        assert len(kept) <= 10


def test_what_is_dropped_is_gone() -> None:
    cache: Cache[str, int] = Cache(2)
    cache.put("old", 1)
    cache.put("young", 2)
    cache.drop("old")
    cache.drop("young")
    cache.drop("never there")
    assert (cache.get("old"), cache.get("young")) == (None, None)

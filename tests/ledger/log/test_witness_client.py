"""What the log believes of a witness: nothing that is not signed, by its key or by our own."""

from collections.abc import Iterator

import pytest

from ledger.canon import mldsa
from ledger.errors import Malformed, NotFetched, NotProved, StaylogError
from ledger.log import witness_client
from ledger.log.add_checkpoint import SIZE_TYPE, AddCheckpoint, monitoring_path, parse_size
from ledger.log.cosignature import cosign
from ledger.log.note import Note
from ledger.log.witness_client import SKEW, Contradicted, WitnessClient
from tests.ledger.log import mldsa_witness
from tests.ledger.log.crooked import CROOK, KEY, Crook, Reply, Says, crooked, honest_line
from tests.running import Running, Writer

NOW = 1_780_315_200  # 2026-06-01T12:00:00Z, where the clock of `running` stands


@pytest.fixture
def crook() -> Iterator[Crook]:
    with crooked(lambda request: Reply(200, honest_line(request, NOW))) as made:
        yield made


@pytest.fixture
def client(running: Running, crook: Crook, writer: Writer) -> WitnessClient:
    running.add(writer.review())
    ledger = running.ledger
    return WitnessClient("w", CROOK, crook.url, ledger.verifier, ledger.reader.tree, "staylog/test")


def ask(running: Running, client: WitnessClient, old: int = 0) -> str:
    return client.cosign(running.ledger.reader.published, old, NOW)


def refused(running: Running, client: WitnessClient) -> StaylogError:
    with pytest.raises(StaylogError) as refusal:
        ask(running, client)
    return refusal.value


def test_a_cosignature_is_one_line_over_our_checkpoint(running: Running, client: WitnessClient, crook: Crook) -> None:
    published = running.ledger.reader.published
    assert ask(running, client) == honest_line(crook.asked[0], NOW)
    assert crook.asked == [AddCheckpoint(0, (), published.note)]


def test_what_it_has_is_asked_for_and_proved(running: Running, client: WitnessClient, crook: Crook) -> None:
    def says(request: AddCheckpoint) -> Reply:
        return Reply(200, honest_line(request, NOW)) if request.old == 2 else Reply(409, "2\n", SIZE_TYPE)

    crook.says = says
    assert ask(running, client)
    proof = tuple(running.ledger.reader.tree.consistency(2, 4))
    assert [(request.old, request.proof) for request in crook.asked] == [(0, ()), (2, proof)]


def test_other_lines_and_other_cosignatures_do_not_matter(
    running: Running, client: WitnessClient, crook: Crook
) -> None:
    other = "— elsewhere.example/w AAAAAAAAAAA=\n"
    crook.says = lambda request: Reply(200, other + honest_line(request, NOW) + other)
    published = running.ledger.reader.published
    assert ask(running, client) == honest_line(AddCheckpoint(0, (), published.note), NOW)


def test_a_cosignature_that_cannot_be_checked_is_not_taken(
    running: Running, crook: Crook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By ML-DSA-44 without the extra `pq`: a bad line of a known witness would make others refuse the whole note."""
    ledger = running.ledger
    client = WitnessClient("pq", mldsa_witness.WITNESS, crook.url, ledger.verifier, ledger.reader.tree, "staylog/test")
    crook.says = lambda request: Reply(200, mldsa_witness.cosign(text_of(request), NOW).line())
    assert ask(running, client).startswith(f"— {mldsa_witness.NAME} ")
    monkeypatch.setattr(mldsa, "CAN_VERIFY", False)
    assert refused(running, client).code == "cosignature_unchecked"
    crook.says = lambda _: Reply(422, "")
    assert refused(running, client).code == "log_forked"


def text_of(request: AddCheckpoint) -> str:
    return Note.parse(request.note).text


LIES: dict[str, tuple[Says, str]] = {
    "an empty answer": (lambda _: Reply(200, ""), "cosignature_invalid"),
    "no text": (lambda _: Reply(200, b"\xff\xfe"), "cosignature_invalid"),
    "no signature line": (lambda _: Reply(200, "thank you\n"), "cosignature_invalid"),
    "somebody else's": (lambda _: Reply(200, "— elsewhere.example/w AAAAAAAAAAA=\n"), "cosignature_invalid"),
    "of another tree": (
        lambda request: Reply(200, honest_line(AddCheckpoint(0, (), request.note.replace("\n4\n", "\n5\n")), NOW)),
        "cosignature_invalid",
    ),
    # By the rule for notes it would be the end of another text, over which this signature holds.
    "a blank line before it": (
        lambda request: Reply(200, "x\n\n" + cosign(f"{text_of(request)}\nx\n", CROOK.name, KEY, NOW).line()),
        "cosignature_invalid",
    ),
    "too many lines": (lambda request: Reply(200, honest_line(request, NOW) * 70), "cosignature_invalid"),
    "a second bad one": (
        lambda request: Reply(200, honest_line(request, NOW) + honest_line(request, NOW).replace("AAAA", "AAAB", 1)),
        "cosignature_invalid",
    ),
    "of last year": (lambda request: Reply(200, honest_line(request, NOW - 31_536_000)), "cosignature_time"),
    "of before": (lambda request: Reply(200, honest_line(request, NOW - SKEW - 1)), "cosignature_time"),
    "of the future": (lambda request: Reply(200, honest_line(request, NOW + SKEW + 1)), "cosignature_time"),
    "a size that is none": (lambda _: Reply(409, "many\n", SIZE_TYPE), "cosignature_refused"),
    "a size that is no text": (lambda _: Reply(409, b"\xff\n", SIZE_TYPE), "cosignature_refused"),
    "a conflict without a size": (lambda _: Reply(409, "3\n"), "cosignature_refused"),
    "a conflict without end": (lambda request: Reply(409, f"{3 - request.old}\n", SIZE_TYPE), "cosignature_refused"),
    "unreadable": (lambda _: Reply(400, "what?\n"), "cosignature_refused"),
    "a key it does not know": (lambda _: Reply(403, ""), "cosignature_refused"),
    "a log it does not know": (lambda _: Reply(404, ""), "cosignature_refused"),
    "broken": (lambda _: Reply(500, "<h1>\x1b[31m Oops</h1>"), "cosignature_refused"),
    "elsewhere": (lambda _: Reply(302, ""), "cosignature_refused"),
    "without end": (lambda _: Reply(200, "x" * 200_000), "fetch_too_large"),
}


@pytest.mark.parametrize("lie", LIES)
def test_every_lie_has_its_code(running: Running, client: WitnessClient, crook: Crook, lie: str) -> None:
    crook.says, code = LIES[lie]
    error = refused(running, client)
    assert error.code == code
    assert isinstance(error, NotFetched if code.startswith("fetch") else NotProved)
    # A refusal is shown to people, and may say what the witness said.
    assert error.message.isprintable()
    assert len(crook.asked) <= witness_client.TRIES


def test_one_that_is_down_slow_or_drips(
    running: Running, client: WitnessClient, crook: Crook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witness_client, "SECONDS", 0.2)

    def slow(request: AddCheckpoint) -> Reply:
        crook.over.wait(5)
        return Reply(200, honest_line(request, NOW))

    crook.says = slow
    assert refused(running, client).code == "fetch_timeout"
    crook.over.set()
    ledger = running.ledger
    gone = WitnessClient("w", CROOK, "http://127.0.0.1:1", ledger.verifier, ledger.reader.tree, "staylog/test")
    assert refused(running, gone).code == "fetch_unreachable"


@pytest.mark.parametrize(
    "conflict",
    [Reply(409, ""), Reply(409, "4\n"), Reply(409, "4\n", SIZE_TYPE), Reply(409, "", SIZE_TYPE), Reply(422, "")],
)
def test_another_root_at_the_same_size_is_a_fork(
    running: Running, client: WitnessClient, crook: Crook, conflict: Reply
) -> None:
    """As tlog-witness 1.0.0 says it (409, with a body or without), and as its drafts since then do (422)."""
    crook.says = lambda request: conflict if request.old == 4 else Reply(409, "4\n", SIZE_TYPE)
    for old in (0, 4):
        with pytest.raises(Contradicted) as word:
            ask(running, client, old)
        assert (word.value.code, word.value.size, word.value.shown) == ("log_forked", 4, None)


def test_a_conflict_without_a_size_from_an_older_size_is_no_fork(
    running: Running, client: WitnessClient, crook: Crook
) -> None:
    crook.says = lambda _: Reply(409, "")
    with pytest.raises(NotProved) as refusal:
        ask(running, client, 2)
    assert refusal.value.code == "cosignature_refused"


@pytest.mark.parametrize(("status", "code"), [(409, "log_behind"), (422, "log_forked")])
def test_whoever_says_that_it_has_seen_more_must_show_it(
    running: Running, client: WitnessClient, crook: Crook, writer: Writer, status: int, code: str
) -> None:
    """By a checkpoint that our own key signed, and that is not of our tree."""
    here = running.ledger.reader.published
    crook.says = lambda _: Reply(status, "1000\n", SIZE_TYPE)
    word = refused(running, client)
    assert isinstance(word, Contradicted)
    assert (word.code, word.shown) == (code, None)
    for shows in (Reply(404, ""), Reply(200, b"\xff"), Reply(200, "nothing\n"), Reply(200, here.note), Reply(500, "")):
        crook.shows = shows
        error = client.proved(word, here.size)
        assert (error.code, error.shown) == (code, None)
        assert "shows nothing that proves it" in error.message
    running.add(writer.review())
    larger = running.ledger.reader.published
    crook.shows = Reply(200, larger.note)
    error = client.proved(word, here.size)
    assert error.code == "log_behind"
    assert error.shown is not None
    assert (error.shown.size, error.shown.root) == (larger.size, larger.root)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "`old SIZE`"),
        ("old 1\n", "`old SIZE`"),
        ("old 01\n\nnote", "`old SIZE`"),
        ("old -1\n\nnote", "`old SIZE`"),
        (f"old {1 << 63}\n\nnote", "`old SIZE`"),
        ("OLD 1\n\nnote", "`old SIZE`"),
        ("old 1\nAAAA\n\nnote", "32 bytes"),
        ("old 1\nnothing\n\nnote", "base64"),
        ("old 1\n" + f"{'A' * 43}=\n" * 64 + "\nnote", "at most 63"),
    ],
)
def test_requests_that_cannot_be_read(text: str, part: str) -> None:
    with pytest.raises(Malformed, match=part) as refusal:
        AddCheckpoint.parse(text)
    assert refusal.value.code == "request_malformed"


def test_requests_are_read_as_they_are_written() -> None:
    request = AddCheckpoint(3, (b"\1" * 32, b"\2" * 32), "a\n3\nb\n\n— a AAAA\n")
    assert AddCheckpoint.parse(str(request)) == request
    assert monitoring_path("a").endswith("/checkpoint")
    assert parse_size("12\n") == 12
    for text in ("", "12", "012\n", "12\n\n", "twelve\n", "9999999999999999\n"):
        with pytest.raises(Malformed):
            parse_size(text)


def test_only_our_own_signature_is_sent(running: Running, client: WitnessClient, crook: Crook) -> None:
    """What other witnesses signed is nothing to this one."""
    published = running.ledger.reader.published
    line = ask(running, client)
    note = Note.parse(published.note + line)
    client.cosign(type(published)(*published.row, str(note)), 0, NOW)
    assert crook.asked[0] == crook.asked[1]

"""Witness policies in both verifiers of answers: they agree on every policy, every set of cosigners, every answer."""

import json
import re
import sys
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl.signing import SigningKey

from audits import standalone_verify
from audits.report import Report
from audits.verify import verify_answer, verify_pages
from ledger.canon import base64, mldsa
from ledger.cli import main
from ledger.errors import NotProved, StaylogError
from ledger.log.cosignature import cosign
from ledger.log.note import COSIGNATURE, ED25519, ML_DSA_44, Note, Signature, Verifier
from ledger.log.policy import Policy
from tests.ledger.log import mldsa_witness, worked_example
from tests.ledger.log import test_witnessing as witnessing
from tests.world import HOSTS, KEY, LOG, ORIGIN, World

HOST = HOSTS[0]
TIME = 1_771_147_800
LEDGER = World(7, HOSTS[:2]).grow(6).log
NOTE = LEDGER.answer(HOST)["proof"]["checkpoint"]
TEXT = Note.parse(NOTE).text
# A full answer, an aggregate one, and pages that together are a full one.
ANSWERS = (
    [LEDGER.answer(HOST)],
    [LEDGER.answer(HOST, "aggregate")],
    [LEDGER.answer(HOST, "page", start=0, count=3), LEDGER.answer(HOST, "page", start=3, count=500)],
)

KEYS = [SigningKey(bytes([number]) * 32) for number in range(20, 26)]
WITNESSES = [
    Verifier(f"witness.example/{number}", COSIGNATURE, bytes(key.verify_key)) for number, key in enumerate(KEYS)
]
COSIGNED = [cosign(TEXT, witness.name, key, TIME) for witness, key in zip(WITNESSES, KEYS, strict=True)]
W0, W1, W2 = WITNESSES[:3]
THREE = f"log {LOG}\nwitness a {W0}\nwitness b {W1}\nwitness c {W2}\ngroup two 2 a b c\nquorum two\n"


def noted(note: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda answer: {**answer, "proof": {**answer["proof"], "checkpoint": note}}


def with_lines(*signatures: Signature) -> str:
    return str(NOTE) + "".join(signature.line() for signature in signatures)


def library(answers: Sequence[dict[str, Any]], policy: str) -> Report | None:
    data = [json.dumps(answer).encode() for answer in answers]
    try:
        if len(data) == 1:
            return verify_answer(data[0], LOG, HOST, policy=Policy.parse(policy))
        return verify_pages(data, LOG, HOST, policy=Policy.parse(policy))
    except StaylogError:
        return None


def standalone(answers: Sequence[dict[str, Any]], policy: str) -> list[str] | None:
    try:
        lines: list[str] = standalone_verify.verify([json.dumps(a) for a in answers], str(LOG), HOST, None, policy)
    except Exception:
        return None
    return lines


def agreement(policy: str, note: str) -> tuple[int, int] | None:
    """How many of how many witnesses agree, as both verifiers say of every kind of answer; None if all refuse."""
    verdicts: set[tuple[int, int] | None] = set()
    for answers in ANSWERS:
        noted_answers = [noted(note)(answer) for answer in answers]
        report, lines = library(noted_answers, policy), standalone(noted_answers, policy)
        verdicts.add(None if report is None else report.witnesses)
        said = [re.match(r"proved      (\d+) of (\d+) witnesses of the policy agree, ", line) for line in lines or ()]
        counts = [(int(match[1]), int(match[2])) for match in said if match]
        assert len(counts) == (lines is not None)
        verdicts.add(counts[0] if counts else None)
    assert len(verdicts) == 1, verdicts
    return verdicts.pop()


def cases(test: Any) -> Any:
    """The parameters of a test of the library's policies."""
    (mark,) = test.pytestmark
    return mark.args[1]


class TestTheLibrarysCases:
    BY = {
        worked_example.WITNESS.name: cosign(TEXT, worked_example.WITNESS.name, worked_example.WITNESS_KEY, TIME),
        worked_example.OTHER.name: cosign(TEXT, worked_example.OTHER.name, worked_example.OTHER_KEY, TIME),
    }

    def of_this_log(self, text: str) -> str:
        return text.replace(str(worked_example.LOG), str(LOG))

    @pytest.mark.parametrize(("quorum", "signatures", "enough"), cases(witnessing.test_quorums))
    def test_quorums(self, quorum: str, signatures: tuple[Signature, ...], enough: bool) -> None:
        policy = self.of_this_log(witnessing.policy_with(quorum))
        found = agreement(policy, with_lines(*(self.BY[signature.name] for signature in signatures)))
        assert found == ((len(set(signatures)), 2) if enough else None)

    @pytest.mark.parametrize("line", cases(witnessing.test_malformed_policies))
    def test_malformed_policies(self, line: str) -> None:
        text = f"log {LOG}\nwitness w1 {worked_example.WITNESS}\nwitness w2 {worked_example.OTHER}\nquorum none\n"
        renamed = str(Verifier("renamed.example", ED25519, worked_example.LOG.public_key))
        line = self.of_this_log(line).replace(renamed, str(Verifier("renamed.example", ED25519, LOG.public_key)))
        assert agreement(text, NOTE) == (0, 2)
        assert agreement(f"{text}{line}\n", NOTE) is None

    @pytest.mark.parametrize("line", witnessing.READABLE)
    def test_what_a_policy_may_have(self, line: str) -> None:
        text = (
            f"log {LOG}\nwitness w1 {worked_example.WITNESS}\nwitness w2 {worked_example.OTHER}\nquorum none\n{line}\n"
        )
        assert agreement(text, NOTE) == (0, 2)

    @pytest.mark.parametrize(
        "value",
        [
            COSIGNED[0].value[:-1],
            COSIGNED[0].value + b"\0",
            COSIGNED[0].value[:8] + b"\0" + COSIGNED[0].value[8:],
            b"\xff" * 8 + COSIGNED[0].value[8:],
            bytes(8) + COSIGNED[0].value[8:],
            (2**63).to_bytes(8) + KEYS[0].sign(f"cosignature/v1\ntime {2**63}\n{TEXT}".encode()).signature,
            KEYS[0].sign(TEXT.encode()).signature,
            b"x",
        ],
    )
    def test_a_bad_cosignature(self, value: bytes) -> None:
        bad = Signature(W0.name, W0.key_id, value)
        assert agreement(THREE, with_lines(*COSIGNED[:3])) == (3, 3)
        assert agreement(THREE, with_lines(bad, *COSIGNED[:3])) is None
        assert agreement(THREE, with_lines(bad, *COSIGNED[1:3])) is None
        # Nobody asked this witness.
        assert agreement(f"log {LOG}\nwitness b {W1}\nquorum b\n", with_lines(bad, *COSIGNED[1:3])) == (1, 1)

    def test_the_log_is_in_the_policy(self) -> None:
        renamed = Verifier("another.example", ED25519, LOG.public_key)
        other = Verifier("another.example", ED25519, W0.public_key)
        assert agreement(f"log {renamed}\nquorum none\n", NOTE) is None
        assert agreement(f"log {renamed}\nlog {LOG}\nquorum none\n", NOTE) is None
        assert agreement("quorum none\n", NOTE) is None
        assert agreement(f"log {other}\nlog {LOG} https://ledger.example/log\nquorum none\n", NOTE) == (0, 0)

    def test_another_key_of_the_log_does_not_stand_for_the_given_one(self) -> None:
        """The note is good by it, and the policy names it; the verifier was given the other."""
        second = Verifier(ORIGIN, ED25519, bytes(KEYS[0].verify_key))
        both = with_lines(Signature(ORIGIN, second.key_id, KEYS[0].sign(TEXT.encode()).signature))
        assert Policy.parse(f"log {second}\nquorum none\n").verify(both)[1].quorum
        assert agreement(f"log {second}\nquorum none\n", both) is None
        assert agreement(f"log {second}\nlog {LOG}\nquorum none\n", both) == (0, 0)
        with pytest.raises(NotProved) as refusal:
            Report("checkpoint", 0).witnessed(both, LOG, Policy.parse(f"log {second}\nquorum none\n"))
        assert refusal.value.code == "signer_unknown"

    @pytest.mark.parametrize("policy", ["", "# nothing\n", f"log {LOG}\n", f"log {LOG}\nquorum none\nquorum none\n"])
    def test_a_policy_has_one_quorum_line(self, policy: str) -> None:
        assert agreement(policy, NOTE) is None

    def test_every_known_log_that_signed_must_have_signed_well(self) -> None:
        key = SigningKey(b"\x09" * 32)
        other = Verifier("other.example", ED25519, bytes(key.verify_key))
        good = Signature(other.name, other.key_id, key.sign(TEXT.encode()).signature)
        for logs in (f"log {LOG}\nlog {other}\n", f"log {other}\nlog {LOG}\n"):
            assert agreement(f"{logs}quorum none\n", with_lines(good)) == (0, 0)
            assert agreement(f"{logs}quorum none\n", with_lines(Signature(other.name, other.key_id, bytes(64)))) is None

    def test_a_deep_policy(self) -> None:
        lines = [f"log {LOG}", f"witness w {W0}", "group a0 any w"]
        lines += [f"group a{depth} any a{depth - 1}" for depth in range(1, 2500)]
        policy = "\n".join([*lines, "quorum a2499"])
        assert agreement(policy, with_lines(COSIGNED[0])) == (1, 1)
        assert agreement(policy, NOTE) is None
        assert agreement(policy + "\n# " + "x" * 140_000, with_lines(COSIGNED[0])) is None


def test_one_key_under_two_names_is_refused() -> None:
    again = Verifier("witness.example/again", COSIGNATURE, W0.public_key)
    both = with_lines(COSIGNED[0], cosign(TEXT, again.name, KEYS[0], TIME))
    assert agreement(f"log {LOG}\nwitness a {W0}\nwitness b {again}\ngroup g all a b\nquorum g\n", both) is None
    assert agreement(f"log {LOG}\nwitness a {again}\nquorum a\n", both) == (1, 1)


def test_a_witness_that_signs_twice_counts_once() -> None:
    twice = with_lines(COSIGNED[0], cosign(TEXT, W0.name, KEYS[0], TIME + 60))
    assert agreement(THREE, twice) is None
    assert agreement(THREE.replace("2 a b c", "1 a b c"), twice) == (1, 3)


@pytest.mark.parametrize(
    "policy",
    [
        f"  log {LOG}\t\n\n\t#comment\nwitness a {W0} https://a.example # \nquorum none\n",
        f"log {LOG} # one more word\nquorum none\n",
        f"log {LOG}\nquorum none # asks for nobody\n",
        f"quorum a\nlog {LOG}\nwitness a {W0}\n",
        f"log {LOG}\ngroup g any a\nwitness a {W0}\nquorum g\n",
        f"log {LOG}\nwitness a {W0}\ngroup g any none\nquorum g\n",
        f"log {LOG}\nwitness a {W0}\ngroup none any a\nquorum none\n",
        f"log {LOG}\nwitness a {W0}\nwitness a {W1}\nquorum a\n",
        f"log {LOG}\nwitness a {W0}\nwitness none {W1}\nquorum a\n",
        f"log {LOG}\nwitness a {W0}\ngroup g any\nquorum a\n",
        f"log {LOG}\nwitness a {W0}\ngroup g 1.0 a\nquorum a\n",
        f"log {LOG}\nwitness a {W0}\ngroup g +1 a\nquorum a\n",
        f"log {LOG}\nwitness a {W0}\ngroup g g\nquorum a\n",
        f"log {LOG}\nwitness a {W0}\ngroup g all a g\nquorum a\n",
        f"LOG {LOG}\nquorum none\n",
        f"log {LOG}\r\nwitness a {W0}\r\nquorum a\r\n",
        f"\ufefflog {LOG}\nquorum none\n",
        f"log {LOG}\nwitness a {str(W0).upper()}\nquorum none\n",
        f"log {LOG}\nwitness a {str(W0).replace('witness.example', 'witness.test')}\nquorum none\n",
        f"log {LOG}\nwitness \x1b {W0}\nquorum \x1b\n",
    ],
)
def test_how_a_policy_is_read(policy: str) -> None:
    agreement(policy, with_lines(*COSIGNED[:1]))


@pytest.mark.parametrize(
    ("name", "public_key"),
    [("", W0.public_key), ("a\x01b", W0.public_key), ("weak", bytes(32)), ("weak", b"\x01" + bytes(31)), ("bad", b"\xff" * 32)],
)  # fmt: skip
def test_keys_that_no_policy_may_have(name: str, public_key: bytes) -> None:
    typed = bytes([COSIGNATURE]) + public_key
    key_id = sha256(name.encode() + b"\n" + typed).hexdigest()[:8]
    assert agreement(f"log {LOG}\nwitness w {name}+{key_id}+{base64.encode(typed)}\nquorum none\n", NOTE) is None


@pytest.mark.parametrize(
    ("lines", "accepted"),
    [
        (Signature("post.quantum", b"abcd", bytes(2428)).line(), True),
        (Signature("long", b"abcd", bytes(20_000)).line(), True),
        ("".join(Signature(f"pq{n}.example", b"abcd", bytes(5_000)).line() for n in range(13)), True),
        (Signature("long", b"abcd", bytes(110_000)).line(), False),
        (Signature("short", b"abcd", b"x").line(), True),
        (Signature("empty", b"abcd", b"").line(), False),
        (Signature("a\x01b", b"abcd", bytes(64)).line(), False),
        (Signature("a+b", b"abcd", bytes(64)).line(), False),
        (Signature("x", b"abcd", bytes(64)).line() * 60, True),
        (Signature("x", b"abcd", bytes(64)).line() * 61, False),
        (Signature("no line feed", b"abcd", bytes(64)).line()[:-1], False),
        ("— x !!!!\n", False),
        ("\n", False),
    ],
)
def test_lines_of_unknown_signers(lines: str, accepted: bool) -> None:
    assert agreement(THREE, with_lines(*COSIGNED[:3]) + lines) == ((3, 3) if accepted else None)


PQ_POLICY = f"log {LOG}\nwitness pq {mldsa_witness.WITNESS}\nwitness a {W0}\ngroup two all a pq\nquorum "


@pytest.mark.parametrize(("quorum", "expected"), [("two", (2, 2)), ("pq", (2, 2)), ("none", (2, 2))])
def test_ml_dsa_cosignatures_count(quorum: str, expected: tuple[int, int]) -> None:
    note = with_lines(COSIGNED[0], mldsa_witness.cosign(TEXT, TIME))
    assert agreement(f"{PQ_POLICY}{quorum}\n", note) == expected
    other = mldsa_witness.cosign(TEXT.replace("log", "lug", 1), TIME)
    assert agreement(f"{PQ_POLICY}none\n", with_lines(other)) is None


def test_ml_dsa_keys_may_end_alike() -> None:
    key = mldsa_witness.WITNESS.public_key
    other = Verifier("other.example", ML_DSA_44, bytes([key[0] ^ 1]) + key[1:])
    note = with_lines(mldsa_witness.cosign(TEXT, TIME))
    assert agreement(f"{PQ_POLICY}pq\nwitness other {other}\n", note) == (1, 3)


@pytest.mark.parametrize(("quorum", "expected"), [("two", None), ("pq", None), ("a", (1, 2)), ("none", (1, 2))])
def test_ml_dsa_cosignatures_that_cannot_be_checked_do_not_count(
    quorum: str, expected: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mldsa, "CAN_VERIFY", False)
    monkeypatch.setattr(standalone_verify, "mldsa", None)
    note = with_lines(COSIGNED[0], mldsa_witness.cosign(TEXT, TIME))
    assert agreement(f"{PQ_POLICY}{quorum}\n", note) == expected
    if expected is not None:
        said = standalone([noted(note)(each) for each in ANSWERS[0]], f"{PQ_POLICY}{quorum}\n")
        assert said is not None
        assert any(line.startswith("not checked") and mldsa_witness.NAME in line for line in said)


def test_a_carriage_return_hides_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read as a line end, it would turn a comment into `quorum none`; other programs read a comment."""
    answer, policy = tmp_path / "answer.json", tmp_path / "policy"
    answer.write_text(json.dumps(ANSWERS[0][0]))
    policy.write_bytes(f"log {LOG}\n# note\rquorum none\n".encode())
    arguments = [str(answer), "--key", str(LOG), "--host", HOST, "--policy", str(policy)]
    done = CliRunner().invoke(main, ["verify", *arguments])
    assert done.exit_code == 1
    assert "policy_malformed" in done.output
    monkeypatch.setattr(sys, "argv", ["standalone_verify.py", *arguments])
    with pytest.raises(SystemExit, match="Wrong"):
        standalone_verify.main()


def test_a_cosignature_of_another_checkpoint_is_refused() -> None:
    other = Note.parse(LEDGER.published[-2].note).text
    assert agreement(THREE, with_lines(*COSIGNED[:2], cosign(other, W2.name, KEYS[2], TIME))) is None


def test_the_origin_is_the_name_of_the_key() -> None:
    """All of the vkey up to its second plus sign is no name."""
    text = TEXT.replace(ORIGIN, f"{ORIGIN}+{LOG.key_id.hex()}")
    assert agreement(f"log {LOG}\nquorum none\n", f"{text}\n{signed(text).line()}") is None
    assert agreement(f"log {LOG}\nquorum none\n", f"{TEXT}\n{signed(TEXT).line()}") == (0, 0)


def signed(text: str) -> Signature:
    return Signature(ORIGIN, LOG.key_id, KEY.sign(text.encode()).signature)


@pytest.mark.parametrize("value", [b"\0" + signed(TEXT).value, signed(TEXT).value + b"\0", signed(TEXT).value[1:]])
def test_the_signature_of_a_log_has_64_bytes(value: bytes) -> None:
    assert agreement(f"log {LOG}\nquorum none\n", f"{TEXT}\n{Signature(ORIGIN, LOG.key_id, value).line()}") is None


def test_of_pages_the_first_one_counts() -> None:
    first, second = ANSWERS[2]
    cosigned = noted(with_lines(*COSIGNED[:2]))
    for pages, enough in (
        ([cosigned(first), second], True),
        ([second, cosigned(first)], True),
        ([first, cosigned(second)], False),
        ([cosigned(second), first], False),
    ):
        assert (library(pages, THREE) is not None) == (standalone(pages, THREE) is not None) == enough


NAMES = ("a", "b", "c", "d", "e")


@st.composite
def policies(draw: st.DrawFn) -> str:
    """Mostly well-formed ones, of up to 5 witnesses and 4 groups that may name each other. Some use a name twice."""
    names = list(NAMES[: draw(st.integers(0, 5))])
    free = list(names)
    lines = [f"log {LOG}", *(f"witness {name} {WITNESSES[NAMES.index(name)]}" for name in names)]
    for number in range(draw(st.integers(0, 4)) if names else 0):
        once = draw(st.integers(0, 9)) > 0
        members = draw(st.lists(st.sampled_from(free if once else names), min_size=1, max_size=5, unique=once))
        most = len(members) + (draw(st.integers(0, 9)) == 0)
        threshold = draw(st.sampled_from(["all", "any", *map(str, range(1, most + 1))]))
        lines.append(f"group g{number} {threshold} {' '.join(members)}")
        names.append(f"g{number}")
        free = [*(name for name in free if name not in members), f"g{number}"]
    lines.append(f"quorum {draw(st.sampled_from([*names[::-1], 'none']))}")
    change = draw(st.sampled_from(["none"] * 8 + ["drop", "repeat", "swap"]))
    place = draw(st.integers(0, len(lines) - 2))
    if change == "drop":
        del lines[place]
    elif change == "repeat":
        lines.append(lines[place])
    elif change == "swap":
        lines[place], lines[place + 1] = lines[place + 1], lines[place]
    return "\n".join(lines)


@given(policies(), st.lists(st.sampled_from(COSIGNED), max_size=7), st.booleans())
@settings(max_examples=150)
def test_both_verifiers_agree(policy: str, signatures: list[Signature], forged: bool) -> None:
    if forged and signatures:
        last = signatures[-1]
        signatures = [*signatures[:-1], Signature(last.name, last.key_id, bytes(8) + last.value[8:])]
    found = agreement(policy, with_lines(*signatures))
    members = [name for line in policy.split("\n") if line.startswith("group") for name in line.split()[3:]]
    assert found is None or len(members) == len(set(members))


def test_the_report_says_how_many_agree() -> None:
    for answers in ANSWERS:
        cosigned = [noted(with_lines(*COSIGNED[1:3]))(answer) for answer in answers]
        report = library(cosigned, THREE)
        assert report is not None
        assert report.witnesses == (2, 3)
        assert report.as_json()["witnesses"] == {"agree": 2, "asked": 3}
        assert "2 of 3 witnesses of the policy agree, which is enough for it" in report.proved
        assert not any("same log" in line for line in report.not_proved)
        lines = standalone(cosigned, THREE)
        assert lines is not None
        assert "proved      2 of 3 witnesses of the policy agree, which is enough for it" in lines
        assert not any("same log" in line for line in lines)


def test_without_a_policy_nobody_vouches_for_one_log() -> None:
    data = json.dumps(noted(with_lines(*COSIGNED[:3]))(ANSWERS[0][0]))
    report = verify_answer(data.encode(), LOG, HOST)
    assert report.witnesses is None
    assert report.as_json()["witnesses"] is None
    assert any("same log" in line for line in report.not_proved)
    lines = standalone_verify.verify([data], str(LOG), HOST)
    assert [line for line in lines if "same log" in line] == [
        "not proved  that everybody sees this same log: only its own key says so"
    ]
    assert not any("witness" in line for line in lines)


class TestCommands:
    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        for name, signatures in (("two", COSIGNED[:2]), ("one", COSIGNED[:1])):
            cosigned = noted(with_lines(*signatures))
            for kind, answers in zip(("full", "aggregate", "page"), ANSWERS, strict=True):
                for number, answer in enumerate(answers):
                    (tmp_path / f"{kind}{number}-{name}.json").write_text(json.dumps(cosigned(answer)))
        (tmp_path / "policy").write_text(THREE)
        (tmp_path / "broken").write_text(f"log {LOG}\nwitness a \x1b[2J\nquorum none\n")
        monkeypatch.chdir(tmp_path)
        return tmp_path

    @pytest.mark.parametrize("files", [["full0"], ["aggregate0"], ["page1", "page0"]])
    def test_staylog_verify(self, folder: Path, files: list[str]) -> None:
        def run(name: str, *more: str) -> Any:
            named = [f"{file}-{name}.json" for file in files]
            return CliRunner().invoke(main, ["verify", *named, "--key", str(LOG), "--host", HOST, *more])

        assert "2 of 3 witnesses of the policy agree" in " ".join(run("two", "--policy", "policy").output.split())
        result = run("two", "--policy", "policy", "--json")
        assert (result.exit_code, json.loads(result.stdout)["witnesses"]) == (0, {"agree": 2, "asked": 3})
        assert json.loads(run("two", "--json").stdout)["witnesses"] is None
        result = run("one", "--policy", "policy", "--json")
        assert (result.exit_code, json.loads(result.stdout)["code"]) == (1, "quorum_missing")
        assert run("one").exit_code == 0

    @pytest.mark.parametrize("files", [["full0"], ["aggregate0"], ["page1", "page0"]])
    def test_standalone(
        self, folder: Path, files: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def run(name: str, *more: str) -> str:
            named = [f"{file}-{name}.json" for file in files]
            monkeypatch.setattr(sys, "argv", ["standalone_verify.py", *named, "--key", str(LOG), "--host", HOST, *more])
            standalone_verify.main()
            return capsys.readouterr().out

        assert "2 of 3 witnesses of the policy agree, which is enough" in run("two", "--policy", "policy")
        assert "only its own key says so" in run("one")
        for name, policy, says in (
            ("one", "policy", "1 of 3 witnesses of the policy agree, which is not enough for it"),
            ("two", "broken", "not a key"),
            ("two", "nothing", "FileNotFoundError"),
            ("two", "full0-two.json", "a line that a policy cannot have"),
        ):
            with pytest.raises(SystemExit) as end:
                run(name, "--policy", policy)
            assert says in str(end.value)
            assert str(end.value).startswith("Wrong: ")
            assert str(end.value).isascii()
            assert str(end.value).isprintable()

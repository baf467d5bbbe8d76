"""Witness policies (c2sp.org/tlog-policy): which logs are trusted, and whose cosignatures make a quorum."""

import re
from dataclasses import dataclass, field
from hashlib import sha256

from ledger.canon import jcs
from ledger.errors import BadNote, NotProved
from ledger.log.checkpoint import Checkpoint, open_checkpoint
from ledger.log.cosignature import Cosignature, cosignatures, unchecked
from ledger.log.note import COSIGNATURE, ED25519, MAX_CHARACTERS, ML_DSA_44, Note, Verifier

_COUNT = re.compile(r"[1-9][0-9]{0,3}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_WORD = re.compile(r"[^ \t]+")  # no other blank separates, of ASCII or not


@dataclass(frozen=True, slots=True)
class Witness:
    verifier: Verifier
    url: str | None


@dataclass(frozen=True, slots=True)
class Group:
    """Satisfied by `threshold` of its members, which are names of witnesses or groups."""

    threshold: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Who of a policy's `asked` witnesses cosigned a checkpoint, and whether these are enough. `unchecked` names those
    whose cosignatures cannot be verified here, and do not count."""

    found: tuple[Cosignature, ...]
    asked: int
    quorum: bool
    unchecked: tuple[str, ...] = ()

    @property
    def agree(self) -> int:
        """Witnesses, not cosignatures: one may have signed twice."""
        return len({each.witness for each in self.found})


@dataclass(slots=True)
class Policy:
    logs: list[Verifier] = field(default_factory=list)
    witnesses: dict[str, Witness] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    members: set[str] = field(default_factory=set)  # of any group
    quorum: str | None = None

    @classmethod
    def parse(cls, text: str) -> "Policy":
        """A name is defined before it is used, so a policy has no cycles; `quorum none` asks for no witness."""
        if len(text) > MAX_CHARACTERS:
            raise BadNote("policy_malformed", f"a policy has at most {MAX_CHARACTERS} characters")
        if _CONTROL.search(text):
            raise BadNote("policy_malformed", "the only control characters of a policy are tabs and line feeds")
        policy, quorum_lines = cls(), 0
        for number, line in enumerate(text.split("\n"), 1):
            keyword, *arguments = _WORD.findall(line) or ["#"]
            if keyword.startswith("#"):
                continue
            if keyword not in _LINES:
                raise BadNote("policy_malformed", f"line {number} of the policy starts with {keyword[:20]!r}")
            quorum_lines += keyword == "quorum"
            try:
                _LINES[keyword](policy, arguments)
            except (ValueError, BadNote) as error:
                raise BadNote("policy_malformed", f"line {number} of the policy: {error}") from None
        if quorum_lines != 1:
            raise BadNote("policy_malformed", "a policy has exactly one quorum line")
        return policy

    def agreement(self, note: Note) -> Agreement:
        """Whose cosignatures a note has; one that does not hold rejects it. Whether a log signed is not asked."""
        verifiers = [witness.verifier for witness in self.witnesses.values()]
        found = cosignatures(note, verifiers)
        enough = self.satisfied_by({each.witness for each in found})
        return Agreement(tuple(found), len(self.witnesses), enough, tuple(unchecked(note, verifiers)))

    def verify(self, note: str) -> tuple[Checkpoint, Agreement]:
        """The checkpoint, once a log of this policy signed it and enough of its witnesses cosigned."""
        parsed = Note.parse(note)
        signers = [log for log in self.logs if any(s.is_by(log) for s in parsed.signatures)]
        for known in signers:
            parsed.require(known)  # one bad signature of a known signer is fatal
        origin = parsed.text.split("\n", 1)[0]
        log = next((known for known in signers if known.name == origin), None)
        if log is None:
            raise NotProved("signer_unknown", "no log of the policy signed this checkpoint")
        checkpoint = open_checkpoint(note, log)
        found = self.agreement(parsed)
        if not found.quorum:
            lacks = f"{found.agree} of {found.asked} witnesses cosigned, which do not make the quorum {self.quorum!r}"
            names = ", ".join(found.unchecked)
            how = f"; not checked, as the extra pq is not installed: the ML-DSA-44 cosignatures of {names}"
            raise NotProved("quorum_missing", lacks + (how if names else ""))
        return checkpoint, found

    def satisfied_by(self, seen: set[Verifier]) -> bool:
        """Whether these witnesses are enough."""
        # A group names only what is defined above it, so one pass in order of definition is enough.
        satisfied = {known for known, witness in self.witnesses.items() if witness.verifier in seen}
        for group_name, group in self.groups.items():
            if len(satisfied.intersection(group.members)) >= group.threshold:
                satisfied.add(group_name)
        return self.quorum is None or self.quorum in satisfied

    def fingerprint(self) -> str:
        """Of whose cosignatures it asks for: two policies with the same one are satisfied by the same notes."""
        witnesses = {name: str(witness.verifier) for name, witness in self.witnesses.items()}
        groups = {name: [group.threshold, *group.members] for name, group in self.groups.items()}
        return sha256(jcs.dumps([witnesses, groups, self.quorum])).hexdigest()

    def _log(self, arguments: list[str]) -> None:
        if len(arguments) not in (1, 2):
            raise ValueError("log <vkey> [<url>]")
        log = _verifier(arguments[0], ED25519)
        if any(known.public_key == log.public_key for known in self.logs):
            raise ValueError("the key of another log line")
        self.logs.append(log)

    def _witness(self, arguments: list[str]) -> None:
        if len(arguments) not in (2, 3):
            raise ValueError("witness <name> <vkey> [<url>]")
        name, vkey, *url = arguments
        verifier = _verifier(vkey, COSIGNATURE, ML_DSA_44)
        if any(witness.verifier.public_key == verifier.public_key for witness in self.witnesses.values()):
            raise ValueError("one key under two names would count twice")
        self._define(name)
        self.witnesses[name] = Witness(verifier, url[0] if url else None)

    def _group(self, arguments: list[str]) -> None:
        if len(arguments) < 3:
            raise ValueError("group <name> all|any|<k> <member>...")
        name, count, *members = arguments
        if len(set(members)) != len(members) or not all(m in self.witnesses or m in self.groups for m in members):
            raise ValueError("the members of a group are different witnesses or groups defined above it")
        if not self.members.isdisjoint(members):
            raise ValueError("a member of two groups would count in two ways")
        threshold = {"all": len(members), "any": 1}.get(count, int(count) if _COUNT.fullmatch(count) else 0)
        if not 1 <= threshold <= len(members):
            raise ValueError(f"a threshold between 1 and {len(members)} expected")
        self._define(name)
        self.groups[name] = Group(threshold, tuple(members))
        self.members.update(members)

    def _quorum(self, arguments: list[str]) -> None:
        if len(arguments) != 1:
            raise ValueError("quorum <name>|none")
        name = arguments[0]
        if name != "none" and name not in self.witnesses and name not in self.groups:
            raise ValueError("the quorum is none, or a witness or group defined above it")
        self.quorum = None if name == "none" else name

    def _define(self, name: str) -> None:
        if name == "none" or name in self.witnesses or name in self.groups:
            raise ValueError(f"the name {name!r} is taken")


_LINES = {"log": Policy._log, "witness": Policy._witness, "group": Policy._group, "quorum": Policy._quorum}


def _verifier(vkey: str, *algorithms: int) -> Verifier:
    verifier = Verifier.parse(vkey)
    if verifier.algorithm not in algorithms:
        raise ValueError(f"a key of type {' or '.join(f'{each:02x}' for each in algorithms)} expected")
    return verifier

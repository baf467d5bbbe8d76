"""Who signed a statement, as far as the statement itself shows it: the offline half of what a ledger checks at intake.

A did:key or did:jwk has its key in its name. The keys of a did:web are in a document on the web: what depends on them
is reported as not checked, and is never a difference.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ledger.canon import multikey, proofs
from ledger.errors import NotProved, StaylogError
from ledger.identity.did import is_offline, offline

# The code of a difference that no honest ledger can cause: it convicts. Any other code says that nothing is shown.
DIFFERS = "entry_differs_from_submission"


def differs(why: str) -> NoReturn:
    raise NotProved("entry_differs_from_submission", why)


def unreadable(why: str) -> NoReturn:
    raise NotProved("submission_unreadable", why)


def as_object(value: Any, what: str) -> dict[str, Any]:
    """`value` if it is a JSON object. Raises NotProved `submission_unreadable` when it is not."""
    if not isinstance(value, dict):
        unreadable(f"{what} is not an object")
    return value


@dataclass(slots=True)
class Speakers:
    """Checks signatures one by one, and keeps what they showed. `statement` is the one that the receipt is of, and
    `keys_seen` are the multikeys that the receipt names, by verification method: those of did:web that the ledger saw.
    `wrong` is a signature of the statement that does not hold under these: a receipt that contradicts itself, and no
    difference between entry and statement."""

    keys_seen: Mapping[str, str]
    statement: Mapping[str, Any]
    proved: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def require_guest(self, said: Mapping[str, Any], what: str) -> str:
        """The subject of the credential in a guest's statement, by whose key it is signed.

        Raises NotProved as `require_signed`, and `entry_differs_from_submission` when the subject did not sign.
        """
        signer = _signer(said, what)
        credential = as_object(said.get("guest_credential"), f"the credential in {what}")
        guest = as_object(credential.get("credentialSubject"), f"the subject of the credential in {what}").get("id")
        if not isinstance(guest, str):
            unreadable(f"the credential in {what} names no subject")
        if signer != guest:
            differs(f"the credential in {what} is that of {guest[:256]}, and {signer[:256]} signed")
        self.require_signed(said, what, guest)
        return guest

    def require_signed(self, said: Mapping[str, Any], what: str, speaker: str) -> None:
        """The speaker signed, or only a document on the web could tell.

        Raises NotProved: `entry_differs_from_submission` when the statement is not signed, by another, or not by the
        key in the speaker's DID; `submission_unreadable` when the proof has a form that is not known here.
        """
        signer = _signer(said, what)
        if signer != speaker:
            differs(f"{what} is signed by a key of {signer[:256]}, and not of {speaker[:256]}")
        proof = said["proof"]
        if proof.get("proofPurpose") != proofs.ASSERTION:
            differs(f"{what} is not signed as a statement")
        domain = f", for {proof['domain'][:300]}" if isinstance(proof.get("domain"), str) else ""
        if is_offline(speaker):
            if not _holds(said, speaker):
                differs(f"the signature of {what} is not one by the key of {speaker[:256]}")
            self.proved.append(f"{speaker} signed {what}{domain}")
        else:
            self._note_web(said, what, speaker, domain)

    def _note_web(self, said: Mapping[str, Any], what: str, speaker: str, domain: str) -> None:
        method = said["proof"]["verificationMethod"]
        seen = self.keys_seen.get(method)
        if seen is None:
            self.not_checked.append(
                f"that {speaker} signed {what}{domain}: not checked, its keys are in a document on the web"
            )
            return
        try:
            key = multikey.decode(seen)
        except StaylogError:
            self.wrong.append(f"the receipt names {seen[:60]!r} as a key, and it is none")
            return
        try:
            _verify(said, key)
        except StaylogError:
            self._note_other(said, what, speaker, seen)
            return
        self.proved.append(f"the key {seen} signed {what}{domain}")
        self.not_checked.append(
            f"that {seen} was the key {method}: not checked, the ledger saw it in a document on the web"
        )

    def _note_other(self, said: Mapping[str, Any], what: str, speaker: str, seen: str) -> None:
        """A claim is older than the review that rests on it: another key may have had this name then."""
        if said is self.statement:
            self.wrong.append(f"the signature of {what} does not hold under {seen}, which the receipt names")
            return
        self.not_checked.append(
            f"that {speaker} signed {what}: not checked, {seen} of the receipt did not, and may be a newer key"
        )


def _signer(said: Mapping[str, Any], what: str) -> str:
    """The DID whose key is named as the one that signed."""
    proof = said.get("proof")
    if proof is None:
        differs(f"{what} is not signed")
    if not isinstance(proof, dict) or proofs.suite_of(proof) != proofs.EDDSA_JCS:
        unreadable(f"the signature of {what} is of a form that is not known here")
    method = proof.get("verificationMethod")
    if not isinstance(method, str):
        differs(f"the signature of {what} names no key")
    return method.partition("#")[0]


def _holds(said: Mapping[str, Any], speaker: str) -> bool:
    """Whether the signature is by the key that is in the speaker's DID."""
    try:
        _verify(said, offline(speaker)[said["proof"]["verificationMethod"]])
    except (KeyError, StaylogError):
        return False
    return True


def _verify(said: Mapping[str, Any], key: bytes) -> None:
    proofs.verify({name: value for name, value in said.items() if name != "proof"}, said["proof"], [key])

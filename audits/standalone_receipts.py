"""Check a Staylog receipt offline, and that its entry says what was signed. Needs standalone_verify.py beside it.

    python audits/standalone_receipts.py RECEIPT.json --key VKEY [--submission SIGNED.json] [--policy TLOG_POLICY]

RECEIPT.json is what a ledger answered to a review, a response, an import or later evidence; SIGNED.json is what was
sent. VKEY is the log's public key, from a source you trust. Exits with 0 and what was proved, or 1 and what is wrong
first. How: the entry is in the tree that the key signed, and commits to the statement that it was made from. So the
commitment opens with SIGNED.json, its speaker's signature holds, and every member of the entry follows from it. The
keys of a did:web are on the web: what only these could show is listed as not checked.
"""

import argparse
import json
import re
from base64 import urlsafe_b64encode
from decimal import Decimal
from pathlib import Path

from nacl import bindings, exceptions, signing

try:
    import standalone_verify as base  # the file beside this one
except ImportError:
    from audits import standalone_verify as base

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
PROOF = r"c2sp\.org/tlog-proof@v1\nindex (0|[1-9][0-9]{0,15})\n((?:[A-Za-z0-9+/]{43}=\n)*)\n"
RECEIPT = dict.fromkeys("review_id status entry checkpoint tlog_proof".split(), str) | {"index": int, "openings": dict}
BLANK = "[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*"  # Unicode's property White_Space
OWN = {"review": "evidence", "response": "statement", "upgrade": "evidence"}  # the commitment that its speaker opens
STAY = ("host_did", "listing_id", "check_in", "check_out", "ratings")
KINDS = {"ReviewSubmission": "review", "CrossPlatformReview": "review", "HostResponse": "response",
         "EvidenceSupplement": "upgrade"}
RESTS_ON = {"none": [None], "stay_receipt": [None], "booking_notice": ["BookingNotice"],
            "booking_claim": ["BookingClaim"], "callback": ["BookingVerification", "BookingNotice"]}  # or a late notice
NONE_HELD = "the entry rests on a stay_receipt, and the submission holds none"
need, sha = base.need, base.sha

def number(value):
    """As JavaScript writes it (RFC 8785, section 3.2.2.3)."""
    value, plain = int(value) if value % 1 == 0 else value, value == 0 or 1e-6 <= abs(value) < 1e21
    return format(Decimal(repr(value)), "f") if plain else re.sub("e([+-])0", r"e\1", repr(float(value)))

def canonical(value):
    """Canonical JSON (RFC 8785): names in the order of their UTF-16 code units."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(name)}:{canonical(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    return number(value) if type(value) in (int, float) else json.dumps(value, ensure_ascii=False)

def equal(one, other):
    return canonical(one) == canonical(other)

def unbase58(text, size):
    """The bytes behind the z of base58btc, of a known length."""
    need(isinstance(text, str) and re.fullmatch(f"z[{ALPHABET}]*", text), f"not z and base58: {str(text)[:80]}")
    value = sum(ALPHABET.index(letter) * 58**place for place, letter in enumerate(text[:0:-1]))
    data = bytes(len(text[1:]) - len(text[1:].lstrip("1"))) + value.to_bytes((value.bit_length() + 7) // 8)
    need(len(data) == size, f"not {size} bytes of base58: {text[:80]}")
    return data

def unbase64url(text):
    need(not {*text} & {*"+/="}, f"not base64url without padding: {text[:80]}")
    return base.unbase64(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4))

def ed25519(key):
    good = len(key) == 34 and key[:2] == b"\xed\x01" and bindings.crypto_core_ed25519_is_valid_point(key[2:])
    need(good, "not an Ed25519 key that binds its owner")
    return key[2:]

def key_in(did):
    """The name of the key that a did:key or did:jwk carries, and the key."""
    need(len(did) <= 256, "a DID has at most 256 bytes")
    if did.startswith("did:key:"):
        return f"{did}#{did[8:]}", ed25519(unbase58(did[8:], 34))
    jwk = base.parse(unbase64url(did[8:]).decode())
    good = (jwk.get("kty"), jwk.get("crv"), jwk.get("use", "sig")) == ("OKP", "Ed25519", "sig")
    good = good and jwk.get("alg", "EdDSA") in ("EdDSA", "Ed25519") and "verify" in jwk.get("key_ops", ["verify"])
    need(good and "d" not in jwk and isinstance(jwk.get("key_ops", []), list), f"not for Ed25519 signatures: {did}")
    return f"{did}#0", ed25519(b"\xed\x01" + unbase64url(jwk["x"]))

def holds(said, key):
    """Whether a Data Integrity proof (eddsa-jcs-2022) is by this key."""
    proof, bare = said["proof"], {name: value for name, value in said.items() if name != "proof"}
    if "@context" in proof and not equal(proof["@context"], bare.get("@context")):
        return False
    options = {name: value for name, value in proof.items() if name != "proofValue"}
    message = sha(canonical(options).encode()) + sha(canonical(bare).encode())
    try:
        return bool(signing.VerifyKey(key).verify(message, unbase58(proof.get("proofValue"), 64)))
    except (exceptions.BadSignatureError, base.Wrong):
        return False

class Check:
    """One entry and the statement that it commits to. `lines` are what was found, to be printed."""
    def __init__(self, entry, signed, booking, text, keys_seen):
        self.entry, self.signed, self.booking, self.text, self.keys_seen = entry, signed, booking, text, keys_seen
        self.evidence, self.lines = entry.get("evidence", {}), []
    def signer(self, said, what):
        need((proof := said.get("proof")) is not None, f"{what} is not signed")
        known = isinstance(proof, dict) and proof.get("type") == "DataIntegrityProof"
        need(known and proof.get("cryptosuite") == "eddsa-jcs-2022", f"the signature of {what} has an unknown form")
        need(isinstance(proof.get("verificationMethod"), str), f"the signature of {what} names no key")
        return proof["verificationMethod"].partition("#")[0]
    def by(self, said, what, speaker):
        """The speaker signed, as far as that can be known offline."""
        signer, proof = self.signer(said, what), said["proof"]
        need(signer == speaker, f"{what} is signed by a key of {signer}, and not of {speaker}")
        need(proof.get("proofPurpose") == "assertionMethod", f"{what} is not signed as a statement")
        name, seen = proof["verificationMethod"], self.keys_seen.get(proof["verificationMethod"])
        if speaker.startswith(("did:key:", "did:jwk:")):
            try:
                method, key = key_in(speaker)
            except (base.Wrong, ValueError, KeyError, TypeError, AttributeError):
                method, key = None, None
            need(method == name and holds(said, key), f"the signature of {what} is not one by the key of {speaker}")
            self.lines.append(f"proved      {speaker} signed {what}, for {proof.get('domain', 'any ledger')}")
        elif seen is None:
            self.lines.append(f"not checked that {speaker} signed {what}: its keys are on the web")
        elif holds(said, ed25519(unbase58(seen, 34))):
            self.lines.append(f"not checked that {seen}, which signed {what}, was {name}: the ledger saw it on the web")
        else:  # a claim is older than its review: another key may have had this name then
            need(said is not self.signed, f"{what} is not signed by {seen}, which the receipt names")
            self.lines.append(f"not checked that {speaker} signed {what}: {seen}, which the receipt names, did not")
    def guest(self, said, what):
        """The subject of the credential, who signed."""
        signer, guest = self.signer(said, what), said["guest_credential"]["credentialSubject"]["id"]
        need(signer == guest, f"the credential in {what} is that of {guest}, and {signer} signed")
        self.by(said, what, guest)
        return guest
    def same(self, what, *names):
        for name in names:
            one, other = canonical(self.entry[name]), canonical(self.signed.get(name))
            need(one == other, f"{name} is {one} in the entry, and {other} in {what}")
    def texts(self, name):
        """A text of white space only may be stored as a text or as none."""
        said, entered = "" if self.signed.get(name) is None else self.signed[name], self.entry["text"]
        need(isinstance(said, str), f"{name} is not a text")
        need(said or entered is None, "the entry has a text, and none was signed")
        need(entered or re.fullmatch(BLANK, said), "the entry has no text, and one was signed")
        need(self.text in (None, said), "the text of the entry is another than the one that was signed")
        if entered and self.text is None:
            self.lines.append("not checked that the text in the log is the one that was signed: it is not opened")
    def issuer(self, credential):
        issuer, level = credential.get("issuer"), credential["credentialSubject"].get("idv_level")
        issuer = issuer.get("id") if isinstance(issuer, dict) else issuer
        for name, value in (("issuer", issuer), ("idv_level", level)):
            need(equal(self.evidence[name], value), f"evidence.{name} is not that of the credential: {value}")
    def no_booking(self):
        need(self.booking is None, f"the entry rests on {self.evidence['booking']}, and commits to a statement too")
    def held(self):
        receipt = self.signed.get("booking_evidence")
        return receipt if isinstance(receipt, dict) and receipt.get("type") == "StayReceipt" else None
    def about(self, booking, what, guest):
        """A booking statement is about this stay and this guest, confirms it, and its speaker signed it."""
        kind, signed = booking["type"], self.signed
        for name in ("booking_reference", "listing_id", *([] if kind == "BookingVerification" else ["host_did"])):
            need(equal(booking.get(name), signed.get(name)), f"{what} is for another {name} than the submission")
        dates = [booking.get("check_in"), signed["check_in"], signed["check_out"], booking.get("check_out")]
        within = all(isinstance(date, str) for date in dates) and dates == sorted(dates)
        need(within, f"{what} is for other dates than the submission")
        binding = booking["guest_binding"] if isinstance(booking.get("guest_binding"), dict) else {}
        bound = urlsafe_b64encode(sha(f"{binding.get('nonce')}.{guest}".encode())).rstrip(b"=").decode()
        confirmed = equal(*{"BookingClaim": (None, None), "StayReceipt": (booking.get("guest_did"), guest),
                            "BookingNotice": ([booking.get("status"), binding.get("value"),
                                               isinstance(binding.get("nonce"), str)], ["confirmed", bound, True]),
                            "BookingVerification": ([booking.get(n) for n in ("status", "known", "guest_matches")],
                                                    ["confirmed", True, True])}[kind])
        need(confirmed, f"{what} does not confirm a booking of {guest}")
        if kind == "BookingClaim":
            need(self.guest(booking, what) == guest, f"{what} is another guest's")
        else:
            self.by(booking, what, self.entry["host_did"])
    def review(self):
        guest, kind = self.guest(self.signed, "the submission"), self.evidence["booking"]
        self.same("the submission", *STAY)
        self.texts("review_text")
        need(self.entry["level"] != "host_attested", "the entry is host_attested, and the submission is a guest's own")
        self.issuer(self.signed["guest_credential"])
        given = None if self.booking is None else str(self.booking.get("type"))
        rests = f"the entry rests on {kind}, and commits to {given or 'no booking statement'} beside it"
        need(given in RESTS_ON.get(kind, []), rests)
        if kind == "stay_receipt":
            need(self.held(), NONE_HELD)
            self.about(self.held(), "the stay receipt", guest)
        elif kind != "none":
            self.about(self.booking, f"the {given}", guest)
        elif self.held():  # a ledger may have had a reason that the statement alone does not show
            self.lines.append("not checked why the stay receipt in the submission does not count")
    def imported(self):
        consent = self.signed.get("guest_statement")
        self.by(self.signed, "the attestation", str(self.signed.get("host_did")))
        self.same("the attestation", *STAY)
        self.texts("review_text")
        whose = f"the credential in the attestation is not that of {self.entry['host_did']}"
        need(equal(self.signed["host_credential"]["credentialSubject"].get("id"), self.entry["host_did"]), whose)
        self.no_booking()
        level = ("host_attested" if consent is None else "guest_verified", "attestation")
        need((self.entry["level"], self.evidence["booking"]) == level, f"such an attestation is {level}")
        unnamed = (self.evidence["issuer"], self.evidence["idv_level"]) == (None, None)
        need(consent is not None or unnamed, "the entry names an issuer, and no guest consented")
        if consent is not None:
            self.guest(consent, "the guest's consent")
            for name in ("document_sha256", "ratings", "review_text"):
                need(equal(consent.get(name), self.signed.get(name)), f"the guest consented to another {name}")
            need(consent.get("consent") is True, "the guest did not consent")
            self.issuer(consent["guest_credential"])
    def response(self):
        self.by(self.signed, "the response", str(self.signed.get("host_did")))
        self.same("the response", "review_id", "host_did")
        self.texts("response_text")
    def upgrade(self):
        need(receipt := self.held(), NONE_HELD)
        self.by(self.signed, "the supplement", str(receipt.get("guest_did")))
        self.same("the supplement", "review_id")
        self.no_booking()
        for name, holder in (("host_did", self.entry), ("booking_reference", self.signed)):
            need(equal(receipt.get(name), holder.get(name)), f"the stay receipt is for another {name}")
        self.by(receipt, "the stay receipt", self.entry["host_did"])
        self.lines.append("not checked issuer, idv_level, listing and dates: an upgrade has those of its review")

def included(leaf, index, size, path):
    """The root to which an RFC 9162 inclusion proof leads; its hashes go from the leaf to the root."""
    hashes = [base.unbase64(text, 32) for text in path]
    def root(lo, hi):
        if hi - lo == 1:
            return leaf
        need(hashes, "the inclusion proof is too short")
        sibling, k = hashes.pop(), lo + (1 << (hi - lo - 1).bit_length() - 1)
        return sha(b"\x01", root(lo, k), sibling) if index < k else sha(b"\x01", sibling, root(k, hi))
    found = root(0, size)
    need(not hashes, "the inclusion proof has hashes left over")
    return found
def commit(salt, text):
    return base.base64.b64encode(sha(b"\x05", base.unbase64(salt, 32), text.encode())).decode()
def read_receipt(text):
    receipt = base.parse(text)
    for name, kind in RECEIPT.items():
        need(isinstance(receipt, dict) and type(receipt.get(name)) is kind, f"a receipt has the member {name}")
    entry, openings = base.read_entry(receipt["entry"]), receipt["openings"]
    need((own := OWN.get(entry["type"])) and receipt["status"] == "accepted", f"no receipt of a {entry['type']}")
    said = (receipt["review_id"], receipt.get("verification_level"))
    need(said == (entry["review_id"], entry.get("level")), "review_id or verification_level differ from the entry")
    closed = openings.keys() == {"text", own} and isinstance(openings[own], dict) and openings[own].keys() == {"salt"}
    need(closed and base.unbase64(openings[own]["salt"], 32), f"the openings are text and the salt of the {own}")
    if (text := openings["text"]) is not None:
        need(isinstance(text, dict) and text.keys() == {"text", "salt"} and text["text"], "a malformed opening")
        need(commit(text["salt"], text["text"]) == entry.get("text"), "the text is not the one of the entry")
    return receipt, entry, openings[own]["salt"], text and text["text"]
def verify(text, vkey, submission=None, policy=None):
    """What a receipt proves: lines to print. Raises at the first thing that is wrong."""
    receipt, entry, salt, opened = read_receipt(text)
    need(proof := re.match(PROOF, receipt["tlog_proof"]), "not a tlog-proof without an extra line")
    fits = [int(proof[1]), receipt["tlog_proof"][proof.end():]] == [receipt["index"], receipt["checkpoint"]]
    need(fits, "index or checkpoint differ from the tlog_proof")
    size, root = base.open_checkpoint(receipt["checkpoint"], vkey)
    leaf, index = sha(b"\x00", receipt["entry"].encode()), receipt["index"]
    need(index < size - 1, "an index outside of the tree, or of its last leaf, which is a map head")
    need(included(leaf, index, size, proof[2].split()) == root, "the entry is not in the tree that was signed")
    lines = [f"proved      the {entry['type']} is entry {index} of a tree of {size} that the log signed"]
    lines += [] if policy is None else base.witnessed(receipt["checkpoint"], vkey, policy)
    if submission is None:
        return [*lines, "not proved  whose it is, and that it says what was signed: show the signed statement too"]
    signed, beside, seen = base.parse(submission), receipt.get("booking"), receipt.get("keys_seen", {})
    readable = all(isinstance(value, dict) for value in (signed, {} if beside is None else beside, seen))
    need(readable and {*map(type, seen.values())} <= {str}, "what was signed, booking and keys_seen are JSON objects")
    data = canonical(signed if entry["type"] == "response" else {"submission": signed, "booking": beside})
    sealed = entry["statement"] if entry["type"] == "response" else entry["evidence"]["commitment"]
    need(commit(salt, data) == sealed, "the submission does not open the commitment of the entry")
    kind = signed.get("type", "ReviewSubmission")
    made = isinstance(kind, str) and KINDS.get(kind) == entry["type"]
    need(made, f"a {entry['type']} is not made from a statement of the type {kind}")
    check = Check(entry, signed, beside, opened, seen)
    (check.imported if kind == "CrossPlatformReview" else getattr(check, entry["type"]))()
    return [*lines, f"proved      the {entry['type']} rests on exactly this signed statement, and follows from it",
            *check.lines, "not proved  that guests and stays are real: that is the word of operator and issuers"]

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("receipt", type=Path)
    parser.add_argument("--key", required=True, help="the log's vkey: name+id+base64")
    parser.add_argument("--submission", type=Path, help="what was signed: review, response, import or evidence.json")
    parser.add_argument("--policy", type=Path, help="a tlog-policy: demand its quorum of witnesses")
    given = parser.parse_args()
    try:
        files = [path and path.read_bytes().decode() for path in (given.receipt, given.submission, given.policy)]
        print("\n".join(repr(line)[1:-1] for line in verify(files[0], given.key, *files[1:])))
    except Exception as e:  # whatever cannot be read is not proved
        reason = str(e) if isinstance(e, base.Wrong | exceptions.BadSignatureError) else f"not readable: {e!r}"
        raise SystemExit("Wrong: " + reason.encode("unicode_escape").decode()) from None
if __name__ == "__main__":
    main()

"""Data Integrity EdDSA Cryptosuites and did:key, by the vectors of their specifications."""

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ledger.canon import jcs, multikey, proofs, strict_json
from ledger.canon.rdf import Canonicaliser
from ledger.errors import NotAccepted, StaylogError
from ledger.identity import contexts
from ledger.identity.did import resolve_key
from tests.interop.vectors import public_folder

# What two contexts that the vectors name mean for them. The published files say more; the canonical forms in the
# vectors tell whether this is enough.
EXAMPLES = {"@context": {"@vocab": "https://www.w3.org/ns/credentials/examples#"}}
_SCHEMA, _CITIZENSHIP = "https://schema.org/", "https://w3id.org/citizenship#"
CITIZENSHIP = {
    "@context": {
        **{name: _SCHEMA + name for name in ("additionalName", "familyName", "gender", "givenName", "identifier")},
        **{name: _CITIZENSHIP + name for name in ("birthCountry", "lprCategory", "lprNumber")},
        **{name: _CITIZENSHIP + name for name in ("EmployablePerson", "EmploymentAuthorizationDocument")},
        "EmploymentAuthorizationDocumentCredential": f"{_CITIZENSHIP}EmploymentAuthorizationDocumentCredential",
        "employmentAuthorizationDocument": f"{_CITIZENSHIP}employmentAuthorizationDocument",
        "Person": f"{_SCHEMA}Person",
        "image": {"@id": f"{_SCHEMA}image", "@type": "@id"},
        "birthDate": {"@id": f"{_SCHEMA}birthDate", "@type": "http://www.w3.org/2001/XMLSchema#dateTime"},
        "residentSince": {"@id": f"{_CITIZENSHIP}residentSince", "@type": "http://www.w3.org/2001/XMLSchema#dateTime"},
    }
}
CANON = Canonicaliser(
    {
        **{url: contexts._read(url) for url in contexts.PINS},
        "https://www.w3.org/ns/credentials/examples/v2": EXAMPLES,
        "https://w3id.org/citizenship/v4rc1": CITIZENSHIP,
    }
)


@pytest.fixture(scope="module")
def folder() -> Path:
    return public_folder("w3c") / "vc-di-eddsa"


def read(path: Path) -> Any:
    return strict_json.loads(path.read_bytes())


@pytest.mark.parametrize(
    ("where", "suite", "tail"),
    [
        ("eddsa-jcs-2022", proofs.EDDSA_JCS, "JCS"),
        ("eddsa-rdfc-2022", proofs.EDDSA_RDFC, "DataInt"),
        ("eddsa-rdfc-2022/employ", proofs.EDDSA_RDFC, "DataInt"),
        ("Ed25519Signature2020", proofs.ED25519_2020, "EdSig"),
    ],
)
def test_every_step_of_a_suite(folder: Path, where: str, suite: str, tail: str) -> None:
    """Canonical forms, hashes, signature; and signing it again gives the same proof."""
    folder_of_suite = folder / where
    document = read(folder_of_suite / f"signed{tail}.json")
    proof = document.pop("proof")
    options = {name: value for name, value in proof.items() if name != "proofValue"}
    if suite == proofs.EDDSA_JCS:
        canonical = [jcs.dumps(options), jcs.dumps(document)]
    else:
        canonical = CANON.canonize({**options, "@context": document["@context"]}, document)
    for found, name in zip(canonical, ("proof", "doc"), strict=True):
        given = {"proof": f"proofCanon{tail}.txt", "doc": f"canonDoc{tail}.txt"}[name]
        assert found.strip() == (folder_of_suite / given).read_bytes().strip()
        assert sha256(found).hexdigest() == (folder_of_suite / f"{name}Hash{tail}.txt").read_text().strip()
    combined = proofs.signed_bytes(document, proof, CANON.canonize)
    assert combined.hex() == (folder_of_suite / f"combinedHash{tail}.txt").read_text().strip()
    pair = read(folder / "keyPair.json")
    assert proofs.verify(document, proof, [multikey.decode(pair["publicKeyMultibase"])], CANON.canonize)
    key = multikey.decode_secret(pair["privateKeyMultibase"])
    rest = {name: value for name, value in options.items() if name not in ("type", "cryptosuite")}
    assert proofs.sign(document, suite, key, rest, CANON.canonize) == proof


@pytest.mark.parametrize(
    ("name", "count", "chained"),
    [("ProofSet1", 1, 0), ("ProofSet2", 2, 0), ("ProofChain1", 3, 1), ("ProofChain2", 4, 2)],
)
def test_proofs_of_sets_and_chains_verify_one_by_one(folder: Path, name: str, count: int, chained: int) -> None:
    """A chained proof signs the document with the proofs that it names."""
    document = read(folder / "proof-set-chain" / f"signed{name}.json")
    given = document.pop("proof")
    given = given if isinstance(given, list) else [given]
    found = 0
    for proof in given:
        named = proof.get("previousProof", [])
        named = named if isinstance(named, list) else [named]
        before = [each for each in given if each.get("id") in named]
        found += bool(before)
        whole = {**document, "proof": before} if before else document
        key = multikey.decode(proof["verificationMethod"].partition("#")[2])
        assert proofs.verify(whole, proof, [key], CANON.canonize) == key
    assert (len(given), found) == (count, chained)


def test_a_term_that_no_context_defines_is_refused_though_the_signature_holds_without_it(folder: Path) -> None:
    """pyld by itself leaves it out, and the signature of the vector verifies."""
    document = read(folder / "eddsa-rdfc-2022" / "employ" / "signedDataInt.json")
    proof = document.pop("proof")
    key = multikey.decode(proof["verificationMethod"].partition("#")[2])
    for place in (document, document["credentialSubject"]):
        place["extra"] = "a claim that nobody signed"
        with pytest.raises(NotAccepted) as refused:
            proofs.verify(document, proof, [key], CANON.canonize)
        assert refused.value.code == "undefined_term"
        del place["extra"]


def test_a_context_appended_after_signing_is_refused(folder: Path) -> None:
    """The specification's prefix rule would let it pass."""
    document = read(folder / "eddsa-jcs-2022" / "signedJCS.json")
    proof = document.pop("proof")
    key = multikey.decode(proof["verificationMethod"].partition("#")[2])
    document["@context"].append("https://evil.example/v1")
    with pytest.raises(NotAccepted) as refused:
        proofs.verify(document, proof, [key])
    assert refused.value.code == "context_not_allowed"


def test_did_key(folder: Path) -> None:
    vectors = json.loads((folder.parent / "did-key" / "test-vectors" / "ed25519-x25519.json").read_text())
    assert len(vectors) == 5
    for name, vector in vectors.items():
        [(method, key)] = resolve_key(name).items()
        assert method == vector["didDocument"]["verificationMethod"][0]["id"]
        assert multikey.encode(key) == name.removeprefix("did:key:")
        assert method in vector["didDocument"]["assertionMethod"]


@pytest.mark.parametrize("curve", ["bls12381", "nist-curves", "rsa", "secp256k1", "x25519"])
def test_keys_of_other_curves_are_refused(folder: Path, curve: str) -> None:
    text = (folder.parent / "did-key" / "test-vectors" / f"{curve}.json").read_text()
    names = set(re.findall(r'"(did:key:z\w+)"', text))
    assert names
    for name in names:
        with pytest.raises(StaylogError) as refused:
            resolve_key(name)
        assert refused.value.code == "key_not_acceptable"

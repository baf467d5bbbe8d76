"""The codes of refused statements and credentials: status, title, and what happened and what to do."""

IDENTITY: dict[str, tuple[int, str, str]] = {
    "malformed_json": (
        400,
        "Not JSON",
        "The body is not one JSON text. NaN, Infinity and anything after the value are refused as well.",
    ),
    "duplicate_key": (
        400,
        "Repeated member",
        "A member appears twice in one object. Readers differ in which one they take, so neither is taken.",
    ),
    "too_deep": (400, "Nested too deeply", "Objects and lists may stand in each other 14 levels deep."),
    "not_utf8": (
        400,
        "Not UTF-8",
        "The body is UTF-8 without a byte order mark, and no string has half of a surrogate pair.",
    ),
    "number_out_of_range": (
        400,
        "Number out of range",
        "Integers go up to 2^53 - 1, where every JSON reader agrees.",
    ),
    "schema_invalid": (
        400,
        "Not of the published form",
        "The body, or the credential in it, does not have the form of its JSON Schema; `errors` names each place. "
        "The schemas, at /schemas, are closed and exactly typed: a JSON-LD signature holds for many JSON "
        "documents, and only one of them is read.",
    ),
    "rating_out_of_range": (
        400,
        "Rating out of range",
        "A rating is 1 to 5 in steps of a half: 1, 1.5, 2 and so on. All but location are needed.",
    ),
    "text_too_long": (
        400,
        "Text too long",
        "A review and a private message have at most 2000 characters, a response 500. Nothing is cut off silently.",
    ),
    "date_invalid": (
        400,
        "Invalid date or time",
        "A date is YYYY-MM-DD and exists, a time has its offset from UTC, and check_out is after check_in.",
    ),
    "credential_by_reference": (
        400,
        "Credential by reference",
        "Send the credential itself, not the address where it can be fetched: fetching would tell its issuer of "
        "the stay.",
    ),
    "key_not_acceptable": (
        400,
        "Key not acceptable",
        "Keys are Ed25519, in the one spelling of a point of the large subgroup. Under other points a signature "
        "binds nothing, and no honest key generation makes them. Make a key with `staylog key new`.",
    ),
    "context_not_allowed": (
        403,
        "Contexts not allowed",
        "A credential has exactly [https://www.w3.org/ns/credentials/v2, https://openstr.org/contexts/v1], or "
        "these with https://w3id.org/security/suites/ed25519-2020/v1 as the second or third, and no other context "
        "anywhere. Contexts decide what a signature covers.",
    ),
    "undefined_term": (
        403,
        "Undefined term",
        "The credential has a member, an id or a type that its closed form does not have. What its contexts do "
        "not define a JSON-LD signature silently leaves out, so anybody could have added it. The form is at "
        "/schemas/credentials.v1.json.",
    ),
    "too_complex": (
        403,
        "Graph too complex",
        "The credential holds objects without an id that look alike and contain each other, or too many of them. "
        "Canonicalising it may take for ever.",
    ),
    "proof_type_not_supported": (
        403,
        "Proof type not supported",
        "A credential is signed by eddsa-jcs-2022, eddsa-rdfc-2022 or Ed25519Signature2020, a statement by eddsa- "
        "jcs-2022.",
    ),
    "proof_chain": (
        403,
        "Proof chain",
        "Proofs that build on each other (previousProof) are not supported. One proof by the issuer is enough.",
    ),
    "wrong_proof_purpose": (
        403,
        "Wrong proof purpose",
        "The purpose of the proof is assertionMethod. A proof that was made to log in somewhere must not become a "
        "review.",
    ),
    "proof_value_invalid": (
        403,
        "Proof value invalid",
        "proofValue is z and the base58btc of 64 bytes, in its one spelling.",
    ),
    "proof_invalid": (
        403,
        "Signature does not hold",
        "What was signed is not what was sent: a byte was changed after signing, or another key signed it.",
    ),
    "proof_time_invalid": (
        403,
        "Time of the proof",
        "The issuer's proof was made before the credential holds, or in the future, or has expired.",
    ),
    "bad_verification_method": (
        403,
        "Verification method",
        "verificationMethod is an absolute name of a key that may assert for its owner: for a did:key the DID, # "
        "and the key again; for a did:jwk the DID and #0; for a did:web one that its document lists under "
        "assertionMethod now, an Ed25519 key that has neither expired nor been revoked.",
    ),
    "wrong_domain": (
        403,
        "For another ledger",
        "`domain` of the proof must be the base URL of this ledger, letter by letter, without a slash at its end. "
        "A statement for another ledger does not count here.",
    ),
    "wrong_challenge": (
        403,
        "Wrong challenge",
        "`challenge` of the proof must be the nonce of the question that is answered.",
    ),
    "stale_proof": (
        403,
        "Not made now",
        "`created` of the proof must be within five minutes of now. Check the clock, and sign again.",
    ),
    "wrong_credential_type": (
        403,
        "Wrong credential type",
        "Another kind of credential is expected: OpenSTRGuestCredential of guests, OpenSTRHostCredential of hosts.",
    ),
    "jwt_not_acceptable": (
        403,
        "JWT not acceptable",
        "A credential is a JSON object with a Data Integrity proof. JSON Web Tokens are not read, whatever their "
        "header says.",
    ),
    "issuer_not_trusted": (
        403,
        "Issuer not trusted",
        "The credential's issuer is not one that this ledger trusts for this kind of credential and level. "
        "/v1/issuers lists those it trusts.",
    ),
    "issuer_key_mismatch": (
        403,
        "Not the issuer's key",
        "The verification method must be under the issuer: its DID, or an https address of the same origin.",
    ),
    "self_issued": (
        403,
        "Self-issued",
        "Nobody's identity is verified by themselves: issuer and subject are the same.",
    ),
    "missing_expiry": (403, "No expiry", "A credential must have validUntil."),
    "expired": (403, "Expired", "The credential is not valid any more. Ask its issuer for a new one."),
    "not_yet_valid": (403, "Not yet valid", "The credential is not valid yet: see validFrom."),
    "missing_status": (
        403,
        "No status",
        "A host's credential, and a guest's that holds for more than 90 days, must say where its revocation is "
        "published.",
    ),
    "listing_not_covered": (
        403,
        "Listing not covered",
        "The host's credential does not name this listing with right_to_let_verified true.",
    ),
    "status_invalid": (
        403,
        "Status list does not fit",
        "The status list that the credential names cannot be one for it: it is of another issuer or address, about "
        "another purpose, too short or too long, or not packed as W3C Bitstring Status List says. Its issuer has to "
        "mend that.",
    ),
    "credential_revoked": (
        403,
        "Revoked",
        "The issuer has revoked the credential, for good. Ask the issuer why, and for a new one.",
    ),
    "credential_suspended": (
        403,
        "Suspended",
        "The issuer has suspended the credential for now. Ask the issuer; once it counts again, send the same again, "
        "signed anew.",
    ),
    "address_not_allowed": (
        403,
        "Address not allowed",
        "What a DID, a credential or a status list names is asked for over https on port 443, by a full domain name, "
        "at addresses of the public internet, without redirects. This is another kind of address, and was not asked.",
    ),
    "did_document_invalid": (
        403,
        "DID document not valid",
        "The document of the did:web was fetched and cannot be used: its id must be the DID itself, and no name may "
        "stand for two keys. `staylog did document` makes one.",
    ),
    "holder_binding_unavailable": (
        403,
        "Holder has no key",
        "The subject of the credential is not a DID, so there is no key by which its holder could sign. Ask the "
        "issuer for a credential about your DID.",
    ),
    "holder_mismatch": (
        403,
        "Not the holder",
        "The statement must be signed by a key of the credential's subject. Having a copy of a credential is not "
        "being its holder.",
    ),
    "not_the_host": (403, "Not the host", "The statement must be signed by a key of the host's DID."),
}

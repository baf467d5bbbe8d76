"""Go's golang.org/x/mod/sumdb/note opens our notes and checkpoints, and refuses the forgeries that we refuse."""

from dataclasses import replace
from hashlib import sha256
from itertools import product

import pytest
from nacl.signing import SigningKey

from ledger.canon import base64
from ledger.errors import NotProved, StaylogError
from ledger.log.checkpoint import Checkpoint, open_checkpoint, sign_checkpoint
from ledger.log.cosignature import cosign
from ledger.log.note import ED25519, MAX_CHARACTERS, MAX_SIGNATURES, Note, Signature, Verifier, sign
from tests.bits import flip
from tests.interop.golang import Go, Request
from tests.ledger.log.worked_example import LOG, LOG_KEY, WITNESS, WITNESS_KEY

ORIGIN = LOG.name


def opening(note: str, *vkeys: str) -> Request:
    return {"op": "open_note", "note": note, "vkeys": vkeys or [str(LOG)]}


def we_open(note: str, vkey: str = str(LOG)) -> bool:
    try:
        Note.parse(note).require(Verifier.parse(vkey))
    except StaylogError:
        return False
    return True


def checkpoint(size: int = 5) -> Checkpoint:
    return Checkpoint(ORIGIN, size, sha256(b"%d" % size).digest())


def grease(number: int) -> Signature:
    """A signature nobody can check; 66 bytes need no padding in base64."""
    return Signature(f"grease.example/{number}", number.to_bytes(4), bytes([number]) * 62)


def unchecked(text: str) -> str:
    """A note that `sign` would not make: it reads back what it signs."""
    return str(Note(text, (Signature(ORIGIN, LOG.key_id, LOG_KEY.sign(text.encode()).signature),)))


def test_keys_have_the_same_texts(go: Go) -> None:
    names = [ORIGIN, "x", "bücher.example/登録", "a.example/-_.~!$&'()*,;=:@"]
    pairs = list(product(names, [bytes(range(32)), bytes(32), b"\xff" * 32]))
    keys = go.results({"op": "make_key", "name": name, "seed": base64.encode(seed)} for name, seed in pairs)
    for (name, seed), key in zip(pairs, keys, strict=True):
        verifier = Verifier(name, ED25519, bytes(SigningKey(seed).verify_key))
        assert key["vkey"] == str(verifier)
        assert key["skey"] == f"PRIVATE+KEY+{name}+{verifier.key_id.hex()}+{base64.encode(bytes([ED25519]) + seed)}"
        assert Verifier.parse(key["vkey"]) == verifier


def test_keys_are_refused_alike(go: Go) -> None:
    def vkey(name: str, key: bytes) -> str:
        return f"{name}+{sha256(name.encode() + bytes([10]) + key).hexdigest()[:8]}+{base64.encode(key)}"

    key = bytes([ED25519]) + LOG.public_key
    good = vkey(ORIGIN, key)
    assert good == str(LOG)
    bad = [
        vkey(ORIGIN, b""),
        vkey(ORIGIN, key[:-1]),
        vkey(ORIGIN, key + bytes(1)),
        vkey(ORIGIN, bytes([2]) + LOG.public_key),
        *(
            vkey(name, key)
            for name in ("", "a b", "a+b", "a\tb", "a\nb", "a\u00a0b", "a\u0085b", "a\u2028b", "a\u3000b")
        ),
        good.replace("+61e60577+", "+61e60578+"),
        good.replace("+61e60577+", "+61e6057+"),
        good.replace("+61e60577+", "+061e60577+"),
        good.replace("+61e60577+", "++"),
        good.replace("+61e60577", ""),
        good.replace("/zz", "_zz"),
        good + "=",
        good[:-1],
        ORIGIN,
        "",
    ]
    note = sign_checkpoint(checkpoint(), LOG_KEY)
    assert not any(go.accepts(opening(note, text) for text in bad))
    assert not any(we_open(note, text) for text in bad)


def test_go_opens_our_checkpoints(go: Go) -> None:
    checkpoints = [checkpoint(size) for size in (0, 1, 2, 255, 256, 65_537, 2**53 - 1)]
    opened = go.results(opening(sign_checkpoint(each, LOG_KEY)) for each in checkpoints)
    assert opened == [{"text": str(each), "signers": [ORIGIN], "unverified": []} for each in checkpoints]


def test_we_open_what_go_signs(go: Go) -> None:
    seed = base64.encode(bytes(LOG_KEY))
    [key] = go.results([{"op": "make_key", "name": ORIGIN, "seed": seed}])
    checkpoints = [checkpoint(size) for size in (0, 1, 5, 2**53 - 1)]
    notes = go.results({"op": "sign_note", "skey": key["skey"], "text": str(each)} for each in checkpoints)
    assert [open_checkpoint(note, Verifier.parse(key["vkey"])) for note in notes] == checkpoints
    # Ed25519 signatures are deterministic: Go's note is ours to the byte.
    assert notes == [sign_checkpoint(each, LOG_KEY) for each in checkpoints]


def test_signatures_of_others_are_no_obstacle(go: Go) -> None:
    ours = sign(str(checkpoint()), ORIGIN, LOG_KEY)
    [signature] = ours.signatures
    cosignature = cosign(ours.text, WITNESS.name, WITNESS_KEY, 1_771_147_800)
    other_key = replace(signature, key_id=flip(signature.key_id))
    other_name = replace(signature, name="other.example/log")
    variants = [
        (signature, cosignature),
        (grease(1), signature),
        (grease(1), other_key, grease(2), signature, other_name, cosignature, grease(3)),
        (*map(grease, range(1, MAX_SIGNATURES)), signature),
    ]
    notes = [str(replace(ours, signatures=variant)) for variant in variants]
    assert go.results(map(opening, notes)) == [
        {"text": ours.text, "signers": [ORIGIN], "unverified": [each.name for each in variant if each is not signature]}
        for variant in variants
    ]
    assert [open_checkpoint(note, LOG) for note in notes] == [checkpoint()] * len(notes)
    # Alone they are not enough.
    strangers = [str(replace(ours, signatures=(each,))) for each in (cosignature, grease(1), other_key, other_name)]
    assert not any(go.accepts(map(opening, strangers)))
    assert not any(map(we_open, strangers))
    # Go knows no keys of type 04: to it a cosignature is a stranger's for ever.
    assert go.ask([opening(notes[0], str(WITNESS))]) == [{"result": None, "error": "unknown verifier algorithm"}]


def test_go_verifies_the_message_a_witness_signs(go: Go) -> None:
    """Seen as a note of its own, signed by the same key under type 01."""
    text, time = str(checkpoint()), 1_771_147_800
    cosignature = cosign(text, WITNESS.name, WITNESS_KEY, time)
    assert cosignature.value[:8] == time.to_bytes(8)
    plain = replace(WITNESS, algorithm=ED25519)
    signature = Signature(plain.name, plain.key_id, cosignature.value[8:])
    messages = [f"cosignature/v1\ntime {time + late}\n{text}" for late in (0, 1)]
    assert go.accepts(opening(str(Note(message, (signature,))), str(plain)) for message in messages) == [True, False]


def test_changed_checkpoints_are_refused(go: Go) -> None:
    good = sign(str(checkpoint()), ORIGIN, LOG_KEY)
    [signature] = good.signatures
    changed = [
        replace(good, text=str(replace(checkpoint(), size=6))),
        replace(good, text=str(replace(checkpoint(), size=50))),
        replace(good, text=str(replace(checkpoint(), root=flip(checkpoint().root)))),
        replace(good, text=str(replace(checkpoint(), origin="other.example/log"))),
        replace(good, text=good.text + "extension\n"),
        replace(good, text=good.text + "\n"),
        *(replace(good, signatures=(replace(signature, value=flip(signature.value, bit)),)) for bit in range(512)),
        replace(good, signatures=(replace(signature, value=signature.value[:-1]),)),
        replace(good, signatures=(replace(signature, value=signature.value + bytes(1)),)),
        replace(good, signatures=(replace(signature, value=flip(signature.value)), signature)),
    ]
    verdicts = go.ask(opening(str(note)) for note in [good, *changed])
    refusals = [f"invalid signature for key {ORIGIN}+61e60577"] * len(changed)
    assert [verdict["error"] for verdict in verdicts] == ["", *refusals]
    for note in changed:
        with pytest.raises(NotProved) as refusal:
            open_checkpoint(str(note), LOG)
        assert refusal.value.code == "signature_invalid"


def test_notes_are_parsed_alike(go: Go) -> None:
    note = sign_checkpoint(checkpoint(), LOG_KEY)
    text, line = note.split("\n\n")
    blank_lines = str(sign("one\n\n\ntwo\n\n— three\n\n", ORIGIN, LOG_KEY))
    accepted = [
        note,
        blank_lines,
        note + grease(1).line(),
        str(sign("bücher 登録 \x7f\u0085\u2028\n", ORIGIN, LOG_KEY)),
        note + f"— grease.example/1 {base64.encode(bytes(5))}\n",
    ]
    refused = [
        "",
        "\n",
        "\n\n",
        text,
        f"{text}\n",
        f"{text}\n\n",
        f"{text}\n{line}",
        f"\n{line}",
        line,
        note[:-1],
        note + "\n",
        note + "\n" + line,
        note + "x\n",
        note.replace("—", "-"),
        note.replace("—", "–"),
        note.replace("— ", "—"),
        note.replace("— ", "—  "),
        note.replace("— ", " — "),
        note.replace(" YeYF", "  YeYF"),
        note.replace(" YeYF", "\u00a0YeYF"),
        note.replace("=\n", "= \n"),
        note.replace("=\n", "\n"),
        note.replace("\n", "\r\n"),
        *(
            f"{note}— {name} {base64.encode(bytes(5))}\n"
            for name in ("", "a b", "a+b", "a\u0085b", "a\u2028b", "a\u3000b")
        ),
        *(
            f"{note}— grease.example/1 {value}\n"
            for value in ("", "A", "====", "AAAA", "A_-A", base64.encode(bytes(4)))
        ),
        *(unchecked(f"a{control}b\n") for control in map(chr, range(32)) if control != "\n"),
    ]
    assert [each for each, yes in zip(accepted, go.accepts(map(opening, accepted)), strict=True) if not yes] == []
    assert [each for each, yes in zip(refused, go.accepts(map(opening, refused)), strict=True) if yes] == []
    assert [each for each in accepted if not we_open(each)] == []
    assert [each for each in refused if we_open(each)] == []


def test_every_small_change_of_a_note_is_judged_alike(go: Go) -> None:
    ours = sign_checkpoint(checkpoint(), LOG_KEY)
    note = ours + grease(1).line()
    others = ["", *"Ab+/=— \n\té"]
    changed = [note[:at] + other + note[at + 1 :] for at in range(len(note)) for other in (*others, note[at] * 2)]
    verdicts = go.accepts(map(opening, changed))
    assert verdicts == [we_open(each) for each in changed]
    # The stranger's signature may become another one; everything before it stands.
    assert sum(verdicts) > 400
    assert all(each.startswith(ours) for each, yes in zip(changed, verdicts, strict=True) if yes)


def test_where_we_are_stricter_than_go(go: Go) -> None:
    note = sign(str(checkpoint()), ORIGIN, LOG_KEY)
    [signature] = note.signatures
    vkey, text = str(LOG), str(note)
    assert text.endswith("c=\n")
    forged = replace(signature, value=flip(signature.value))
    cases = {
        "base64 with unused bits set": (text.replace("c=\n", "d=\n"), vkey, "note_malformed"),
        "a key ID in capitals": (text, vkey.replace("61e60577", "61E60577"), "vkey_malformed"),
        "a bad signature after a good one": (text + forged.line(), vkey, "signature_invalid"),
        "more signatures": (text + grease(1).line() * MAX_SIGNATURES, vkey, "note_malformed"),
        "an empty line as the whole text": (unchecked("\n"), vkey, "note_malformed"),
        "a very long text": (unchecked("a" * MAX_CHARACTERS + "\n"), vkey, "note_malformed"),
    }
    assert all(go.accepts(opening(note_text, vkey_text) for note_text, vkey_text, _ in cases.values()))
    for what, (note_text, vkey_text, code) in cases.items():
        with pytest.raises(StaylogError) as refusal:
            Note.parse(note_text).require(Verifier.parse(vkey_text))
        assert (what, refusal.value.code) == (what, code)


def test_both_accept_the_example_of_signed_note(go: Go) -> None:
    vkey = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
    value = "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM="
    note = f"This is an example message.\n\n— example.com/foo {value}\n"
    assert go.accepts([opening(note, vkey), opening(note.replace("an", "no"), vkey)]) == [True, False]
    assert we_open(note, vkey)

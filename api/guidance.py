"""What the front page says can be done here: verify, submit, respond, watch, look around."""

from api.pages import code, link
from ledger.pictures.markup import terms, visible_lines

EXAMPLE = "did:web:cottage.example"
_ASKING = f"""<p>Type a host's DID into the {link("/verify", "verifier")}: it asks this log, checks every step of the
proof in your browser, and shows what it did. It is one file that you can keep and read. It also takes receipts and
answers that you have already. A link with the DID behind a {code("#")} names the host, as in
{code(f"/verify#{EXAMPLE}")}.</p>
<p>Or trust no page at all, and check an answer on your own machine:</p>
"""
_VERIFIERS = f"""<p>{code("standalone_verify.py")} is one file of 330 lines in this project's folder {code("audits")}.
It needs only PyNaCl, and is meant to be read first. The project's own command does the same, and reads receipts and
checkpoints as well:</p>
"""
_SUBMITTING = f"""<h3>As a guest</h3>
<p>You need a key, a credential from an issuer that counts here ({link("/v1/issuers")}), and the stay receipt that the
host gave you at booking time. Sign the review with the key that the credential is about, and send all of it to
{code("POST /v1/reviews")}; {code("staylog review submit")} does that from a terminal. The answer is a receipt: with it
you prove, offline and for ever, that your review is in the log. Whoever is refused after showing who they are gets the
refusal signed.</p>
<p>Without a receipt, what host or guest said before check-in shows the stay ({code("POST /v1/bookings")},
{code("staylog booking")}); else the host is asked. One that keeps silent for three days prevents nothing: the review
is published as unconfirmed, and the silence is counted.</p>
<h3>As a host</h3>
<p>You respond to a review once, within 30 days, signed with a key of your DID:
{code("POST /v1/reviews/{review_id}/response")}, or {code("staylog review respond")}. You cannot have a review changed
or removed. Nor can the operator, who can only withdraw a text where the law demands it, and that is an entry for all
to see.</p>
"""
_WATCHING = """<p>An answer shows that it follows from what the operator signed. That every host's record follows from
the entries, and that everybody is shown the same log, is seen by those who watch. You can be one of them, with the key
as above:</p>
"""
_LINKS = (
    ("/verify", "check a receipt or what the log says about a host, in your browser", ""),
    ("/schema", "all operations and their parameters; also as", "/schema/openapi.json"),
    ("/v1/log/checkpoint", "the newest signed checkpoint; all of them at", "/v1/log/checkpoints"),
    ("/v1/log/statistics", "how much the log holds, day by day", ""),
    ("/v1/log/witnesses", "who watches the log", ""),
    ("/v1/log/entries", "the entries; as tiles under", "/log/checkpoint"),
    ("/v1/log/openings/0", "the texts of the first 256 entries, but for those that were redacted", ""),
    ("/v1/log/key", "the key that signs checkpoints; all keys in", "/.well-known/did.json"),
    ("/v1/policy", "what is let in", ""),
    ("/v1/issuers", "whose credentials count", ""),
    ("/schemas", "JSON Schemas of entries, records, answers, receipts, credentials and statements", ""),
    ("/problems", "every error code, what it means and what to do", ""),
    ("/health", "whether the log is well; counters at", "/metrics"),
)


def verify(base_url: str, vkey: str) -> str:
    answer = f"KEY='{vkey}'\ncurl -s '{base_url}/v1/hosts/{EXAMPLE}/reputation?proof=full' > answer.json"
    check = f'answer.json --key "$KEY" --host {EXAMPLE}'
    return (
        f"{_ASKING}<pre>{visible_lines(answer)}\npython standalone_verify.py {visible_lines(check)}</pre>\n"
        f"{_VERIFIERS}<pre>staylog verify {visible_lines(check)}</pre>\n"
        "<p>Then change a rating in the file, or delete an event, and check it again.</p>\n"
    )


def submit() -> str:
    return _SUBMITTING


def watch(base_url: str) -> str:
    key = '--key "$KEY"'
    ways = {
        "Audit it": (
            "Replay every entry, derive every host's record again, and get any lie as a file that convicts the log.",
            f"staylog audit {base_url} {key} --state audit",
        ),
        "Monitor it": (
            "Follow the log, compare it with what others are shown, and be told of every new event of a host.",
            f"staylog monitor {base_url} {key} --host {EXAMPLE}",
        ),
        "Mirror it": (
            "Keep a copy that any web server can serve, and any auditor can use when this service is gone.",
            f"staylog mirror {base_url} copy {key}",
        ),
        "Witness it": (
            "Run the small service that the section above tells of, and hand its key to this log's operator.",
            "staylog witness init --name witness.example/w1\n" + 'staylog witness trust "$KEY"\nstaylog witness serve',
        ),
    }
    parts = (f"<h3>{way}</h3>\n<p>{says}</p>\n<pre>{visible_lines(run)}</pre>\n" for way, (says, run) in ways.items())
    return _WATCHING + "".join(parts)


def look_around() -> str:
    listed = ((link(target), f"{text} {link(more) if more else ''}".strip()) for target, text, more in _LINKS)
    return terms("about", listed)

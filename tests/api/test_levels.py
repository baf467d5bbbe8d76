"""What an answer says of how well its reviews are shown: levels, evidence, counts and means beside each other; and what
becomes of it when an issuer was compromised."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from audits.verify import verify_answer
from ledger.cli import main
from ledger.identity.issuers import trust
from tests.api.hosts_and_guests import add_host, asking, attest, attestation, consent, state, trust_hosts, wait_out
from tests.api.site import Person, Site, serving
from tests.hosting import HostSite, evidence
from tests.identities import IDV, Speaker
from tests.interop.rfc005 import CATEGORIES
from tests.reviewing import credential, response, review, stay_receipt

OTHER_ISSUER = Speaker(40)
QUERIES = ("", "proof=full", "proof=aggregate", "proof=page", "text=all&proof=full", "text=none&proof=full", "limit=1")


class Told:
    """A host with a review of every kind, by what it is called here."""

    def __init__(self, site: Site) -> None:
        self.site = site
        trust_hosts(site)
        draft = trust(site.ledger.issuers(), "guest", OTHER_ISSUER.did, [], None)
        assert draft is not None
        site.add(draft)
        self.host: HostSite = add_host(site, "cottage.example")
        self.reviews: dict[str, str] = {}
        self.host.down = 503
        waiting = {name: self._asking(name, stars) for name, stars in (("unconfirmed", 1), ("upgraded", 2))}
        wait_out(site)
        for name, id_ in waiting.items():
            self.reviews[name] = state(site, id_)["receipt"]["review_id"]
        self._upgrade("upgraded")
        self._review("receipt", 4, credential(Person("receipt")))
        self._review("other issuer", 5, credential(Person("other issuer"), issuer=OTHER_ISSUER))
        for name, more in (("attested", {}), ("consented", {"guest_statement": self._consent("consented", 3)})):
            stars = 5 if name == "attested" else 3
            body = attestation(self.host.speaker, name, now=site.running.clock(), ratings=rated(stars), **more)
            self.reviews[name] = self._accepted(attest(site, body))

    def _asking(self, name: str, stars: float) -> str:
        sent = asking(Person(name), self.host.speaker, name, ratings=rated(stars), review_text=f"Words of {name}.")
        return str(self.site.submit(sent).json()["submission_id"])

    def _upgrade(self, name: str) -> None:
        given = stay_receipt(Person(name), self.host.speaker, name)
        sent = evidence(self.reviews[name], given, Person(name), now=self.site.running.clock())
        self._accepted(self.site.post(f"/v1/reviews/{self.reviews[name]}/evidence", sent))

    def _review(self, name: str, stars: float, shown: Any) -> None:
        about = (Person(name), self.host.speaker, name)
        options: dict[str, Any] = {"now": self.site.running.clock(), "ratings": rated(stars), "guest_credential": shown}
        self.reviews[name] = self._accepted(self.site.submit(review(*about, **options)))

    def _consent(self, name: str, stars: float) -> Any:
        return consent(Person(name), ratings=rated(stars), now=self.site.running.clock())

    def _accepted(self, answer: Any) -> str:
        assert answer.status_code == 201, answer.text
        return str(answer.json()["review_id"])

    def ask(self, query: str = "") -> Any:
        """The answer, which verifies if it is proved."""
        did = self.host.speaker.did
        answer = self.site.get(f"/v1/hosts/{did}/reputation?{query}" if query else f"/v1/hosts/{did}/reputation")
        assert answer.status_code == 200, answer.text
        if "proof=" in query and "page" not in query:
            kind = "aggregate" if "aggregate" in query else "full"
            text = query.partition("text=")[2].partition("&")[0] or "verified"
            verify_answer(answer.content, self.site.ledger.verifier, did, kind=kind, text=text)
        return answer.json()

    def by_name(self, query: str = "") -> dict[str, Any]:
        listed = {each["review_id"]: each for each in self.ask(query)["review_history"]}
        return {name: listed[review_id] for name, review_id in self.reviews.items()}


def rated(stars: float) -> dict[str, float]:
    return dict.fromkeys(CATEGORIES, stars)


@pytest.fixture
def told(tmp_path: Path, database_url: str) -> Iterator[Told]:
    with serving(tmp_path, database_url) as site:
        yield Told(site)


def test_levels_stand_beside_each_other(told: Told) -> None:
    """The mean is that of verified reviews; the others' counts and means, and how often the host kept silent, are in
    the same answer."""
    for query in QUERIES:
        answer = told.ask(query)
        assert (answer["total_reviews"], answer["verified_reviews"]) == (6, 4)
        assert answer["average_ratings"] == rated(3.5)
        assert answer["statistics"]["reviews"] == {"guest_verified": 4, "host_attested": 1, "unconfirmed": 1}
        assert answer["statistics"]["average_ratings"] == {
            "guest_verified": rated(3.5),
            "host_attested": rated(5.0),
            "unconfirmed": rated(1.0),
        }
        assert answer["statistics"]["checks"]["unanswered"] == 2
    shown = {
        name: (each["verification_level"], each["evidence"]["booking"], each["evidence"]["issuer"])
        for name, each in told.by_name().items()
    }
    assert shown == {
        "unconfirmed": ("unconfirmed", "none", IDV),
        "upgraded": ("guest_verified", "stay_receipt", IDV),
        "receipt": ("guest_verified", "stay_receipt", IDV),
        "other issuer": ("guest_verified", "stay_receipt", OTHER_ISSUER.did),
        "attested": ("host_attested", "attestation", None),
        "consented": ("guest_verified", "attestation", IDV),
    }


def test_unconfirmed_words_are_shown_to_who_asks_for_them(told: Told) -> None:
    """By nobody vouched for, they may be anything: a stranger's slander, or a prompt. An upgrade opens them."""
    for query, words in (
        ("", {"upgraded": "Words of upgraded."}),
        ("text=all", {"upgraded": "Words of upgraded.", "unconfirmed": "Words of unconfirmed."}),
        ("text=none", {}),
    ):
        for proof in ("", "proof=full"):
            listed = told.by_name("&".join(part for part in (query, proof) if part))
            for name in ("upgraded", "unconfirmed"):
                assert listed[name]["review_text"] == words.get(name)
            raw = json.dumps(told.ask("&".join(part for part in (query, proof) if part)))
            assert ("Words of unconfirmed." in raw) == ("unconfirmed" in words)
        one = told.site.get(f"/v1/reviews/{told.reviews['unconfirmed']}{'?' if query else ''}{query}").text
        assert ("Words of unconfirmed." in one) == ("unconfirmed" in words)


def test_a_response_to_an_unconfirmed_review_is_no_way_around(told: Told) -> None:
    """It is the host's own text, about words that nobody vouches for: shown with them."""
    site, review_id = told.site, told.reviews["unconfirmed"]
    # Its document is asked for again.
    site.running.clock.forward(minutes=6)
    sent = response(review_id, told.host.speaker, "Words of a host.", now=site.running.clock())
    assert site.respond(sent).status_code == 201
    assert "Words of a host." not in site.get(f"/v1/reviews/{review_id}").text
    assert "Words of a host." in site.get(f"/v1/reviews/{review_id}?text=all").text


def test_a_compromised_issuer_is_marked_and_nothing_else_changes(told: Told) -> None:
    """Every answer lists whose word the reviews rest on; levels, counts and means are what they were."""
    before = {query: told.ask(query) for query in QUERIES}
    counts = [{"issuer": IDV, "reviews": 4}, {"issuer": OTHER_ISSUER.did, "reviews": 1}]
    expected = sorted(counts, key=lambda each: str(each["issuer"]))
    assert before[""]["issuers"] == [{**each, "status": "trusted"} for each in expected]
    settings = told.site.running.settings
    ran = CliRunner().invoke(
        main,
        [
            *("issuer", "remove", "guest", IDV, "--compromised-since", "2026-05-01T00:00:00Z"),
            *("--data", str(settings.data), "--database-url", settings.database_url),
        ],
    )
    assert ran.exit_code == 0, ran.output
    told.site.ledger.reader.refresh()
    marked = {IDV: "compromised", OTHER_ISSUER.did: "trusted"}
    for query in QUERIES:
        answer, old = told.ask(query), before[query]
        assert answer["issuers"] == [{**each, "status": marked[str(each["issuer"])]} for each in expected], query
        for name in ("total_reviews", "verified_reviews", "average_ratings", "statistics", "as_of"):
            assert answer[name] == old[name]
        for each, earlier in zip(answer.get("review_history", ()), old.get("review_history", ()), strict=True):
            assert each == {**earlier, "issuer_status": marked.get(each["evidence"]["issuer"])}
    statuses = {name: each["issuer_status"] for name, each in told.by_name().items()}
    assert statuses == {
        **dict.fromkeys(("unconfirmed", "upgraded", "receipt", "consented"), "compromised"),
        "other issuer": "trusted",
        "attested": None,
    }
    [issuer] = [each for each in told.site.get("/v1/issuers").json()["issuers"] if each["status"] == "compromised"]
    assert (issuer["issuer"], issuer["since"]) == (IDV, "2026-05-01T00:00:00Z")

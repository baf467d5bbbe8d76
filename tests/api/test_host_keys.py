"""What everybody is told when the keys of a host change, though nothing happens in the log."""

from pathlib import Path

from ledger.canon.times import format_time
from tests.api.site import Site, serving
from tests.identities import Speaker, did_document
from tests.reviewing import GUESTS, HOST, review, stay_receipt

NAME = "did:web:cottage.example"
OLD, NEW = Speaker(3, NAME, "#key-1"), Speaker(13, NAME, "#key-2")


def publish(site: Site, *speakers: Speaker) -> None:
    site.outside.put("https://cottage.example/.well-known/did.json", did_document(*speakers))


def test_an_answer_says_when_the_keys_changed(tmp_path: Path) -> None:
    with serving(tmp_path) as site:
        publish(site, OLD)
        site.review(GUESTS[0], OLD)
        first = site.get(f"/v1/hosts/{NAME}/reputation")
        assert first.json()["host_key_changed_at"] is None
        assert site.reputation(HOST)["host_key_changed_at"] is None
        publish(site, NEW)
        site.running.clock.forward(minutes=6)
        size, now = site.size, site.running.clock()
        # Refused, so that the log stays as it is; the new document was seen all the same.
        unseen = stay_receipt(GUESTS[1], Speaker(77, NAME, "#key-7"))
        refused = site.submit(review(GUESTS[1], OLD, now=now, booking_evidence=unseen))
        assert refused.json()["code"] == "booking_unverifiable"
        assert site.size == size
        # No answer from before is given again, and its tag holds no more.
        for query in ("", "?proof=full"):
            assert site.reputation(OLD, query.removeprefix("?"))["host_key_changed_at"] == format_time(now)
        again = site.client.get(f"/v1/hosts/{NAME}/reputation", headers={"if-none-match": first.headers["etag"]})
        assert again.status_code == 200
        assert (
            site.client.get(
                f"/v1/hosts/{NAME}/reputation", headers={"if-none-match": again.headers["etag"]}
            ).status_code
            == 304
        )
        assert site.reputation(HOST)["host_key_changed_at"] is None

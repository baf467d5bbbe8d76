"""OpenSTR RFC-005 7.4, the record of a host, and 7.5, its responses."""

import re
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest

from audits.verify import verify_answer
from tests.api.site import Person, Site, problem
from tests.identities import RATINGS, Speaker
from tests.interop.rfc005 import CATEGORIES, EXAMPLE, HOUSE
from tests.reviewing import resigned, response, stay_receipt
from tests.running import Writer

# 7.4 Reputation record structure


def test_every_member_of_the_example_is_there(site: Site, host: Person, guest: Person) -> None:
    """7.4 the record: each member of the RFC's example, of the same JSON type, and with the meaning that it has there."""
    stays = [("B-1", "2026-03-01", "2026-03-04"), ("B-2", "2026-02-10", "2026-02-14")]
    receipts = []
    for reference, check_in, check_out in stays:
        dates: dict[str, Any] = {"check_in": check_in, "check_out": check_out}
        evidence = stay_receipt(guest, host, reference, **dates)
        receipts.append(site.review(guest, host, reference, booking_evidence=evidence, **dates))
    record = site.reputation(host)
    assert same_form(EXAMPLE, record) == []
    assert record["host_did"] == host.did
    # Since when there are verified stays: not since when somebody says so.
    assert record["host_since"] == "2026-02-10"
    assert (record["total_reviews"], record["verified_reviews"]) == (2, 2)
    assert record["average_ratings"] == {name: float(stars) for name, stars in RATINGS.items()}
    assert {
        name: value for name, value in record["review_history"][0].items() if name in EXAMPLE["review_history"][0]
    } == {
        "review_id": receipts[1]["review_id"],
        "listing_id": "rose-cottage",
        "check_in": "2026-02-10",
        "check_out": "2026-02-14",
        "ratings": RATINGS,
        "review_text": "Quiet.\nDry.",
        "submitted_at": "2026-06-01T12:00:00Z",
        "guest_credential_issuer": "idv.example",
        "host_response": None,
    }


def same_form(example: Any, found: Any, where: str = "record") -> list[str]:
    """Where `found` has not the form of the example; null for a number or text is the RFC's way to say that there is
    none, and more members are allowed."""
    if isinstance(example, dict):
        if not isinstance(found, dict):
            return [where]
        return [
            wrong
            for name, inner in example.items()
            for wrong in (same_form(inner, found[name], f"{where}.{name}") if name in found else [f"{where}.{name}"])
        ]
    if isinstance(example, list):
        return (
            [where]
            if not isinstance(found, list)
            else [wrong for item in found for wrong in same_form(example[0], item, where)]
        )
    if isinstance(example, bool) or example is None:
        return [] if found is example else [where]
    if isinstance(example, int | float):
        return [] if type(found) in (int, float) else [where]
    for form in (r"\d{4}-\d\d-\d\d", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"):
        if re.fullmatch(form, example):
            return [] if isinstance(found, str) and re.fullmatch(form, found) else [where]
    return [] if isinstance(found, str) else [where]


def test_a_host_without_reviews(site: Site, host: Person) -> None:
    """7.4 the record: of a host that nobody has reviewed it has zeros and nulls, and can be proved."""
    record = site.reputation(host)
    assert {name: record[name] for name in EXAMPLE} == {
        "host_did": host.did,
        "host_since": None,
        "total_reviews": 0,
        "verified_reviews": 0,
        "average_ratings": dict.fromkeys(CATEGORIES),
        "review_history": [],
    }
    answer = site.get(f"/v1/hosts/{host.did}/reputation?proof=full").content
    verify_answer(answer, site.ledger.verifier, host.did)


def half_up(stars: list[float]) -> float:
    mean = sum(map(Decimal, map(str, stars)), Decimal(0)) / len(stars)
    return float(mean.quantize(Decimal("0.1"), ROUND_HALF_UP))


# For each category the ratings of some reviews: means that lie on a half, next to it, or that binary fractions miss.
COLUMNS: list[dict[str, list[float]]] = [
    {
        "overall": [4.5, 4.0],
        "accuracy": [1.0, 1.5],
        "cleanliness": [5.0, 4.5],
        "communication": [2.0, 2.5],
        "location": [3.5, 3.0],
        "value": [5.0, 1.0],
    },
    {
        "overall": [5.0, 5.0, 4.5],
        "accuracy": [1.0, 1.0, 1.5],
        "cleanliness": [4.5, 4.5, 5.0],
        "communication": [3.0, 3.5, 3.5],
        "location": [1.0, 5.0, 4.5],
        "value": [2.0, 2.0, 2.0],
    },
    {
        # 4.35, 3.05, 1.15, 4.95, 2.05 and 1.05: each but one is a little less as a binary fraction.
        "overall": [4.5] * 7 + [4.0] * 3,
        "accuracy": [3.0] * 9 + [3.5],
        "cleanliness": [1.0] * 7 + [1.5] * 3,
        "communication": [5.0] * 9 + [4.5],
        "location": [2.0] * 9 + [2.5],
        "value": [1.0] * 9 + [1.5],
    },
]


@pytest.mark.parametrize("columns", COLUMNS, ids=lambda columns: f"{len(columns['overall'])} reviews")
def test_averages_are_exact(site: Site, host: Person, guest: Person, columns: dict[str, list[float]]) -> None:
    """7.4 averages: the mean of the verified reviews to one decimal; exactly in between is rounded up."""
    for number in range(len(columns["overall"])):
        ratings = {category: stars[number] for category, stars in columns.items()}
        site.review(guest, host, f"B-{number}", ratings=ratings)
    expected = {category: half_up(stars) for category, stars in columns.items()}
    assert site.reputation(host)["average_ratings"] == expected
    if len(columns["overall"]) == 2:
        assert (expected["overall"], expected["accuracy"], expected["cleanliness"]) == (4.3, 1.3, 4.8)
    if len(columns["overall"]) == 10:
        assert (expected["overall"], expected["cleanliness"]) == (4.4, 1.2)


def test_the_average_of_what_not_all_rate(site: Site, host: Person, guest: Person) -> None:
    """7.4 averages: location is the mean over those who rated it, and null while nobody has."""
    without = {name: stars for name, stars in RATINGS.items() if name != "location"}
    site.review(guest, host, "B-1", ratings=without)
    assert site.reputation(host)["average_ratings"]["location"] is None
    site.review(guest, host, "B-2", ratings=without | {"location": 4.5})
    site.review(guest, host, "B-3", ratings=without)
    site.review(guest, host, "B-4", ratings=without | {"location": 4})
    record = site.reputation(host)
    assert record["average_ratings"]["location"] == half_up([4.5, 4]) == 4.3
    assert record["statistics"]["ratings"]["guest_verified"]["location"] == [2, 17]


def test_levels_are_never_mixed(own: Site, host: Person, guest: Person) -> None:
    """7.4 averages: over verified reviews alone. What only the host attests (7.6), or nobody, is counted beside."""
    writer = Writer(seed=5)
    stars = {"guest_verified": [4.5, 4.0], "host_attested": [5.0, 5.0, 5.0], "unconfirmed": [1.0]}
    for level in ("host_attested", "unconfirmed"):
        for number, each in enumerate(stars[level]):
            own.add(writer.review(host.did, level, ratings=dict.fromkeys(CATEGORIES, each)))
            if number < 2 and level == "host_attested":
                ratings = dict.fromkeys(CATEGORIES, stars["guest_verified"][number])
                own.review(guest, host, f"B-{number}", ratings=ratings)
    record = own.reputation(host, "limit=100")
    assert (record["total_reviews"], record["verified_reviews"]) == (6, 2)
    assert record["average_ratings"] == dict.fromkeys(CATEGORIES, 4.3)
    statistics = record["statistics"]
    assert statistics["reviews"] == {level: len(given) for level, given in stars.items()}
    assert statistics["average_ratings"] == {
        level: dict.fromkeys(CATEGORIES, half_up(given)) for level, given in stars.items()
    }
    assert sum(statistics["histogram"]) == 2
    # The writer's stays are older; what only the host attests gives no seniority.
    assert record["host_since"] == "2026-05-20"
    levels = [listed["verification_level"] for listed in record["review_history"]]
    assert sorted(levels) == sorted(level for level, given in stars.items() for _ in given)
    answer = own.get(f"/v1/hosts/{host.did}/reputation?proof=full").content
    verify_answer(answer, own.ledger.verifier, host.did)


def test_only_other_levels(site: Site, host: Person) -> None:
    """7.4 averages: null without a verified review, however many others there are."""
    site.add(Writer(seed=6).review(host.did, "host_attested"))
    record = site.reputation(host)
    assert (record["total_reviews"], record["verified_reviews"], record["host_since"]) == (1, 0, None)
    assert record["average_ratings"] == dict.fromkeys(CATEGORIES)


def test_host_response_is_null_or_an_object(site: Site, host: Person, guest: Person) -> None:
    """7.4 host_response: null, or what the host said and when."""
    first, second = site.review(guest, host), site.review(guest, host, "B-2")
    site.response(first["review_id"], host, "Thank you; the tap is new.")
    responses = {listed["review_id"]: listed["host_response"] for listed in site.reputation(host)["review_history"]}
    assert responses == {
        second["review_id"]: None,
        first["review_id"]: {"response_text": "Thank you; the tap is new.", "submitted_at": "2026-06-01T12:00:00Z"},
    }


def test_the_newest_review_is_first(own: Site, host: Person, guest: Person) -> None:
    """7.4 review_history: by when a review came, the newest first; whole, if all pages are read."""
    made = []
    for number in range(5):
        own.running.clock.forward(minutes=1)
        made.append(own.review(guest, host, f"B-{number}")["review_id"])
    own.response(made[0], host)
    listed, cursor = [], ""
    while cursor is not None:
        page = own.reputation(host, f"limit=2{cursor and f'&cursor={cursor}'}")
        listed += page["review_history"]
        cursor = page["next_cursor"]
    assert [each["review_id"] for each in listed] == made[::-1]
    times = [datetime.fromisoformat(each["submitted_at"]) for each in listed]
    assert times == sorted(times, reverse=True)


# 7.5 Host response


def test_a_response_within_30_days(own: Site, host: Person, guest: Person) -> None:
    """7.5 30 days: to the second, from the review's submission."""
    made = [own.review(guest, host, reference)["review_id"] for reference in ("B-1", "B-2")]
    own.running.clock.forward(days=30)
    own.response(made[0], host)
    own.running.clock.forward(seconds=1)
    late = response(made[1], host, now=own.running.clock())
    problem(own.respond(late), "response_window_closed")
    assert own.reputation(host)["review_history"][0]["host_response"] is None


@pytest.mark.parametrize("character", ["x", "é", HOUSE], ids=["ASCII", "Latin", "astral"])
def test_500_characters(site: Site, host: Person, guest: Person, character: str) -> None:
    """7.5 500 characters: code points, and at least one."""
    review_id = site.review(guest, host)["review_id"]
    problem(site.respond(response(review_id, host, character * 501)), "text_too_long")
    problem(site.respond(response(review_id, host, "")), "schema_invalid")
    site.response(review_id, host, character * 500)
    assert site.reputation(host)["review_history"][0]["host_response"]["response_text"] == character * 500


def test_one_response(own: Site, host: Person, guest: Person) -> None:
    """7.5 once: "a public response", which stays as it is. The same again gets the same receipt."""
    review_id = own.review(guest, host)["review_id"]
    sent = response(review_id, host)
    first = own.respond(sent)
    problem(own.respond(response(review_id, host, "Thanks, all of you.")), "already_responded")
    again = own.respond(sent)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert own.reputation(host)["review_history"][0]["host_response"]["response_text"] == "Thank you."
    assert own.reputation(host)["statistics"]["responses"] == 1


def test_only_the_host_responds(site: Site, host: Person, guest: Person) -> None:
    """7.5 the host: who is reviewed, by the key of its DID: no other host, no guest, nobody in its name."""
    review_id = site.review(guest, host)["review_id"]
    in_its_name = resigned(response(review_id, host), Speaker(4, host.did, f"#{host.multikey}"))
    for sent, code in (
        (response(review_id, Person("another host")), "not_the_host"),
        (response(review_id, guest), "not_the_host"),
        (resigned(response(review_id, host), guest), "not_the_host"),
        (in_its_name, "proof_invalid"),
        (response(review_id, host) | {"response_text": "Liar."}, "proof_invalid"),
        ({name: value for name, value in response(review_id, host).items() if name != "proof"}, "schema_invalid"),
    ):
        problem(site.respond(sent), code)
    assert site.reputation(host)["review_history"][0]["host_response"] is None
    problem(site.respond(response("rev-" + "a" * 26, host)), "review_not_found")


def test_responses_are_returned_to_agents(site: Site, host: Person, guest: Person) -> None:
    """7.5 returned: with the review, in the record and by itself, whoever asks."""
    review_id = site.review(guest, host)["review_id"]
    receipt = site.response(review_id, host, "We are sorry about the tap.")
    for query in ("", "proof=full"):
        [listed] = site.reputation(host, query)["review_history"]
        assert listed["host_response"]["response_text"] == "We are sorry about the tap."
    shown = site.get(f"/v1/reviews/{review_id}").json()["entries"][1]
    assert (shown["index"], shown["opening"]["text"]) == (receipt["index"], "We are sorry about the tap.")

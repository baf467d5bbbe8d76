"""A service whose clock is not confirmed: it says so, reads go on, and nothing is taken in."""

from pathlib import Path

from tests.api.hosts_and_guests import attest, attestation
from tests.api.site import problem, serving
from tests.reviewing import HOST, review
from tests.running import Running
from tests.waiting import until

LEDGER = "https://ledger.example"


def test_a_clock_that_jumps_ahead_puts_everything_off_until_it_is_right(tmp_path: Path) -> None:
    with serving(tmp_path, ledger_url=LEDGER) as site:
        assert site.get("/health").json()["log_time_ahead"] == 0
        first = site.review()
        size = site.size
        site.running.clock.jump(days=40)
        until(lambda: site.get("/health").status_code == 503)
        health = site.get("/health")
        assert "--accept-clock" in problem(health, "clock_unconfirmed")["detail"]
        assert health.headers["retry-after"] == "60"
        before = site.refusals().get("clock_unconfirmed", 0)
        body = review(reference="B-2", now=site.running.clock())
        refused = site.submit(body)
        assert "refusal" not in problem(refused, "clock_unconfirmed")
        assert refused.headers["retry-after"] == "60"
        problem(attest(site, attestation(now=site.running.clock())), "clock_unconfirmed")
        assert site.refusals()["clock_unconfirmed"] == before + 2
        assert site.size == size
        assert site.get(f"/v1/reviews/{first['review_id']}").status_code == 200
        assert site.reputation(HOST)["total_reviews"] == 1
        site.running.clock.jump(days=-40)
        until(lambda: site.get("/health").status_code == 200)
        assert site.submit(review(reference="B-2", now=site.running.clock())).status_code in (201, 409)


def test_a_service_that_was_away_for_more_than_a_day_starts_and_takes_nothing_in(tmp_path: Path) -> None:
    def away(running: Running) -> None:
        running.clock.forward(hours=26)
        running.reopen()

    with serving(tmp_path, prepare=away, ledger_url=LEDGER) as site:
        problem(site.get("/health"), "clock_unconfirmed")
        problem(site.submit(review(now=site.running.clock())), "clock_unconfirmed")
        assert site.get("/log/checkpoint").status_code == 200
        assert site.get("/").status_code == 200


def test_health_says_by_how_much_the_logs_time_is_ahead(tmp_path: Path) -> None:
    with serving(tmp_path) as site:
        site.running.clock.jump(days=40)
        site.review()
        site.running.clock.jump(days=-40)
        health = site.get("/health")
        assert (health.status_code, health.json()["log_time_ahead"]) == (200, 40 * 86400)


def test_the_problem_pages_say_what_to_do(tmp_path: Path) -> None:
    with serving(tmp_path) as site:
        assert "--accept-clock" in site.get("/problems/clock_unconfirmed").text
        assert "Keep the signed refusal" in site.get("/problems/log_time_ahead").text

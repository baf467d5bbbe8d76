"""When a stay is over, day by day and zone by zone."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import BadForm, NotYet
from ledger.reviews.stays import EVERYWHERE, begins, is_over, lies_within, require_foreseeable, require_over

BODY = {"check_out": "2026-06-01"}


def code(now: str, zone: str | None = None) -> str | None:
    try:
        require_over(BODY, datetime.fromisoformat(now).replace(tzinfo=UTC), ZoneInfo(zone) if zone else EVERYWHERE)
    except NotYet as refusal:
        return refusal.code
    return None


@pytest.mark.parametrize(
    ("zone", "last", "first"),
    [
        (None, "2026-06-02T11:59:59", "2026-06-02T12:00:00"),
        ("UTC", "2026-06-01T23:59:59", "2026-06-02T00:00:00"),
        ("Pacific/Kiritimati", "2026-06-01T09:59:59", "2026-06-01T10:00:00"),
        ("Europe/London", "2026-06-01T22:59:59", "2026-06-01T23:00:00"),
        ("America/New_York", "2026-06-02T03:59:59", "2026-06-02T04:00:00"),
    ],
)
def test_the_day_of_check_out_must_be_over_where_the_listing_is(zone: str | None, last: str, first: str) -> None:
    assert code(last, zone) == "stay_not_over"
    assert code(first, zone) is None


def test_a_year_and_no_longer() -> None:
    assert code("2027-06-02T11:59:59") is None
    assert code("2027-06-02T12:00:00") == "too_late"
    assert code("2027-06-01T23:59:59", "UTC") is None
    assert code("2027-06-02T00:00:00", "UTC") == "too_late"


@given(st.datetimes(datetime(2026, 5, 1), datetime(2026, 7, 1)))
def test_what_is_over_everywhere_is_over_anywhere(now: datetime) -> None:
    moment = now.isoformat()
    if code(moment) is None:
        assert {code(moment, zone) for zone in ("UTC", "Pacific/Kiritimati", "America/Adak", "Asia/Kolkata")} == {None}


@given(
    st.datetimes(datetime(2026, 5, 30), datetime(2026, 6, 5))
    | st.datetimes(datetime(2027, 5, 30), datetime(2027, 6, 5))
)
def test_what_is_plainly_over_is_over_in_every_zone(now: datetime) -> None:
    codes = {code(now.isoformat(), zone) for zone in available_timezones()}
    assert is_over(BODY, now.replace(tzinfo=UTC)) == (codes | {code(now.isoformat())} == {None})


def test_the_refusal_says_when() -> None:
    with pytest.raises(NotYet, match=r"2026-06-01, is not over everywhere on Earth: .* the day after"):
        require_over(BODY, datetime(2026, 6, 1, tzinfo=UTC))
    with pytest.raises(NotYet, match="time zone, Europe/London"):
        require_over(BODY, datetime(2026, 6, 1, tzinfo=UTC) + timedelta(hours=1), ZoneInfo("Europe/London"))


# When it begins


@pytest.mark.parametrize(
    ("zone", "first"),
    [
        ("Europe/London", "2026-05-19T23:00:00"),
        ("Asia/Tokyo", "2026-05-19T15:00:00"),
        ("Pacific/Honolulu", "2026-05-20T10:00:00"),
        # Where nobody knows: nowhere has it begun before.
        (None, "2026-05-19T10:00:00"),
    ],
)
def test_a_stay_begins_with_the_day_of_check_in(zone: str | None, first: str) -> None:
    found = begins("2026-05-20", ZoneInfo(zone) if zone else None)
    assert found == datetime.fromisoformat(first).replace(tzinfo=UTC)


def test_nowhere_does_a_day_begin_before_it_does_anywhere() -> None:
    assert min(begins("2026-05-20", ZoneInfo(zone)) for zone in available_timezones()) >= begins("2026-05-20", None)


@given(*[st.integers(1, 28)] * 4)
def test_a_stay_lies_within_what_was_booked_if_each_of_its_days_does(a: int, b: int, c: int, d: int) -> None:
    def days(first: int, last: int) -> dict[str, str]:
        return {"check_in": f"2026-05-{first:02}", "check_out": f"2026-05-{last:02}"}

    expected = a < b and set(range(a, b + 1)) <= set(range(c, d + 1))
    assert lies_within(days(a, b), days(c, d)) == expected


def test_nobody_books_more_than_two_years_ahead() -> None:
    """As days are counted where it is latest."""
    now = datetime(2026, 6, 1, 9, 59, tzinfo=UTC)
    require_foreseeable({"check_out": "2028-05-31"}, now)
    for day in ("2028-06-01", "9999-12-31"):
        with pytest.raises(BadForm) as refused:
            require_foreseeable({"check_out": day}, now)
        assert (refused.value.code, refused.value.errors[0][0]) == ("date_invalid", "check_out")
    require_foreseeable({"check_out": "2028-06-01"}, now + timedelta(minutes=1))

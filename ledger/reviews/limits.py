"""How often guests and hosts may do what. Who reads or writes over the network is limited by address as well: `api`."""

from ledger.store.limiter import DAY, Limit

HOUR = 3600

REVIEWS_PER_PERSON = Limit(
    "reviews/person", 20, DAY, 20, "quota_exceeded", "one person may submit 20 reviews in a day, at all hosts together"
)
RESPONSES_PER_HOST = Limit(
    "responses/host", 60, HOUR, 60, "quota_exceeded", "one host may submit 60 responses in an hour"
)

"""What /metrics serves, and how requests are counted: by route template, never by raw path, so that no client can make
series without end."""

from litestar import Response, get
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest

from ledger.metrics import REFUSALS

REQUESTS = Counter("staylog_http_requests", "Requests by route template and status", ["route", "status"])
SECONDS = Histogram(
    "staylog_http_request_seconds",
    "From the request to the end of its response, by route template",
    ["route"],
    buckets=(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5),
)
UNROUTED = "unrouted"
CONNECTIONS = Gauge("staylog_connections", "Connections of clients that are open")
CONNECTIONS_REFUSED = Counter(
    "staylog_connections_refused", "Connections refused or ended because a bound was passed, by reason", ["reason"]
)

# Children by their labels: `labels()` formats and locks at each call, which would be a third of the cost of counting.
_requests: dict[tuple[str, int], Counter] = {}
_seconds: dict[str, Histogram] = {}


def count_refusal(code: str) -> None:
    REFUSALS.labels(code).inc()


def count_request(route: str, status: int, seconds: float) -> None:
    counter = _requests.get((route, status))
    if counter is None:
        counter = _requests[route, status] = REQUESTS.labels(route, str(status))
        _seconds[route] = SECONDS.labels(route)
    counter.inc()
    _seconds[route].observe(seconds)


@get("/metrics", include_in_schema=False, sync_to_thread=True)
def metrics() -> Response[bytes]:
    """Counters for Prometheus."""
    # Litestar adds the charset to every text type.
    media_type = CONTENT_TYPE_LATEST.removesuffix("; charset=utf-8")
    return Response(generate_latest(), media_type=media_type, headers={"Cache-Control": "no-store"})

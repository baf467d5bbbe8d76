"""The application: the handlers of this package around one open ledger."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from litestar import Litestar
from litestar.concurrency import sync_to_thread
from litestar.datastructures import State
from litestar.di import Provide

from api import (
    activity,
    bookings,
    census,
    explain,
    home,
    hosts,
    log,
    meta,
    metrics,
    openapi,
    reviews,
    verifying,
    witnesses,
)
from api.caching import AnswerCache
from api.edge import Edge
from api.intake import Intake
from api.parameters import check_query
from api.parts import Buffered
from api.problems import EXCEPTION_HANDLERS
from ledger.folder import Ledger
from ledger.identity.contexts import canonicaliser
from ledger.net.addresses import Network

MAX_BODY = 256 * 1024
# Threads that make answers. On SQLite that is work for the interpreter, and more threads only stand in each other's
# way; with PostgreSQL they wait for it.
SQLITE_READERS, POSTGRESQL_READERS = 2, 8
# That are under way at once; whoever comes then is told to come back.
MOST_SUBMISSIONS = 100
# Bytes of documents of other platforms that are in memory at once, also of those that are still coming.
MOST_OF_DOCUMENTS = 128 * 1024 * 1024
# And those of one address: three documents of the longest kind.
MOST_OF_ONE = 16 * 1024 * 1024


def create_app(
    ledger: Ledger, base_url: str | None = None, *, proxies: Sequence[Network] = (), limits: bool = True
) -> Litestar:
    """The service for an open ledger: it starts its threads, and closes it when it shuts down.

    `base_url` is how the world reaches it, by default as the ledger's settings say. Requests by way of `proxies` count
    as those of whom these name; without `limits` addresses are not counted, as where something in front does that.
    """

    base_url = base_url or ledger.settings.base_url
    # A context that has changed must stop the start, not the first review.
    canonicaliser()
    # Whoever needs nobody's answer goes on while others wait for theirs.
    desk = ledger.desk(base_url, most_asking=MOST_SUBMISSIONS // 2)
    worker = ledger.worker(base_url)

    count = SQLITE_READERS if ledger.store.is_sqlite else POSTGRESQL_READERS
    readers = ThreadPoolExecutor(count, thread_name_prefix="answers")
    intake, answers = Intake(most=MOST_SUBMISSIONS), AnswerCache()

    async def start() -> None:
        ledger.sequencer.start()
        intake.start()
        ledger.reader.follow(ledger.sequencer.halt)
        ledger.watch.start()
        ledger.census.start()
        ledger.witnesses.start(ledger.sequencer.halt)
        ledger.probe.start(ledger.sequencer.halt)
        worker.start()

    async def close() -> None:
        await sync_to_thread(readers.shutdown)
        await sync_to_thread(intake.close)
        await sync_to_thread(worker.close)
        await sync_to_thread(ledger.close)

    app = Litestar(
        [
            *log.HANDLERS,
            *witnesses.HANDLERS,
            *census.HANDLERS,
            *hosts.HANDLERS,
            *activity.HANDLERS,
            *reviews.HANDLERS,
            *bookings.HANDLERS,
            home.home,
            *meta.HANDLERS,
            *explain.HANDLERS,
            *verifying.HANDLERS,
            metrics.metrics,
        ],
        dependencies={
            "ledger": Provide(lambda: ledger, sync_to_thread=False),
            "base_url": Provide(lambda: base_url, sync_to_thread=False),
        },
        exception_handlers=EXCEPTION_HANDLERS,
        before_request=check_query,
        request_max_body_size=MAX_BODY,
        openapi_config=openapi.config(),
        on_startup=[start],
        on_shutdown=[close],
        state=State(
            {
                "ledger": ledger,
                "base_url": base_url,
                "desk": desk,
                "intake": intake,
                "documents": Buffered(MOST_OF_DOCUMENTS, MOST_OF_ONE if limits else MOST_OF_DOCUMENTS),
                "proxies": proxies,
                "answers": answers,
                "readers": readers,
            }
        ),
        # Litestar would set up logging for the whole process; that is the command's business.
        logging_config=None,
        debug=False,
    )
    limiter = ledger.limiter if limits else None
    app.asgi_handler = Edge(app.asgi_handler, base_url, limiter, proxies, answers, ledger)
    return app

"""What is said of bookings, by whoever says it: a host's notice or a guest's claim."""

from typing import Any

from ledger.errors import BadForm
from ledger.identity import statements
from ledger.reviews import claims, notices
from ledger.reviews.claims import Claimed
from ledger.reviews.desk import Desk
from ledger.reviews.notices import Noticed
from ledger.reviews.pending import Waiting


async def take_booking(desk: Desk, data: bytes) -> Noticed | Claimed | Waiting:
    body: Any = statements.parse(data)
    kind = body.get("type") if isinstance(body, dict) else None
    if kind == claims.KIND:
        return await claims.submit(desk, body)
    if kind == notices.KIND:
        return await notices.submit(desk, body)
    message = f"a {notices.KIND} of a host or a {claims.KIND} of a guest is expected here, this is a {str(kind)[:60]}"
    raise BadForm("schema_invalid", f"type: {message}", errors=[("type", message)])

"""What must hold before anything is served."""

import pytest

from api.app import create_app
from ledger.errors import Misconfigured
from ledger.identity import contexts
from tests.running import Running


def test_a_changed_context_stops_the_start(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the first review that needs it."""
    monkeypatch.setitem(contexts.PINS, contexts.OPENSTR_V1, "0" * 64)
    contexts._canonicaliser.cache_clear()
    try:
        with pytest.raises(Misconfigured) as refused:
            create_app(running.ledger)
    finally:
        contexts._canonicaliser.cache_clear()
    assert refused.value.code == "context_changed"

import pytest

from ledger.log import witnesses


@pytest.fixture
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Witnesses that have failed are asked again at once."""
    monkeypatch.setattr(witnesses, "LONGEST_PAUSE", 0.05)

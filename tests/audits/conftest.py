import pytest

from tests.audits.forger import Forger
from tests.running import Writer


@pytest.fixture
def forger(writer: Writer) -> Forger:
    return Forger.begun(writer)

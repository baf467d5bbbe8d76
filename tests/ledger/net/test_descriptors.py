"""The limit of open files, in processes of their own: it can be lowered and not raised again."""

import subprocess
import sys

import pytest

ASK = """
import resource, sys
from ledger.errors import Misconfigured
from ledger.net.descriptors import connections_allowed
soft, hard, wanted = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
try:
    print(connections_allowed(wanted, reserved=300, least=50), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
except Misconfigured as error:
    print(error.code, error.message)
"""


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "said"),
    [
        (100, 1000, 500, "500 1000"),
        (100, 1000, 5000, "700 1000"),
        (350, 350, 5000, "50 350"),
        (320, 320, 10, "10 320"),
        (349, 349, 5000, "settings_invalid this process may open 349 files, and needs 350, of which 300 "),
    ],
)
def test_leaves_the_reserve_free(soft: int, hard: int, wanted: int, said: str) -> None:
    command = [sys.executable, "-c", ASK, str(soft), str(hard), str(wanted)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith(said)

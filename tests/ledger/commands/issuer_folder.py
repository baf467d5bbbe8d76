"""A folder with an issuer's key, and commands run in it."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from ledger.cli import main
from tests.identities import GUEST, HOST, IDV

GUEST_OPTIONS = ["--subject", GUEST.did, "--level", "identity_verified", "--method", "passport", "--guest-id", "g-55"]
HOST_OPTIONS = [
    *("--subject", HOST.did, "--listing", "rose-cottage", "--listing", "loft-2", "--country", "GB"),
    *("--method", "land registry", "--host-id", "h-1"),
    *("--status-list", f"{IDV}/status/1", "--status-index", "7", "--days", "365"),
]


def run(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), input=text)


class Folder:
    """A folder with an issuer's key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        done = run("key", "new", str(path / "issuer.key"))
        assert done.exit_code == 0, done.output
        self.multikey = done.output.split()[2]
        self.did = f"did:key:{self.multikey}"
        assert self.did in done.output

    def issue(self, role: str, *options: str) -> dict[str, Any]:
        usual = GUEST_OPTIONS if role == "guest" else HOST_OPTIONS
        done = run("credential", "issue", role, "--issuer-key", str(self.path / "issuer.key"), *usual, *options)
        assert done.exit_code == 0, done.output
        made: dict[str, Any] = json.loads(done.output)
        return made

    def verify(self, document: Any, *options: str) -> Result:
        path = self.path / "credential.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return run("credential", "verify", str(path), *options)

"""The whole way, with the commands that people type and a service in a process of its own: a host that is a domain, a
guest whose credential can be revoked, an issuer that publishes a status list; all over TLS on this machine."""

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from ledger.canon import multikey
from ledger.clock import utc_now
from tests.identities import IDV, ISSUER, Speaker
from tests.network import Neighbourhood
from tests.test_docs import serving

STAYLOG = str(Path(sys.executable).with_name("staylog"))
NAME = "did:web:cottage.example"
HOST, GUEST = Speaker(3, NAME), Speaker(20)
LIST = f"{IDV}/status/1"


class Town:
    """A folder with everybody's keys, and a shell in it."""

    def __init__(self, folder: Path, outside: Neighbourhood) -> None:
        self.folder = folder
        self.outside = outside
        for name, speaker in (("issuer", ISSUER), ("host", HOST), ("guest", GUEST)):
            path = folder / f"{name}.key"
            path.touch(mode=0o600)
            path.write_text(multikey.encode_secret(speaker.key) + "\n")

    def run(self, *arguments: str, status: int = 0) -> str:
        environment = {**os.environ, **self.outside.environment}
        done = subprocess.run(
            [STAYLOG, *arguments], cwd=self.folder, capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == status, (arguments, done.stdout, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def save(self, name: str, *arguments: str) -> Any:
        text = self.run(*arguments)
        (self.folder / name).write_text(text)
        return json.loads(text)

    def publish_list(self, *marked: str) -> None:
        marks = [word for place in marked for word in ("--mark", place)]
        key = ("--issuer-key", "issuer.key", "--issuer", IDV)
        made = self.save("list.json", "credential", "issue", "status-list", *key, "--url", LIST, *marks)
        self.outside.put(LIST, made, cache_control="max-age=1")


@pytest.fixture
def town(tmp_path: Path, neighbourhood: Neighbourhood, monkeypatch: pytest.MonkeyPatch) -> Town:
    made = Town(tmp_path, neighbourhood)
    neighbourhood.host("idv.example")
    neighbourhood.host("cottage.example")
    for name, value in neighbourhood.environment.items():
        monkeypatch.setenv(name, value)
    return made


def test_a_review_of_a_domain_by_who_can_be_revoked(town: Town) -> None:
    document = town.save("did.json", "did", "document", NAME, "--key", "host.key")
    town.outside.put("https://cottage.example/.well-known/did.json", document)
    assert HOST.multikey in town.run("did", "resolve", NAME)
    town.publish_list()
    about = ("--level", "identity_verified", "--method", "passport", "--guest-id", "g-1", "--days", "365")
    status = ("--status-list", LIST, "--status-index", "7")
    by = ("--issuer-key", "issuer.key", "--issuer", IDV, "--verification-method", f"{IDV}/keys/1")
    town.save("credential.json", "credential", "issue", "guest", *by, "--subject", GUEST.did, *about, *status)
    came, left = (str(utc_now().date() - timedelta(days=days)) for days in (9, 5))
    stay = ("--listing", "rose-cottage", "--check-in", came, "--check-out", left)
    booked = ("--key", "host.key", "--did", NAME, "--guest", GUEST.did, "--reference", "B-1")
    town.run("booking", "receipt", *booked, *stay, "--out", "stay-receipt.json")
    ratings = [
        word
        for name in ("overall", "accuracy", "cleanliness", "communication", "value")
        for word in (f"--{name}", "4.5")
    ]
    with serving(town.folder / "data") as url:
        town.run("issuer", "add", "guest", IDV, "--key", ISSUER.multikey, "--data", "data")
        files = ("--credential", "credential.json", "--receipt", "stay-receipt.json", "--key", "guest.key")
        submit = ("review", "submit", *files, *ratings, "--text", "Quiet.", "--ledger", url)
        told = town.run(*submit, "--out", "receipt.json")
        assert "guest_verified" in told
        answer = httpx.get(f"{url}/v1/hosts/{NAME}/reputation?proof=full", trust_env=False)
        assert answer.json()["verified_reviews"] == 1
        assert answer.json()["host_key_changed_at"] is None
        review_id = json.loads((town.folder / "receipt.json").read_text())["review_id"]
        town.run(
            "review", "respond", review_id, "--key", "host.key", "--did", NAME, "--text", "Thanks.", "--ledger", url
        )
        metrics = httpx.get(f"{url}/metrics", trust_env=False).text
        assert 'staylog_fetches_total{outcome="fetched",profile="did"} 1.0' in metrics
        assert 'staylog_fetches_total{outcome="fetched",profile="status_list"} 1.0' in metrics
        assert HOST.multikey in town.run("did", "resolve", NAME, "--data", "data", "--json")
    # Revoked: the next service, which has nothing in memory, refuses.
    town.publish_list("7")
    with serving(town.folder / "data") as url:
        submit = (*submit[:-1], url)
        refused = town.run(*submit, "--submission", "again.json", "--out", "again-receipt.json", status=1)
        assert "credential_revoked" in refused


def test_development_is_loud_and_stays_at_home(town: Town) -> None:
    environment = {**os.environ, **town.outside.environment, "STAYLOG_BASE_URL": "https://ledger.example"}
    command = [STAYLOG, "serve", "--data", "data", "--port", "1"]
    done = subprocess.run(command, cwd=town.folder, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1
    assert "development_refused" in done.stderr
    assert not (town.folder / "data").exists()
    (town.folder / "x.json").write_text("{}")
    assert "DEVELOPMENT" in town.run("credential", "verify", "x.json", status=1)

"""A service that may open few files, while others open as many connections as they can: what is written is written."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import httpx

from tests.api.conftest import make_ledger

FILES, FLOOD = 480, 700
SERVE = f"""
import json, resource, sys, threading
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, ({FILES}, {FILES}))
from api.app import create_app
from api.server import run
from ledger.errors import StaylogError
from ledger.folder import open_ledger
from ledger.settings import Settings
from tests.running import Writer

ledger = open_ledger(Settings.of(Path(sys.argv[1]), base_url="https://ledger.example"))
stop, written, failed = threading.Event(), [], []

def write():
    writer = Writer(7)
    while not stop.is_set():
        try:
            ledger.sequencer.submit(writer.review("did:web:cottage.example")).result(timeout=30)
            written.append(1)
        except (StaylogError, OSError) as error:
            failed.append(repr(error))
        stop.wait(0.01)

app, writing = create_app(ledger), threading.Thread(target=write)
app.on_startup.append(writing.start)
# Before the ledger closes.
app.on_shutdown.insert(0, lambda: (stop.set(), writing.join()))
run(app, "127.0.0.1", 0)
print(json.dumps({{"written": len(written), "failed": failed}}))
"""


def test_a_flood_of_connections_leaves_descriptors_for_the_log(tmp_path: Path) -> None:
    make_ledger(tmp_path).close()
    command = [sys.executable, "-c", SERVE, str(tmp_path / "ledger")]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=os.environ) as process,
        ExitStack() as crowd,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("Staylog listens on "), line
        url = line.split()[-1]
        try:
            with httpx.Client(base_url=url, trust_env=False) as client:
                before = client.get("/health").json()["size"]
            for number in range(FLOOD):
                source = f"127.0.0.{2 + number % 20}", 0
                address = "127.0.0.1", int(url.rpartition(":")[2])
                crowd.enter_context(socket.create_connection(address, 10, source)).sendall(b"GET /")
            with httpx.Client(base_url=url, trust_env=False) as client:
                # Some batches are written while all of them are there.
                for _ in range(200):
                    health = client.get("/health")
                    assert health.status_code == 200
                    if health.json()["size"] > before + 40:
                        break
                    time.sleep(0.05)
                refused = client.get("/metrics").text
        finally:
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert health.json()["size"] > before + 40
    assert 'staylog_connections_refused_total{reason="evicted"}' in refused
    result = json.loads(out)
    assert result["failed"] == []
    assert result["written"] > 20
    assert err == ""

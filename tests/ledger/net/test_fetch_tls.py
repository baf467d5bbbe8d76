"""Whose certificates count."""

import asyncio
from dataclasses import replace

import pytest

from ledger.errors import NotFetched
from ledger.net.development import Development
from ledger.net.fetch import Fetcher
from tests.ledger.net.visiting import AGENT, SMALL, URL, Visitor
from tests.network import Authority, Neighbourhood, response


@pytest.mark.parametrize("kind", ["another name", "a parent's name", "expired", "another authority", "self-signed"])
def test_wrong_certificates(visitor: Visitor, neighbourhood: Neighbourhood, kind: str) -> None:
    """Nothing is said to whoever cannot show who they are: the connection ends before the request."""
    good, name = neighbourhood.authority, "idv.example"
    other = Authority("Another authority")
    contexts = {
        "another name": lambda: good.context("other.example"),
        "a parent's name": lambda: good.context("example"),
        "expired": lambda: good.context(name, expired=True),
        "another authority": lambda: other.context(name),
        "self-signed": lambda: Authority(name).context(name),
    }
    neighbourhood.host(name, contexts[kind]())
    neighbourhood.put(URL, {})
    refusal = visitor.refused()
    assert refusal.code == "fetch_tls"
    assert "idv.example does not show that it is idv.example: " in refusal.message
    assert neighbourhood.connections == 1
    assert neighbourhood.requests == {}


def test_the_systems_authorities_do_not_know_ours(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    neighbourhood.put(URL, {})
    alone = Fetcher(AGENT, replace(neighbourhood.development, ca=None))
    assert replace(visitor, fetcher=alone).code() == "fetch_tls"
    assert neighbourhood.requests == {}


def test_no_tls_at_all(visitor: Visitor) -> None:
    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response(b"{}"))
        await writer.drain()
        writer.close()

    async def ask() -> str:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            plain = Fetcher(AGENT, Development({"idv.example": server.sockets[0].getsockname()}))
            with pytest.raises(NotFetched) as refusal:
                await plain.fetch(URL, SMALL)
        return refusal.value.code

    assert visitor.run(ask()) == "fetch_tls"

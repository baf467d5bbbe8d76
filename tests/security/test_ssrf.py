"""Nobody sends the ledger into its operator's own network (SSRF): real addresses, DNS and TLS, in a network namespace.

`ssrf_namespace` is the other half: it sets up the world and the inside there, has the fetcher ask what strangers would
have it ask, and counts who was connected. Nothing of it leaves the namespace.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from tests.security import ssrf_namespace as namespace

ROOT = Path(__file__).parents[2]
REFUSED = "address_not_allowed"

Outcomes = dict[str, Any]


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """What became of everything."""
    for program in ("unshare", "ip", "mount"):
        if which(program) is None:
            pytest.skip(f"{program} is not installed")
    # Whoever is not root becomes it there, if that is permitted.
    alone = ["unshare", "--net", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    trial = "ip link set lo up && mount --make-rprivate / && mount --bind /etc/hosts /etc/hosts"
    tried = subprocess.run([*alone, "sh", "-c", trial], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"a network namespace of one's own is not permitted here: {tried.stderr.strip()}")
    command = [*alone, sys.executable, "-m", namespace.__name__]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(params=namespace.LOOPS)
def outcomes(request: pytest.FixtureRequest, report: dict[str, Any]) -> Outcomes:
    """In one of the event loops."""
    found: Outcomes = report["outcomes"][request.param]
    return found


def test_the_listeners_inside_count(report: dict[str, Any]) -> None:
    """So that none is none."""
    assert len(report["knocks"]) == len(namespace.INSIDE) * len(namespace.PORTS)
    assert set(report["knocks"].values()) == {1}


def test_nobody_inside_was_connected(report: dict[str, Any]) -> None:
    """On no port of any address; and nobody else was either, wherever they are: all connections that were tried came to
    the public host."""
    assert report["inside"] == dict.fromkeys(report["knocks"], 0)
    assert report["opened"] == report["connections"]


def test_the_public_host_was_asked_what_it_should_be(report: dict[str, Any]) -> None:
    """Once for each attempt that is right to reach it; the impostors were connected, and asked nothing."""
    expected, impostors = [*report["waiting"].values()].count("fetched"), 0
    for outcomes in report["outcomes"].values():
        expected += len(outcomes["good"])
        expected += sum(each["fetched"] for each in outcomes["rebinding"].values())
        expected += len(outcomes["redirects"]) - 1
        expected += sum(sum(each["expected"]) for each in outcomes["moving"].values())
        # The good identity and the one that moved, each for guests and for hosts.
        expected += 2 * 2
        impostors += outcomes["impostor"]["connections"]
    assert report["requests"] == expected
    assert report["connections"] == expected + impostors


def test_the_public_host_is_fetched(outcomes: Outcomes) -> None:
    """By either family, by all its addresses, and by an alias: so what is refused is not refused for want of a network."""
    assert outcomes["good"] == dict.fromkeys(("four", "six", "both", "all", "alias"), "fetched")


@pytest.mark.parametrize("address", [*namespace.INSIDE, *namespace.ODD])
def test_names_that_lead_inside(outcomes: Outcomes, address: str) -> None:
    """By A or by AAAA; through NAT64, 6to4 and Teredo, mapped, to multicast or nowhere; alone and with public ones."""
    assert outcomes["inside"][address] == REFUSED
    for order in ("first", "last", "beside"):
        assert outcomes["mixed"][f"{order} {address}"] == REFUSED


def test_names_that_lead_inside_in_a_roundabout_way(outcomes: Outcomes) -> None:
    """Aliases are followed by DNS; what only this machine knows by a short name is not looked for."""
    assert outcomes["indirect"] == {
        "alias.example": REFUSED,
        "wiki.corp.example": REFUSED,
        "filed.example": "fetch_unresolved",
        "unknown.example": "fetch_unresolved",
        "none.corp.example": "fetch_unresolved",
        "searched": "0",
    }


def test_answers_that_change_between_questions(outcomes: Outcomes) -> None:
    """One question for each fetch, so that nothing can change between what is checked and what is connected."""
    rounds = 2 * namespace.ROUNDS
    assert len(outcomes["rebinding"]) == 16
    for turns, found in outcomes["rebinding"].items():
        half = rounds // 2
        expected = {"fetched": half, REFUSED: half, "questions": rounds, "requests": half}
        assert found == expected, turns


def test_literals_in_all_notations(outcomes: Outcomes) -> None:
    """Nobody is even asked for them."""
    assert outcomes["literals"] == {**dict.fromkeys(namespace.LITERALS, REFUSED), "questions": "0"}


def test_redirects_to_inside(outcomes: Outcomes) -> None:
    """To names and literals, whether or not redirects are followed within the origin: none of them is looked up."""
    redirects = dict(outcomes["redirects"])
    assert redirects.pop("questions") == "0"
    assert len(redirects) > 50
    assert Counter(redirects.values()) == {"fetch_redirected": len(redirects)}


def test_redirects_within_a_name_that_moves_inside(outcomes: Outcomes) -> None:
    """Each step is looked up and checked anew."""
    *moving, staying = outcomes["moving"].values()
    assert len(moving) == 5
    assert {each["outcome"] for each in moving} == {REFUSED}
    assert staying["outcome"] == "fetched"
    for each in (*moving, staying):
        assert each["asked"] == each["expected"]


def test_a_wrong_certificate_at_a_public_address(outcomes: Outcomes) -> None:
    """Or at several: nothing is said to whoever is there."""
    impostors = dict(outcomes["impostor"])
    assert impostors.pop("connections") >= len(impostors) == 4
    assert set(impostors.values()) == {"fetch_tls"}, impostors


IDENTITIES = {
    "did:web:did.example": ("fetched", "fetched"),
    "did:web:10.0.0.5": (REFUSED, REFUSED),
    "did:web:10.0.0.5%3A8080": (REFUSED, REFUSED),
    "did:web:127.0.0.1": (REFUSED, REFUSED),
    "did:web:2130706433": (REFUSED, REFUSED),
    "did:web:0x7f.1": (REFUSED, REFUSED),
    "did:web:localhost": (REFUSED, REFUSED),
    "did:web:localhost%3A8080": (REFUSED, REFUSED),
    "did:web:wiki.corp.example": (REFUSED, REFUSED),
    "did:web:wiki.corp.example:a:b": (REFUSED, REFUSED),
    "did:web:wiki.corp.example%3A8080": (REFUSED, REFUSED),
    "did:web:did.example%3A8080": (REFUSED, REFUSED),
    "did:web:swing.example": (REFUSED, REFUSED),
    "did:web:filed.example": ("guest_did_unavailable", "host_did_unavailable"),
    "did:web:did.example:moved": ("guest_did_unavailable", "host_did_unavailable"),
    "did:web:unknown.example": ("guest_did_unavailable", "host_did_unavailable"),
    "did:web:[::1]": ("did_not_canonical", None),
    "did:web:%31%30.0.0.5": ("did_not_canonical", None),
    "did:web:good@10.0.0.5": ("did_not_canonical", None),
    "did:web:10.0.0.5/": ("did_not_canonical", None),
}


def test_identities_that_lead_inside(outcomes: Outcomes) -> None:
    """The same by way of DIDs, for guests and hosts."""
    found = {
        name: (outcomes["identities"][f"guest {name}"], outcomes["identities"].get(f"host {name}"))
        for name in IDENTITIES
    }
    assert found == IDENTITIES
    assert len(outcomes["identities"]) == 2 * len(IDENTITIES) - 4


def test_names_whose_servers_are_silent_hold_up_no_others(report: dict[str, Any]) -> None:
    """Forty of them at once; and whom the operator trusts is not held up by any number. Whoever has a domain can have
    as many such names as they like."""
    assert report["waiting"] == {"stranger": "fetched", "trusted": "fetched", "fetch_timeout": "silent"}

"""`staylog monitor`: follow a log, and tell when something is wrong with it, or new."""

import gc
import os
import random
import signal
import sqlite3
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from audits.commands import YOUNG_OBJECTS
from audits.given import read_policy
from audits.monitor.alerts import Teller
from audits.monitor.gossip import Gossip, find_places
from audits.monitor.kept import KeptReplay
from audits.monitor.memory import Memory
from audits.monitor.rounds import INCOMPLETE, INCONSISTENT, Monitor, Watch
from audits.monitor.status_line import status_line
from audits.monitor.webhook import TOKEN, Webhook
from audits.replayer import Progress
from audits.source import open_source
from audits.terminal import FILE, FOLDER, say_refusal
from ledger.canon import did
from ledger.errors import Misconfigured, StaylogError
from ledger.log.note import Verifier

# More of an interval at most, so that many monitors do not come at the same moment.
JITTER = 0.1
SECONDS = click.FloatRange(0, 10_000_000)


def follow(
    monitor: Monitor,
    interval: float,
    sleep: Callable[[float], None],
    chance: Callable[[], float],
    looked: Callable[[float], None] = lambda _seconds: None,
) -> int:
    """Round after round, until something is proved: nothing that the log says after that means anything. What was only
    observed may be over in the next round."""
    while True:
        monitor.round()
        if monitor.is_over:
            return INCONSISTENT
        seconds = interval * (1 + JITTER * chance())
        looked(seconds)
        sleep(seconds)


@click.command()
@click.argument("where", metavar="URL")
@click.option("--key", "vkey", required=True, help="The log's public key, `name+id+base64`, from a source you trust.")
@click.option(
    "--state",
    type=FOLDER,
    help="The folder of what was seen and told; it belongs to one monitor.  [default: monitor-ID here, ID of the key]",
)
@click.option("--policy", type=FILE, help="A tlog-policy: whose cosignatures must be there. Witnesses are listened to.")
@click.option(
    "--gossip",
    "gossips",
    multiple=True,
    metavar="WHERE",
    help="Another copy of the log (an address or a folder), or a file with a checkpoint, receipt or answer.",
)
@click.option("--host", "hosts", multiple=True, metavar="DID", help="Tell every new event of this host.")
@click.option("--history", is_flag=True, help="In the first round ever, tell the events of these hosts so far too.")
@click.option("--webhook", "hook", metavar="URL", help=f"Post each alert there; {TOKEN} becomes a bearer token.")
@click.option("--once", is_flag=True, help="Look once, and end.")
@click.option(
    "--interval", type=click.FloatRange(1, 86400), default=60, show_default=True, help="Seconds between rounds."
)
@click.option(
    "--max-age",
    type=click.FloatRange(0, 1_000_000),
    default=25,
    show_default=True,
    metavar="HOURS",
    help="How old the newest map head may be.",
)
@click.option(
    "--patience",
    type=SECONDS,
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="How long a log may be out of reach, or show less than it signed.",
)
@click.option(
    "--witness-patience",
    type=SECONDS,
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="How long the quorum may be missing.",
)
@click.option(
    "--sample", type=click.IntRange(0, 10_000), default=3, show_default=True, help="Hosts that each checkpoint draws."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def monitor(
    where: str,
    vkey: str,
    state: Path | None,
    policy: Path | None,
    gossips: Sequence[str],
    hosts: Sequence[str],
    history: bool,
    hook: str | None,
    once: bool,
    interval: float,
    max_age: float,
    patience: float,
    witness_patience: float,
    sample: int,
    as_json: bool,
) -> None:
    """Follow the log at URL, audit what is new in it, and tell when something is wrong, or right again.

    \b
      staylog monitor https://ledger.example --key VKEY --gossip https://mirror.example
      staylog monitor https://ledger.example --key VKEY --policy witnesses.txt --webhook https://hooks.example/x
      staylog monitor https://ledger.example --key VKEY --host did:web:cottage.example --once

    Each alert is one line with a code. A trouble is told when it begins and, as recovered, when it ends; what was told
    is kept in the state, so that a restart does not tell it again. The codes, and the status of each with --once:

    \b
      1  inconsistency        proved, in a file for `staylog audit check-fraud`; or observed
      2  incomplete           not everything could be looked at
      2  unsigned             what is served as the checkpoint is none that the key signed
      2  gossip               somebody who was to be compared with cannot be
      3  unreachable          for longer than --patience; until then 2, and no alert
      3  behind               the log signed more than it shows, for longer than --patience; until then 2 if it has
                              shown more before
      3  stalled              the newest map head is older than --max-age
      3  future               the newest map head is more than 5 minutes ahead of the clock here
      3  unwitnessed          the quorum is missing for longer than --witness-patience
      3  cosignature_invalid  a cosignature of a witness does not hold
      4  event                something new of a --host
      0  recovered, webhook (alerts are not taken, or lost), looked

    Patience counts while somebody looks: when more time than that lies between two looks, a trouble begins anew, once.

    Followed is until Ctrl-C or SIGTERM: exit status 0. When an inconsistency is proved (signed or witnessed) it ends
    with 1 as soon as the proof is written, since nothing that a log says after that means anything; so it does whenever
    it is started again with that state. One that was only observed is told, and followed until it is over.

    With --once the status says what holds now, the gravest first: 1 an inconsistency is proved, or observed and not
    over, 2 not everything could be looked at, 3 stalled or another of those above, 4 nothing wrong but new events of a
    --host, 0 nothing to tell. A monitor that cannot be started, or is stopped before its one look is over, ends with 2.
    """
    gc.set_threshold(YOUNG_OBJECTS)
    status = INCOMPLETE
    try:
        log = Verifier.parse(vkey)
        trust = read_policy(policy)
        ages = (timedelta(hours=max_age), timedelta(seconds=patience), timedelta(seconds=witness_patience))
        between = timedelta(seconds=0 if once else interval * (1 + JITTER))
        watch = Watch(trust, [did.check(host) for host in hosts], history, sample, *ages, between)
        webhook = Webhook(hook, os.environ.get(TOKEN)) if hook is not None else None
        gossip = Gossip(find_places(gossips, trust, log), log)
        folder = state or Path(f"monitor-{log.key_id.hex()}")
        with _stopped_by_signals(), status_line() as shown:
            source = open_source(where, shown.say)
            with _kept(folder, log, shown.progress) as replay:
                memory = Memory.open(folder)
                teller = Teller(log.name, source.name, memory, shown.write, _now, webhook, as_json=as_json)
                watching = Monitor(source, log, replay, memory, watch, gossip, teller, _now)
                if once:
                    status = watching.round()
                else:
                    tell = _telling(
                        watching, teller, shown.say, f"a look every {interval:g} seconds, remembered in {folder}"
                    )
                    status = follow(watching, interval, time.sleep, random.random, tell)
                teller.tell("looked", watching.summary())
    except KeyboardInterrupt:
        # One look that was broken off has not looked at everything.
        status = INCOMPLETE if once else 0
    except StaylogError as error:
        say_refusal(error)
    except Exception:
        # As an error of ours it would end with the status that means an inconsistency.
        traceback.print_exc()
    raise SystemExit(status)


def _telling(watching: Monitor, teller: Teller, say: Callable[[str], None], first: str) -> Callable[[float], None]:
    """After each round a word on the terminal; after the first one a line that tells that there is somebody."""
    firsts = [first]

    def looked(seconds: float) -> None:
        if firsts:
            teller.tell("looked", f"{watching.summary()}; {firsts.pop()}")
        say(f"{watching.summary()}; next look at {_now() + timedelta(seconds=seconds):%H:%M:%S} UTC")

    return looked


@contextmanager
def _kept(folder: Path, log: Verifier, progress: Progress) -> Iterator[KeptReplay]:
    try:
        with closing(KeptReplay(folder, log, progress, clock=_now)) as replay:
            yield replay
    except sqlite3.DatabaseError as error:
        raise Misconfigured("file_unreadable", f"{folder} cannot be used: {error}; begin with another folder") from None


def _now() -> datetime:
    return datetime.now(UTC)


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """SIGTERM ends it as Ctrl-C does, wherever it is: what was not saved is read again."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

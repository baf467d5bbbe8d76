"""`staylog feedback`: a host fetches what guests said to it alone."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from nacl.signing import SigningKey

from ledger.canon import base64
from ledger.commands import client
from ledger.commands.common import FilePath, refusals
from ledger.commands.errand import line
from ledger.commands.signing import ledger_option
from ledger.commands.statement import Speaker, encode, next_free, save, speaker_options
from ledger.errors import BadBase64, Malformed, Misconfigured, NotProved
from ledger.keys import read_key
from ledger.log.members import check_review_id
from ledger.settings import check_base_url

KIND = "FeedbackRequest"
# An answer has a hundred messages, and twelve answers are given in an hour.
MOST_REQUESTS = 6


@click.group()
def feedback() -> None:
    """Fetch what guests said to you alone, as a host."""


@feedback.command(short_help="Fetch and open them, and have the ledger erase them.")
@ledger_option
@speaker_options(required=True)
@click.option(
    "--open-with",
    "older",
    type=FilePath,
    multiple=True,
    metavar="FILE",
    help="Another secret key of yours, as the one you had before; repeat.",
)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), required=True, metavar="DIR", help="Where messages go."
)
@click.option("--keep", is_flag=True, help="Leave the messages at the ledger as well.")
def collect(ledger: str, older: tuple[Path, ...], out: Path, keep: bool, **options: Any) -> None:
    """Fetch the private words that guests have left for you, open them, and have the ledger erase them.

    They are sealed to your key: the ledger cannot read them. Each goes into a file of its own in DIR, named by its
    review, which only you can read. When all are on the disk, the ledger is told so, and erases them; what you do not
    fetch is erased after a year. One that your key does not open is saved as it is, and stays at the ledger: it was
    sealed to another key of yours, whose name is told.

    \b
      staylog feedback collect --ledger https://ledger.example --key host.key --out messages
      staylog feedback collect --key host.key --did did:web:cottage.example --open-with old.key --out messages
    """
    with refusals():
        host, ledger = Speaker.of(options), check_base_url(ledger)
        messages = Messages(out, [host.secret, *map(read_key, older)])
        _make_folder(out)
        try:
            _fetch(host, ledger, messages, keep=keep)
        finally:
            _tell(messages, keep=keep)
        if not messages.opened and not messages.sealed:
            click.echo("There is nothing for you.")


@dataclass(slots=True)
class Messages:
    """What was fetched: the reviews whose messages are on the disk, opened, and those that did not open."""

    folder: Path
    keys: Sequence[SigningKey] = field(repr=False)
    opened: list[str] = field(default_factory=list)
    sealed: list[str] = field(default_factory=list)
    acknowledged: set[str] = field(default_factory=set)

    @property
    def to_acknowledge(self) -> list[str]:
        return [each for each in self.opened if each not in self.acknowledged]

    def take(self, items: Sequence[Mapping[str, str]]) -> bool:
        """Save each that is new; whether there was one."""
        had = len(self.opened) + len(self.sealed)
        for item in items:
            if item["review_id"] not in (*self.opened, *self.sealed):
                self._save(item)
        return len(self.opened) + len(self.sealed) > had

    def _save(self, item: Mapping[str, str]) -> None:
        from ledger.identity.sealing import unseal

        name = item["review_id"]
        for key in self.keys:
            try:
                text = unseal(base64.decode(item["sealed"]), key)
            except (NotProved, BadBase64):
                continue
            self._write(f"{name}.txt", f"{text}\n".encode())
            self.opened.append(name)
            return
        self._write(f"{name}.sealed.json", encode(item))
        self.sealed.append(name)
        line("NOT opened", f"{name}: it is sealed to {item['key']}")

    def _write(self, name: str, data: bytes) -> None:
        """Unless it is there since another time."""
        path = self.folder / name
        if not (path.is_file() and path.read_bytes() == data):
            path = next_free(path)
            save(path, data)


def _fetch(host: Speaker, ledger: str, messages: Messages, *, keep: bool) -> None:
    """Answer by answer; that all of one is on the disk is said when the next is asked for."""
    for _ in range(1 if keep else MOST_REQUESTS):
        done = messages.to_acknowledge
        body = {"type": KIND, "host_did": host.did, **({"acknowledge": done} if done else {})}
        _, found = client.submit(ledger, "/v1/feedback", encode(host.sign(body, KIND, ledger)))
        messages.acknowledged.update(done)
        if not messages.take(_items(found)):
            return


def _items(answer: Mapping[str, Any]) -> list[dict[str, str]]:
    items = answer.get("items")
    for item in items if isinstance(items, list) else [None]:
        try:
            if not isinstance(item, dict) or not all(isinstance(item.get(name), str) for name in ("sealed", "key")):
                raise ValueError("each message is an object of review_id, sealed and key")
            # It becomes the name of a file.
            check_review_id(item.get("review_id"))
        except ValueError as error:
            raise Malformed("answer_malformed", f"the ledger's answer is not a list of messages: {error}") from None
    return list(items or [])


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Misconfigured("file_unwritable", f"{path} cannot be made: {error.strerror}") from None
    if not os.access(path, os.W_OK):
        raise Misconfigured("file_unwritable", f"{path} cannot be written to")


def _tell(messages: Messages, *, keep: bool) -> None:
    if messages.opened:
        line("saved", f"{len(messages.opened)} in {messages.folder}, one file for each review")
    if messages.acknowledged:
        line("erased", f"{len(messages.acknowledged)} at the ledger: your files are the only ones now")
    if messages.opened and keep:
        line("kept", "at the ledger, too, for a year from when they came")
    elif left := messages.to_acknowledge:
        line("left", f"{len(left)} at the ledger as well, and perhaps more: it was not asked again. Run this once more")
    if messages.sealed:
        line("sealed", f"{len(messages.sealed)}, which stay at the ledger: try again with --open-with KEY")

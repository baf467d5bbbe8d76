"""Who watches the log: a witness from the beginning, and at the end two histories that it does not let pass."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from demo.service import HOST, Program, Service, free_port
from demo.stage import Stage, expect

NAME = "witness.example/w1"
BACKUP = "backup"
ENTRIES = Path(__file__).parents[1] / "docs" / "guides" / "example-entries.jsonl"


class Watching:
    """The witness is a process of its own, with a folder of its own. Ended by `close`."""

    def __init__(self, stage: Stage, service: Service) -> None:
        self.stage, self.service = stage, service
        port = free_port()
        command = ["witness", "serve", "--data", "witness", "--port", str(port)]
        self.witness = Program("witness", command, f"http://{HOST}:{port}", stage.folder, alive="/")

    def close(self) -> None:
        self.witness.close()

    def a_witness(self, log_key: str) -> None:
        self.stage.chapter(
            "Somebody watches",
            "A log that only its operator signs could show one history to Ada and another one to Hanne. A witness, run "
            "by somebody else, remembers the last state of the log, and cosigns only what goes on from there.",
        )
        for words, says in (
            (("witness", "init", "--data", "witness", "--name", NAME), "Its public key"),
            (("witness", "trust", log_key, "--data", "witness"), "is trusted"),
        ):
            self.stage.command("staylog", *words)
            said = self.stage.run("staylog", *words, says=says)
        self.stage.command("staylog", *self.witness.command)
        self.witness.start()
        key = self.stage.run("staylog", "witness", "key", "--data", "witness", says=NAME).strip()
        policy = f"log {log_key}\nwitness w1 {key} {self.witness.url}\nquorum w1\n"
        (self.stage.folder / "ledger" / "tlog-policy").write_text(policy)
        self.stage.facts(("tlog-policy", f"the log asks {NAME}, and verifiers may demand it"))
        expect("what the witness says of the log", True, "is trusted" in said)

    def back_up(self) -> None:
        """A copy of everything, as operators make them, while the service runs."""
        ledger, backup = self.stage.folder / "ledger", self.stage.folder / BACKUP
        shutil.copytree(ledger, backup, ignore=shutil.ignore_patterns("ledger.db*"))
        with (
            closing(sqlite3.connect(ledger / "ledger.db")) as source,
            closing(sqlite3.connect(backup / "ledger.db")) as copy,
        ):
            source.backup(copy)

    def two_histories(self, log_key: str) -> None:
        self.stage.chapter(
            "Two histories",
            "The operator has a backup from before Ben's two stars, and the key. It starts the backup as a second "
            "service: the same log, but one in which Ben never was. The witness remembers more.",
        )
        stage, port = self.stage, free_port()
        other = Service(stage.folder, port, {}, data=BACKUP)
        stage.command("staylog", *other.command)
        said = stage.run("staylog", *other.command, says="log_behind", status=1)
        stage.facts(("refused", " ".join(said.split()).partition(". ")[0].removeprefix("refused ")), style="red")
        stage.say("So it does without the witness, and writes some reviews of its own invention:")
        (stage.folder / BACKUP / "tlog-policy").unlink()
        add = ("log", "add", str(ENTRIES), "--data", BACKUP)
        stage.command("staylog", "log", "add", ENTRIES.name, "--data", BACKUP)
        stage.run("staylog", *add, says="entries added")
        with closing(other):
            other.start()
            expect("whose key signs both", log_key, other.get("/v1/log/key").body["vkey"])
            stage.say("Both are signed by the one key. Somebody who watches one of them, and has heard of the other:")
            watch = ("--key", log_key, "--policy", "ledger/tlog-policy", "--state", "watch", "--once")
            command = ("monitor", self.service.url, "--gossip", other.url, *watch)
            stage.command("staylog", *command)
            stage.run("staylog", *command, says="log_forked", status=1)
        [proof] = (stage.folder / "watch").rglob("log_forked*.json")
        check = ("audit", "check-fraud", str(proof.relative_to(stage.folder)), "--key", log_key)
        stage.command("staylog", *check)
        said = stage.run("staylog", *check, says="does not begin with the smaller one")
        stage.report("\n".join(line for line in said.splitlines() if line.startswith("  ")))

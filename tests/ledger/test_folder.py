"""A folder becomes a ledger once, goes on after a crash, and is not confused with another."""

import json
import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from ledger import policy
from ledger.canon import base64
from ledger.errors import Halted, Misconfigured, StaylogError
from ledger.folder import init_folder, is_empty, open_ledger
from ledger.keys import read_service_keys, rotate_pepper, write_log_key, write_service_keys
from ledger.log.checkpoint import open_checkpoint
from ledger.log.entries import parse_entry
from ledger.log.mark import Mark
from ledger.settings import Settings, base_url_of, origin_of
from ledger.store.engine import Store
from ledger.store.setting import read_setting, write_setting
from tests.running import Running, Writer


def refusal(settings: Settings, opening: bool = True) -> str:
    with pytest.raises(StaylogError) as refused:
        open_ledger(settings) if opening else init_folder(settings)
    return refused.value.code


def test_a_new_log_is_its_genesis_and_a_map_head(running: Running) -> None:
    reader = running.ledger.reader
    genesis, head = (parse_entry(data) for data in reader.entries(0, 10))
    assert dict(genesis.members) == {
        "type": "genesis",
        "v": 1,
        "origin": "127.0.0.1:8080/log",
        "policy": policy.hash_of(policy.document()),
        "previous": None,
        "at": "2026-06-01T12:00:00Z",
    }
    assert (head.type, head.members["size"]) == ("map_head", 1)
    assert open_checkpoint(reader.published.note, running.ledger.verifier).size == 2
    assert running.ledger.origin == running.ledger.verifier.name == "127.0.0.1:8080/log"
    assert running.fsck().findings == []


def test_a_log_can_follow_another(tmp_path: Path, database_url: str) -> None:
    settings = Settings.of(tmp_path / "data", database_url, "https://ledger.example")
    init_folder(settings, previous="old.example/log")
    ledger = open_ledger(settings)
    genesis = parse_entry(ledger.reader.entries(0, 1)[0])
    assert (genesis.members["origin"], genesis.members["previous"]) == ("ledger.example/log", "old.example/log")
    ledger.close()


def test_a_ledger_is_made_once(running: Running, tmp_path: Path) -> None:
    assert refusal(running.settings, opening=False) == "already_initialised"
    elsewhere = Settings.of(tmp_path / "elsewhere", running.settings.database_url)
    assert refusal(elsewhere, opening=False) == "already_initialised"


def test_a_folder_that_is_none_is_not_opened(tmp_path: Path, database_url: str) -> None:
    settings = Settings.of(tmp_path / "data", database_url)
    assert is_empty(settings)
    assert refusal(settings) == "not_initialised"


def test_init_goes_on_where_it_was_stopped(tmp_path: Path, database_url: str) -> None:
    """After the log key, after both keys: each time with what is there."""
    settings = Settings.of(tmp_path / "data", database_url)
    settings.data.mkdir()
    key = write_log_key(settings.unused_log_key, origin_of(settings.base_url))
    assert refusal(settings) == "not_initialised"
    keys = write_service_keys(settings.service_keys)
    assert not is_empty(settings)
    assert refusal(settings) == "not_initialised"
    verifier = init_folder(settings)
    assert verifier.public_key == bytes(key.verify_key)
    assert not settings.unused_log_key.exists()
    ledger = open_ledger(settings)
    assert ledger.keys == keys
    ledger.close()


def test_init_does_not_use_the_key_of_another_log(tmp_path: Path, database_url: str) -> None:
    settings = Settings.of(tmp_path / "data", database_url)
    settings.data.mkdir()
    write_log_key(settings.unused_log_key, "another.example/log")
    assert refusal(settings, opening=False) == "key_mismatch"


def test_a_log_that_signed_is_not_started_again_in_an_empty_database(running: Running, tmp_path: Path) -> None:
    """The one mistake that would fork a log by a wrong setting."""
    empty = Settings.of(running.settings.data, f"sqlite:///{tmp_path}/empty.db")
    assert refusal(empty, opening=False) == "already_initialised"
    assert refusal(empty) == "not_initialised"


def test_keys_that_were_brought_back_begin_no_second_log(running: Running, tmp_path: Path) -> None:
    """Database and mark are lost: only the keys know that there was a log."""
    bare = Settings.of(tmp_path / "bare", f"sqlite:///{tmp_path}/bare.db")
    bare.data.mkdir()
    for path in (running.settings.log_key, running.settings.service_keys):
        (bare.data / path.name).write_bytes(path.read_bytes())
        (bare.data / path.name).chmod(0o600)
    assert refusal(bare, opening=False) == "already_initialised"
    assert refusal(bare) == "not_initialised"
    assert not bare.mark.exists()


def test_the_key_and_the_database_belong_together(running: Running, tmp_path: Path) -> None:
    other = Settings.of(tmp_path / "other", f"sqlite:///{tmp_path}/other.db", "https://other.example")
    init_folder(other)
    assert refusal(Settings.of(other.data, running.settings.database_url)) == "key_mismatch"
    same_name = Settings.of(tmp_path / "same", f"sqlite:///{tmp_path}/same.db")
    init_folder(same_name)
    assert refusal(Settings.of(same_name.data, running.settings.database_url)) == "key_mismatch"


def test_a_second_process_with_a_new_folder_joins_at_the_operators_word(
    running: Running, tmp_path: Path, writer: Writer
) -> None:
    """A replica has the keys, and no mark yet."""
    [newest] = running.add(writer.review())
    replica = tmp_path / "replica"
    replica.mkdir()
    for name in ("log.key", "service.key"):
        (replica / name).write_bytes((running.settings.data / name).read_bytes())
        (replica / name).chmod(0o600)
    joining = Settings.of(replica, running.settings.database_url)
    accepted = str(Mark(newest.published.size, newest.published.root))
    with pytest.raises(Halted, match=re.escape(f"--accept-checkpoint {accepted}")) as refused:
        open_ledger(joining)
    assert refused.value.code == "mark_missing"
    for wrong in ("2:" + accepted[2:], "9:" + accepted[2:]):
        assert refusal(replace(joining, accepted=wrong)) == "checkpoint_not_accepted"
    ledger = open_ledger(replace(joining, accepted=accepted))
    [done] = ledger.sequencer.append([writer.review()])
    ledger.close()
    assert running.add(writer.review())[0].index == done.index + 2
    assert running.fsck().findings == []


def test_secrets_are_not_in_the_database(tmp_path: Path) -> None:
    settings = Settings.of(tmp_path / "data")
    init_folder(settings)
    secret = settings.log_key.read_text().strip().split("+", 4)[4]
    stored = (tmp_path / "data" / "ledger.db").read_bytes()
    assert secret.encode() not in stored
    assert base64.decode(secret)[1:] not in stored
    keys = read_service_keys(settings.service_keys)
    for hidden in (bytes(keys.statements), keys.booking, *keys.peppers.by_id.values()):
        assert hidden not in stored
        assert base64.encode(hidden).encode() not in stored
    assert settings.data.stat().st_mode & 0o777 == 0o700


def test_the_service_keys_of_another_ledger_are_refused(running: Running, tmp_path: Path) -> None:
    """They would recognise no guest and no booking: the same stay could be reviewed twice."""
    path = running.settings.service_keys
    own = path.read_bytes()
    running.ledger.close()
    path.unlink()
    write_service_keys(path)
    assert refusal(running.settings) == "key_mismatch"
    path.write_bytes(own)
    running.open()


def test_service_keys_from_before_a_rotation_are_refused(running: Running) -> None:
    path = running.settings.service_keys
    older = path.read_bytes()
    rotate_pepper(path)
    # A rotation counts from the next start on.
    running.reopen().close()
    newer = path.read_bytes()
    path.write_bytes(older)
    with pytest.raises(Misconfigured, match="lacks pepper p2") as refused:
        open_ledger(running.settings)
    assert refused.value.code == "key_mismatch"
    path.write_bytes(newer)
    running.open()


def test_a_damaged_row_of_fingerprints_halts(running: Running) -> None:
    """With one that cannot be read, or has another name, any secret would be taken for the right one."""
    running.ledger.close()
    with closing(Store(running.settings.database_url)) as store:
        with store.read() as connection:
            kept = read_setting(connection)
        assert kept is not None
        texts = [kept.service_keys.replace("booking", "boojing"), kept.service_keys[1:], "{}", "[]", "null", '{"x":1}']
        damaged = [replace(kept, service_keys=text) for text in texts]
        damaged += [replace(kept, base_url=url) for url in ("", "https://evil.example", "ftp://127.0.0.1:8080")]
        for each in damaged:
            with store.write() as connection:
                write_setting(connection, each)
            assert refusal(running.settings) == "log_damaged"
        with store.write() as connection:
            write_setting(connection, kept)
    running.open()


def test_a_deleted_pepper_that_comes_back_must_be_the_same(running: Running) -> None:
    path = running.settings.service_keys
    rotate_pepper(path)
    given = json.loads(path.read_text())
    for p1, code in ((None, None), (base64.encode(bytes(32)), "key_mismatch"), (given["peppers"]["p1"], None)):
        running.ledger.close()
        peppers = {"p1": p1} if p1 else {}
        secrets = {name: given[name] for name in ("statements", "booking")}
        text = json.dumps(secrets | {"peppers": peppers | {"p2": given["peppers"]["p2"]}}, indent=1)
        path.write_text(text + "\n")
        if code is not None:
            assert refusal(running.settings) == code
        else:
            running.open()


def test_a_ledger_keeps_the_base_url_that_it_was_made_with(tmp_path: Path, database_url: str) -> None:
    made = Settings.of(tmp_path / "data", database_url, "https://ledger.example")
    init_folder(made)
    for stated, now in ((None, "https://ledger.example"), ("https://new.example", "https://new.example")):
        ledger = open_ledger(Settings.of(tmp_path / "data", database_url, stated), served_at="http://127.0.0.1:8080")
        assert (ledger.settings.base_url, ledger.made_as) == (now, "https://ledger.example")
        assert ledger.desk().domain == now
        ledger.close()


def test_a_ledger_made_for_this_machine_alone_moves_with_its_port(tmp_path: Path) -> None:
    init_folder(Settings.of(tmp_path / "data", None, "http://127.0.0.1:8080"))
    for stated, served_at, now in (
        (None, "http://127.0.0.1:9090", "http://127.0.0.1:9090"),
        (None, None, "http://127.0.0.1:8080"),
        ("https://ledger.example", "http://127.0.0.1:9090", "https://ledger.example"),
    ):
        ledger = open_ledger(Settings.of(tmp_path / "data", None, stated), served_at=served_at)
        assert ledger.settings.base_url == now
        ledger.close()


@pytest.mark.parametrize(
    ("origin", "base_url"),
    [
        ("ledger.example/log", "https://ledger.example"),
        ("ledger.example:8443/log", "https://ledger.example:8443"),
        ("127.0.0.1:8080/log", "http://127.0.0.1:8080"),
        ("localhost/log", "http://localhost"),
        ("[::1]:8080/log", "http://[::1]:8080"),
    ],
)
def test_the_base_url_of_an_older_folder_follows_from_its_origin(origin: str, base_url: str) -> None:
    assert base_url_of(origin) == base_url
    assert origin_of(base_url) == origin


def test_a_mistyped_base_url_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured):
        Settings.of(tmp_path / "data", None, "https://ledger.example/")
    assert not (tmp_path / "data").exists()


def test_a_policy_that_has_changed_is_adopted_by_an_entry(running: Running) -> None:
    """Once, whoever starts first."""
    ledger = running.ledger
    assert not ledger.adopt_policy()
    settings = replace(running.settings, publishes_unanswered=False)
    first, second = (open_ledger(settings, clock=running.clock) for _ in range(2))
    assert first.policy == second.policy != ledger.policy
    adopted = policy.hash_of(first.policy)
    assert (first.adopt_policy(), second.adopt_policy(), first.adopt_policy()) == (True, False, False)
    first.close()
    second.close()
    ledger.reader.refresh()
    assert f'"policy":"{adopted}","type":"policy"' in ledger.reader.entries(2, 3)[0].decode()


def test_a_policy_may_be_adopted_again(running: Running) -> None:
    """Each time it is another one than the last: the log tells what held when."""
    strict = replace(running.settings, publishes_unanswered=False)
    told = []
    for settings in (strict, running.settings, running.settings, strict, running.settings):
        ledger = open_ledger(settings, clock=running.clock)
        told.append(ledger.adopt_policy())
        ledger.close()
    assert told == [True, True, False, True, True]
    ledger = running.reopen()
    entries = [parse_entry(data) for data in ledger.reader.entries(0, 100)]
    adopted = [entry.members["policy"] for entry in entries if entry.type in ("genesis", "policy")]
    both = [policy.hash_of(policy.document(publishes_unanswered=yes)) for yes in (True, False)]
    assert adopted == [both[0], both[1], both[0], both[1], both[0]]
    assert running.fsck().findings == []


def test_a_log_begins_with_the_policy_of_its_settings(tmp_path: Path, database_url: str) -> None:
    settings = Settings.of(tmp_path / "data", database_url, publishes_unanswered=False)
    init_folder(settings)
    ledger = open_ledger(settings)
    genesis = parse_entry(ledger.reader.entries(0, 1)[0])
    assert genesis.members["policy"] == policy.hash_of(policy.document(publishes_unanswered=False))
    assert not ledger.adopt_policy()
    assert not ledger.desk().publishes_unanswered
    ledger.close()

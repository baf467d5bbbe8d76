"""Commands that add to the log, on a ledger whose last entry is older than a day."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ledger.cli import main
from ledger.clock import utc_now
from ledger.folder import init_folder, open_ledger
from ledger.identity.issuers import trust
from ledger.settings import Settings
from tests.identities import IDV, ISSUER, Speaker
from tests.running import Writer

OTHER = Speaker(41)


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a ledger that made its last entry 26 hours ago: an issuer and a review."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "decision.pdf").write_bytes(b"%PDF-1.7 In the name of the people.")
    settings = Settings.of(tmp_path / "data", None, "https://ledger.example")
    began = utc_now() - timedelta(hours=26)
    init_folder(settings, clock=lambda: began)
    ledger = open_ledger(settings, clock=lambda: began)
    draft = trust(ledger.issuers(), "guest", IDV, [ISSUER.multikey], None)
    assert draft is not None
    [_, review] = ledger.sequencer.append([draft, Writer().review()])
    ledger.close()
    (tmp_path / "review").write_text(review.entry.members["review_id"])
    (tmp_path / "entries").write_text(json.dumps({"type": "policy", "v": 1, "policy": Writer().hash()}))
    return settings.data


def run(data: Path, command: str, *more: str) -> Result:
    words = command.replace("REVIEW", Path("review").read_text()).split()
    done = CliRunner().invoke(main, [*words, "--data", str(data), *more])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


@pytest.mark.parametrize(
    "command",
    [
        "log add entries",
        f"issuer add guest {OTHER.did}",
        f"issuer remove guest {IDV}",
        "redact REVIEW --part text --basis gdpr_17 --decision decision.pdf --yes",
    ],
)
def test_is_refused_until_the_operator_accepts_the_clock(away: Path, command: str) -> None:
    refused = run(away, command)
    assert refused.exit_code == 1
    assert "(clock_unconfirmed)" in refused.stderr
    assert "--accept-clock" in refused.stderr
    assert not list(Path().glob("redaction-*"))
    done = run(away, command, "--accept-clock")
    assert done.exit_code == 0, done.stderr
    # From here on the log's own time confirms the clock.
    assert run(away, "log add entries").exit_code == 0


@pytest.mark.parametrize("command", ["log show", "issuer list", "fsck"])
def test_reading_needs_no_clock_and_says_nothing_about_it(away: Path, command: str) -> None:
    done = run(away, command)
    assert (done.exit_code, done.stderr) == (0, "")

"""A database that goes back between two steps of a publication: nothing is acknowledged that the log does not have, and
no second history leaves the service."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ledger.errors import Halted, StaylogError, Unavailable
from ledger.folder import init_folder, open_ledger
from ledger.settings import Settings
from tests.crash.harness import Backups, examine
from tests.crash.test_forks import second
from tests.running import Writer


class Story:
    """A log of 4 entries, its backup, and a second folder whose mark is as old."""

    def __init__(self, folder: Path) -> None:
        self.settings = Settings.of(folder / "data")
        self.writer = Writer()
        init_folder(self.settings)
        with closing(open_ledger(self.settings)) as ledger:
            ledger.sequencer.append([self.writer.review()])
        self.backups = Backups(self.settings.database_url, folder / "backups", None)
        self.backups.save("older")
        self.ignorant = second(self.settings, folder / "ignorant")

    def restore_at(self, step: str, and_add: int, settings: Settings | None = None) -> Callable[[str], None]:
        """Once, at that step, the backup is restored, and another process signs that many reviews in it."""
        steps = [step]

        def on_step(now: str) -> None:
            if now not in steps:
                return
            steps.clear()
            self.backups.restore_under("older")
            for _ in range(and_add):
                with closing(open_ledger(settings or self.ignorant)) as other:
                    other.sequencer.append([self.writer.review()])

        return on_step


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


@pytest.mark.parametrize(("added", "code"), [(0, "log_behind"), (1, "log_forked"), (2, "log_forked")])
@pytest.mark.parametrize("step", ["marked", "signed"])
def test_what_was_signed_leaves_only_if_the_database_still_has_it(
    story: Story, step: str, added: int, code: str
) -> None:
    with closing(open_ledger(story.settings, on_step=story.restore_at(step, added))) as ledger:
        with pytest.raises(Halted) as refused:
            ledger.sequencer.append([story.writer.review()])
        assert refused.value.code == code
        assert ledger.reader.published.size == 4
    with closing(open_ledger(story.ignorant)) as other:
        assert examine(other) == 4 + 2 * added
    with pytest.raises(Halted) as refused:
        open_ledger(story.settings)
    assert refused.value.code == code


@pytest.mark.parametrize("added", [1, 2])
def test_what_was_lost_before_it_was_signed_is_not_acknowledged(story: Story, added: int) -> None:
    """Another process with the same folder was faster, in a database without it."""
    restore = story.restore_at("committed", added, story.settings)
    with closing(open_ledger(story.settings, on_step=restore)) as ledger:
        with pytest.raises(Unavailable, match="lost what was committed"):
            ledger.sequencer.append([story.writer.review()])
        assert examine(ledger) == 4 + 2 * added


@pytest.mark.parametrize("added", [1, 2])
def test_a_process_remembers_what_the_file_has_forgotten(story: Story, added: int) -> None:
    """Database and mark are restored under it, and another process signs before it looks."""
    older = story.settings.mark.read_bytes()
    with closing(open_ledger(story.settings)) as ledger:
        ledger.sequencer.append([story.writer.review()])
        story.settings.mark.write_bytes(older)
        story.restore_at("now", added, story.settings)("now")
        for use in (
            ledger.reader.refresh,
            ledger.reader.refresh,
            lambda: ledger.sequencer.append([story.writer.review()]),
        ):
            with pytest.raises(StaylogError) as refused:
                use()
            assert refused.value.code == "log_forked"
        assert ledger.reader.published.size == 6

"""One spelling for a base URL, because statements are compared with it as text."""

from pathlib import Path

import pytest

from ledger.errors import Misconfigured
from ledger.settings import Settings, check_base_url, origin_of


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://127.0.0.1:8080", "127.0.0.1:8080/log"),
        ("https://ledger.example", "ledger.example/log"),
        ("https://ledger.example:8443", "ledger.example:8443/log"),
        ("http://[::1]:8080", "[::1]:8080/log"),
    ],
)
def test_the_origin_is_the_base_url_without_its_scheme(url: str, origin: str) -> None:
    assert origin_of(check_base_url(url)) == origin


@pytest.mark.parametrize(
    "url",
    [
        *("ledger.example", "ftp://ledger.example", "https://Ledger.example", "https://ledger.example/", "https://"),
        *("https://ledger.example:443", "http://ledger.example:80", "https://ledger.example:0", "https://a:99999"),
        *("https://ledger.example/path", "https://u@ledger.example", "https://ledger.example?", "https://a b", ""),
    ],
)
def test_another_spelling_is_refused(url: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        check_base_url(url)
    assert refused.value.code == "settings_invalid"


def test_the_database_is_in_the_folder_unless_one_is_named(tmp_path: Path) -> None:
    assert Settings.of(tmp_path).database_url == f"sqlite:///{tmp_path}/ledger.db"
    assert Settings.of(tmp_path, "postgresql://db/ledger").database_url == "postgresql://db/ledger"


def test_reviews_without_an_answer_are_published_unless_told_otherwise(tmp_path: Path) -> None:
    assert Settings.of(tmp_path).publishes_unanswered
    assert not Settings.of(tmp_path, publishes_unanswered=False).publishes_unanswered

"""Three verifiers, one verdict: the library, the standalone verifier and the page, each over the same corpus.

`python -m tests.browser.test_verify_corpus SEED...` compares the whole corpus of other seeds.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from audits import standalone_receipts, standalone_verify
from audits.cli import _document
from audits.receipts import verify_receipt
from audits.verify import verify_answer, verify_pages
from ledger.errors import StaylogError
from ledger.log.note import Verifier
from ledger.log.openings import WHITE_SPACE
from tests.browser.browser import Browser, started
from tests.browser.corpus import SIZE, Document, corpus, is_json
from tests.browser.verifying import PAGE

# What is given to the page in one call, which the driver holds in memory.
AT_ONCE = 100
_RUN = """(async () => {
    const verdicts = [];
    for (const options of arguments[0]) {
        const { code } = await staylog.verify(options);
        verdicts.push(code);
    }
    return verdicts;
})()"""


def library(document: Document) -> str | None:
    """The code of the refusal; any other error is a fault of the library."""
    data, log = [text.encode() for text in document.texts], Verifier.parse(document.key)
    try:
        if not document.host:
            verify_receipt(data[0], log)
        elif _document(data, {"host": document.host}) == "an answer":
            verify_answer(data[0], log, document.host)
        else:
            verify_pages(data, log, document.host)
    except StaylogError as error:
        return error.code
    return None


def standalone(document: Document) -> bool:
    """Whether it accepts. As its commands do, it refuses whatever it cannot read."""
    try:
        if document.host:
            standalone_verify.verify(list(document.texts), document.key, document.host)
        else:
            standalone_receipts.verify(document.texts[0], document.key)
    except Exception:
        return False
    return True


def page(browser: Browser, documents: Sequence[Document]) -> list[str | None]:
    codes: list[str | None] = []
    for at in range(0, len(documents), AT_ONCE):
        some = documents[at : at + AT_ONCE]
        given = [{"documents": list(d.texts), "key": d.key, "host": d.host, "plan": d.plan} for d in some]
        codes += browser.evaluate(_RUN, given)
    return codes


def differences(browser: Browser, documents: Sequence[Document]) -> list[str]:
    found = []
    for document, shown in zip(documents, page(browser, documents), strict=True):
        code = library(document)
        if code != shown:
            found.append(f"{document.name}: the library says {code}, the page {shown}")
        if standalone(document) != (code is None):
            found.append(f"{document.name}: the library says {code}, the standalone verifier otherwise")
    return found


def check_corpus(browser: Browser, documents: Sequence[Document]) -> None:
    browser.show(PAGE)
    assert differences(browser, documents) == []
    assert browser.messages() == []
    assert sum(map(is_json, documents)) >= 0.9 * len(documents)
    codes = [library(document) for document in documents]
    # Some are no lies, and are accepted by all.
    assert 0.02 * len(codes) < codes.count(None) < 0.5 * len(codes)
    assert len(set(codes)) > 20


def test_three_verifiers_agree_about_mutated_documents(browser: Browser) -> None:
    check_corpus(browser, corpus(step=10))


@pytest.mark.soak
def test_three_verifiers_agree_about_the_whole_corpus(browser: Browser) -> None:
    check_corpus(browser, corpus())


def test_the_corpus_is_the_same_each_time() -> None:
    assert corpus(count=100) == corpus(count=100)
    assert corpus(2, 20) != corpus(3, 20)


def test_browsers_know_the_same_white_space(browser: Browser) -> None:
    letters = [letter for letter in map(chr, range(0x110000)) if not "\ud800" <= letter <= "\udfff"]
    browser.show(PAGE)
    known = browser.evaluate("arguments[0].match(/\\p{White_Space}/gu).join('')", "".join(letters[:0x10000]))
    assert set(known) == set(WHITE_SPACE)


def main(seeds: Sequence[str]) -> None:
    with TemporaryDirectory() as folder, started(Path(folder)) as browser:
        browser.show(PAGE)
        for seed in seeds:
            documents = corpus(int(seed))
            found = differences(browser, documents)
            accepted = sum(library(document) is None for document in documents)
            parsed = sum(map(is_json, documents))
            figures = f"{SIZE} documents, {parsed} JSON, {accepted} accepted, {len(found)} differences"
            sys.stdout.write("\n".join([*found, f"seed {seed}: {figures}\n"]))


if __name__ == "__main__":
    main(sys.argv[1:])

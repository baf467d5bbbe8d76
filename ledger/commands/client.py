"""HTTP to a ledger, for guests and hosts at a terminal: bounded in time and size, and nothing is followed elsewhere."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from secrets import token_hex
from typing import Any
from urllib.parse import urlsplit
from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request

from ledger.canon import multikey, strict_json
from ledger.errors import Malformed, NotProved, StaylogError, Unavailable
from ledger.log.note import Verifier
from ledger.settings import check_base_url
from ledger.user_agent import USER_AGENT

# Between two signs of life. A review is hashed for some tenths of a second, and others may stand before it.
TIMEOUT = 30
# A hundred sealed messages, each of two thousand of the longest characters.
MAX_ANSWER = 2 << 20
JSON = "application/json"
LOCAL = ("127.0.0.1", "localhost", "::1")

_CODE = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")
_SECONDS = re.compile(r"[0-9]{1,9}")


class TurnedAway(StaylogError):
    """The ledger's own refusal, in its own words: `fields` are those that are wrong, `explained` is where the code is
    explained, `refusal` the ledger's signed word where it gave one."""

    def __init__(self, problem: Mapping[str, Any], status: int, retry_after: int | None) -> None:
        super().__init__(str(problem["code"]), str(problem.get("detail", "")))
        errors = problem.get("errors")
        self.fields = [
            (str(each.get("field")), str(each.get("message")))
            for each in (errors if isinstance(errors, list) else ())
            if isinstance(each, dict)
        ]
        self.explained = str(problem.get("type", ""))
        refusal = problem.get("refusal")
        self.refusal: dict[str, Any] | None = refusal if isinstance(refusal, dict) else None
        self.status = status
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Answer:
    """Whatever came back."""

    status: int
    data: bytes
    retry_after: int | None

    def json(self) -> dict[str, Any]:
        try:
            value = strict_json.loads(self.data)
        except Malformed as error:
            raise Malformed(
                "answer_malformed", f"the ledger's answer ({self.status}) cannot be read: {error}"
            ) from None
        if not isinstance(value, dict):
            raise Malformed("answer_malformed", f"the ledger's answer ({self.status}) is not a JSON object")
        return value


def submit(
    ledger: str, path: str, body: bytes, *, media_type: str = JSON, waits: bool = False
) -> tuple[Answer, dict[str, Any]]:
    """What the ledger gives for a signed statement; its status is 200 when it has had the same before, else 201, or 202
    where it `waits` for a decision."""
    return _taken(_ask(ledger, path, body, media_type), (200, 201, 202) if waits else (200, 201))


def look_up(ledger: str, path: str) -> dict[str, Any]:
    """What the ledger says at a path."""
    return _taken(_ask(ledger, path), (200,))[1]


def in_parts(**parts: tuple[str, bytes]) -> tuple[bytes, str]:
    """A body in parts, each of its media type, as a file of the name of the part (RFC 7578); and what is its own."""
    boundary, whole = token_hex(16), b""
    for name, (media_type, data) in parts.items():
        head = f'Content-Disposition: form-data; name="{name}"; filename="{name}"\r\nContent-Type: {media_type}'
        whole += f"--{boundary}\r\n{head}\r\n\r\n".encode() + data + b"\r\n"
    return whole + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


def is_code(value: object) -> bool:
    """Whether it has the form of a refusal's code."""
    return isinstance(value, str) and _CODE.fullmatch(value) is not None


def log_key(ledger: str) -> Verifier:
    """The key of the log as the ledger itself names it."""
    named = look_up(ledger, "/v1/log/key").get("vkey")
    if not isinstance(named, str):
        raise Malformed("answer_malformed", "the ledger does not say what its log's key is")
    return Verifier.parse(named)


def statements_key(ledger: str, method: str) -> bytes:
    """The key by which the ledger asserts things, if its DID document calls it `method`."""
    document = look_up(ledger, "/.well-known/did.json")
    known, listed = document.get("assertionMethod"), document.get("verificationMethod")
    for each in listed if isinstance(listed, list) and isinstance(known, list) and method in known else ():
        if isinstance(each, dict) and each.get("id") == method:
            return multikey.decode(str(each.get("publicKeyMultibase")))
    raise NotProved("signer_unknown", f"{method} is not a key that the ledger asserts things with")


def _taken(answer: Answer, good: tuple[int, ...]) -> tuple[Answer, dict[str, Any]]:
    if 300 <= answer.status < 400:
        raise Malformed(
            "answer_malformed",
            "the ledger sends us elsewhere, and a statement is signed for one address: name that one with --ledger",
        )
    value = answer.json()
    if answer.status in good:
        return answer, value
    if answer.status < 400 or not is_code(value.get("code")):
        raise Malformed("answer_malformed", f"the ledger answered {answer.status}, which means nothing to this version")
    raise TurnedAway(value, answer.status, answer.retry_after)


def _ask(ledger: str, path: str, body: bytes | None = None, media_type: str = JSON) -> Answer:
    headers = {"User-Agent": USER_AGENT, "Accept": JSON}
    if body is not None:
        headers["Content-Type"] = media_type
    # The base URL is http or https, and nothing else.
    request = Request(f"{check_base_url(ledger)}{path}", body, headers)  # noqa: S310
    try:
        with _opener(ledger).open(request, timeout=TIMEOUT) as response:
            data = response.read(MAX_ANSWER + 1)
            wait = str(response.headers.get("Retry-After", ""))
            status = int(response.status)
    except (OSError, HTTPException, UnicodeError) as error:
        reason = getattr(error, "reason", None) or error
        raise Unavailable("ledger_unreachable", f"{ledger} does not answer: {str(reason) or repr(reason)}") from None
    if len(data) > MAX_ANSWER:
        raise Malformed("answer_malformed", f"the ledger's answer has more than {MAX_ANSWER // 1024} KiB")
    return Answer(status, data, int(wait) if _SECONDS.fullmatch(wait) else None)


def _opener(ledger: str) -> OpenerDirector:
    """Nothing in it follows redirects or reads files: every answer is just an answer. A ledger on this machine is not
    asked by way of a proxy."""
    opener = OpenerDirector()
    proxies = ProxyHandler({}) if urlsplit(ledger).hostname in LOCAL else ProxyHandler()
    for handler in (proxies, HTTPHandler(), HTTPSHandler()):
        opener.add_handler(handler)
    return opener

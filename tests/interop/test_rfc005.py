"""Every rule of OpenSTR RFC-005 that concerns reviews has a test, in `test_rfc005_*.py`, that names it."""

from tests.interop import (
    test_rfc005_confirmation,
    test_rfc005_elsewhere,
    test_rfc005_principles,
    test_rfc005_record,
    test_rfc005_safety,
    test_rfc005_submission,
    test_rfc005_validation,
)

FILES = (
    test_rfc005_principles,
    test_rfc005_submission,
    test_rfc005_validation,
    test_rfc005_confirmation,
    test_rfc005_record,
    test_rfc005_elsewhere,
    test_rfc005_safety,
)
RULES = {
    *("7.1 portability", "7.1 verifiability", "7.1 immutability"),
    *("7.2 fields", "7.2 types", "7.2 review_text", "7.2 private_feedback", "7.2 ratings"),
    *("7.3.1", "7.3.2", "7.3.3", "7.3.4", "7.3 structured errors"),
    *("7.3.2 a signed callback", "7.3.2 the host's answer", "7.3.2 silence", "7.3.2 evidence from before"),
    *("7.4 the record", "7.4 averages", "7.4 host_response", "7.4 review_history"),
    *("7.5 30 days", "7.5 500 characters", "7.5 once", "7.5 the host", "7.5 returned"),
    *("7.6 a booking confirmation document", "7.6 a signed attestation", "7.6 the guest's consent"),
    *("7.6 host_attested", "7.6 distinguished", "7.6 encouraged"),
    *("9.2 one-way", "9.2 history"),
    *(
        "10.2 a verified GuestCredential",
        "10.2 one review per booking",
        "10.2 booking confirmation",
        "10.2 immutability",
    ),
}


def test_every_rule_is_named() -> None:
    """Every rule has a test whose docstring begins with it."""
    tests = [made for file in FILES for name, made in vars(file).items() if name.startswith("test_")]
    told = " ".join(made.__doc__ or "" for made in tests)
    assert {rule for rule in RULES if rule not in told} == set()
    assert {made.__name__ for made in tests if not (made.__doc__ or "").startswith(("7.", "9.", "10."))} == set()

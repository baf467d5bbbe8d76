"""No lie that was named, no kind of proof and no code of a broken rule is without a test that convicts by it."""

from audits.contradictions import ALONE, PAIRS
from audits.fraud import _KINDS
from tests.audits import (
    test_bound_receipts,
    test_lies,
    test_lies_evading,
    test_lies_in_answers,
    test_lies_in_entries,
    test_lies_in_maps,
    test_lies_in_samples,
    test_lies_in_times,
    test_lies_in_views,
    test_lies_served,
)
from tests.audits.convicting import DECLARED, TOLD, Shown

MODULES = (
    test_bound_receipts,
    test_lies,
    test_lies_evading,
    test_lies_in_answers,
    test_lies_in_entries,
    test_lies_in_maps,
    test_lies_in_samples,
    test_lies_in_times,
    test_lies_in_views,
    test_lies_served,
)
LIES = {
    *("deleted review", "altered rating", "hidden host event", "wrong average", "split view", "rolled-back log"),
    *("backdated response", "forged map head in the past", "withheld text", "lowered level"),
    "review by an untrusted issuer",
}
OTHER_CODES = {
    *("batch_too_long", "issuer_untrusted", "map_root_mismatch", "log_forked", "rolled_back", "tile_mismatch"),
    *("bundle_mismatch", "log_not_shown", "text_withheld", "postdated", "entry_differs_from_submission"),
}


def test_every_lie_and_every_kind_of_proof_has_its_test() -> None:
    assert all(any(hasattr(module, name) for module in MODULES) for name in DECLARED)
    assert {lie for name, lie in TOLD.items() if hasattr(test_lies, name)} == LIES
    proved = frozenset[Shown]().union(*DECLARED.values())
    assert {kind for kind, _ in proved} == set(_KINDS)
    assert {code for _, code in proved} >= {*PAIRS, *ALONE, *OTHER_CODES}

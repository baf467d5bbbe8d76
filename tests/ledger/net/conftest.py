from tests.ledger.net.visiting import visitor  # noqa: F401 (fixture)

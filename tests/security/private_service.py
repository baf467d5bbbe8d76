"""A service in a process of its own, for the privacy tests: its randomness is seeded, its clock is a file, whatever any
library logs goes to a file, and it believes its peer who is asking."""

import json
import logging
import os
import sys
from datetime import datetime
from pathlib import Path
from random import Random


def main() -> None:
    given = json.loads(sys.argv[1])
    logging.basicConfig(filename=given["log"], level=logging.DEBUG)
    # Before anything is imported that keeps it.
    os.urandom = Random(given["seed"]).randbytes

    from api.app import create_app
    from api.server import run
    from ledger.canon.times import parse_time
    from ledger.folder import init_folder, open_ledger
    from ledger.identity.issuers import trust
    from ledger.net.addresses import parse_proxies
    from ledger.settings import Settings

    def clock() -> datetime:
        return parse_time(Path(given["clock"]).read_text())

    settings = Settings.of(Path(given["data"]), given["database"], given["base_url"])
    init_folder(settings, clock=clock)
    ledger = open_ledger(settings, clock=clock)
    for issuer, keys in given["issuers"].items():
        draft = trust(ledger.issuers(), "guest", issuer, keys, None)
        assert draft is not None
        ledger.sequencer.append([draft])
        ledger.reader.refresh()
    run(create_app(ledger, proxies=parse_proxies("127.0.0.1"), limits=True), "127.0.0.1", 0)


if __name__ == "__main__":
    main()

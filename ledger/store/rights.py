"""What a service needs of a PostgreSQL database beyond its tables, checked before anything is asked of it: the
encoding, and the rights of its role. Otherwise a missing right would show when a review is refused."""

from collections import defaultdict

from sqlalchemy import Connection

from ledger.errors import Misconfigured
from ledger.store.engine import Store
from ledger.store.rows import run
from ledger.store.tables import metadata

_LIMITS = ("rate", "day_rate")
_ALL = (*metadata.tables, *_LIMITS)
# VACUUM, which is passed over in silence without it: what was erased would stay in the files. Up to PostgreSQL 16 only
# owners may, and the right has no name.
MAINTAIN = "MAINTAIN"
NEEDED: dict[str, tuple[str, ...]] = {
    "SELECT": (*_ALL, "alembic_version"),
    "INSERT": tuple(name for name in _ALL if name != "log_head"),
    "UPDATE": (
        *("log_head", "entry", "tile", "setting", "submission", "booking"),
        *("host_listing", "did_document", "did_key", "issuer_watch", *_LIMITS),
    ),
    "DELETE": ("setting", "submission", "booking", "feedback", *_LIMITS),
    MAINTAIN: ("entry", "submission", "booking", "feedback"),
}
FIRST_WITH_MAINTAIN = 170_000

_MISSING = (
    "SELECT wanted.name, wanted.privilege FROM unnest(?::text[], ?::text[]) AS wanted(name, privilege) "
    "WHERE NOT has_table_privilege(to_regclass(wanted.name), wanted.privilege)"
)
_NOT_OWNED = (
    "SELECT c.relname FROM pg_class c, pg_database d WHERE c.oid = ANY (SELECT to_regclass(name) FROM "
    "unnest(?::text[]) AS wanted(name)) AND d.datname = current_database() "
    "AND NOT pg_has_role(c.relowner, 'USAGE') AND NOT (? AND pg_has_role(d.datdba, 'USAGE')) ORDER BY 1"
)
_ENCODING = "SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()"
_ROLE = "SELECT quote_ident(current_user), quote_ident(current_schema()), current_schema() IS NOT NULL "
_MAY_CREATE = "AND has_schema_privilege(current_schema(), 'CREATE')"


def require_rights(store: Store) -> None:
    """Raises Misconfigured, which names each right that the role lacks, and the statements by which it gets them."""
    if store.is_sqlite:
        return
    with store.read() as connection:
        require_encoding(connection)
        missing = _missing(connection)
        [(role, _, _)] = run(connection, _ROLE)
    if missing:
        lacking = "; ".join(f"{right} on {', '.join(tables)}" for right, tables in missing.items())
        grants = "; ".join(_grant(right, tables, role) for right, tables in missing.items())
        raise Misconfigured(
            "database_rights_missing", f"the role {role} lacks {lacking}. As the tables' owner: {grants}"
        )


def require_ownership(connection: Connection) -> None:
    """Before tables are made or changed. Raises Misconfigured when the role may not."""
    if connection.dialect.name == "sqlite":
        return
    require_encoding(connection)
    [(role, schema, may_create)] = run(connection, _ROLE + _MAY_CREATE)
    if not may_create:
        raise Misconfigured(
            "database_rights_missing",
            f"the role {role} may not make tables. As the database's owner: "
            f"GRANT CREATE ON SCHEMA {schema or 'public'} TO {role}",
        )
    foreign = [name for (name,) in run(connection, _NOT_OWNED, ([*_ALL, "alembic_version"], False))]
    if foreign:
        raise Misconfigured(
            "database_rights_missing",
            f"the tables are to be changed, and the role {role} does not own {', '.join(foreign)}: run `staylog serve` "
            f"once as their owner, or let it be {role} (ALTER TABLE ... OWNER TO {role})",
        )


def require_encoding(connection: Connection) -> None:
    [(encoding,)] = run(connection, _ENCODING)
    if encoding != "UTF8":
        raise Misconfigured(
            "database_unsuitable",
            f"the database has the encoding {encoding}, and texts are UTF8. Make another one: "
            "CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0",
        )


def _missing(connection: Connection) -> dict[str, list[str]]:
    has_maintain = int(run(connection, "SHOW server_version_num")[0][0]) >= FIRST_WITH_MAINTAIN
    asked = {right: tables for right, tables in NEEDED.items() if right != MAINTAIN or has_maintain}
    pairs = [(name, right) for right, tables in asked.items() for name in tables]
    names, rights = ([pair[at] for pair in pairs] for at in (0, 1))
    found: dict[str, list[str]] = defaultdict(list)
    for name, right in run(connection, _MISSING, (names, rights)):
        found[right].append(name)
    if not has_maintain and (foreign := run(connection, _NOT_OWNED, (list(NEEDED[MAINTAIN]), True))):
        found["OWNERSHIP"] = [name for (name,) in foreign]
    return dict(found)


def _grant(right: str, tables: list[str], role: str) -> str:
    if right == "OWNERSHIP":
        return "; ".join(f"ALTER TABLE {name} OWNER TO {role}" for name in tables)
    return f"GRANT {right} ON {', '.join(tables)} TO {role}"

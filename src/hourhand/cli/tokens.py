"""`token` and `whoami`: API tokens, and who the server takes the caller for.

The first token has nobody to ask for it: `token create --direct` writes it into the store that the settings name.
"""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from hourhand.cli.failures import Usage
from hourhand.cli.launch import Launch
from hourhand.cli.options import Call, command
from hourhand.cli.output import Column
from hourhand.cli.paging import Cursor, Limit
from hourhand.cli.system import ConfigFile
from hourhand.cli.times import from_now, in_zone, now
from hourhand.core.access import Role
from hourhand.core.instant import format_instant, may_be_given, parse_duration, parse_given_instant
from hourhand.core.model import DEFAULT_TENANT

_ROLES = "|".join(Role)


def register(group: typer.Typer, launch: Launch) -> None:
    """Add the commands of the group `token`."""

    def create(
        call: Call,
        name: Annotated[str, typer.Argument(metavar="NAME", help="What it is for, such as ci.")],
        role: Annotated[
            str | None, typer.Option(metavar=_ROLES, help="What its owner may do; viewer unless given.")
        ] = None,
        tenant: Annotated[
            str | None,
            typer.Option(metavar="NAME", help="Whose jobs it is for; '*': of those who run the system."),
        ] = None,
        expires: Annotated[
            str | None, typer.Option(metavar="DURATION|TIME", help="How long it holds, such as 90d.")
        ] = None,
        direct: Annotated[
            bool, typer.Option("--direct", help="Write it to the store of the settings; asks no server.")
        ] = False,
        config: ConfigFile = None,
    ) -> int:
        """Make a token and print it, once; with -q nothing else is printed."""
        if role is not None and role not in set(Role):
            raise Usage(f"--role: expected one of {', '.join(Role)}, got {role!r}")
        expires_at = None if expires is None else _expiry(expires)
        if direct:
            made = _direct(call, launch, config, name, role, tenant, expires_at)
        elif config is not None:
            raise Usage("--config says which store --direct writes to; a server is named by --server")
        else:
            made = call.client.tokens.create(
                name,
                role=role,
                tenant=tenant,
                expires_at=None if expires_at is None else format_instant(expires_at),
                dry_run=call.dry_run,
            )
        call.out.document(made, made["token"], lambda: _show_new(call, made))
        return 0

    command(group, "create", changes=True)(create)
    command(group, "list")(list_tokens)
    command(group, "revoke", changes=True)(revoke)


def register_whoami(app: typer.Typer) -> None:
    """Add the command that is in no group."""
    command(app, "whoami")(whoami)


def list_tokens(
    call: Call,
    tenant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only of one tenant; '*': of those who run the system.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> None:
    """List tokens, newest first; revoked and expired ones too, for a while. No secret is shown."""
    page = call.client.tokens.page(tenant=tenant, limit=limit, cursor=cursor)
    call.out.page(page, ident="token_id", columns=_columns(call.tz or "UTC"), empty="no tokens")


def revoke(call: Call, token: Annotated[str, typer.Argument(metavar="TOKEN_ID", help="Its id, T-…")]) -> None:
    """Let a token prove nothing from now on; processes notice within seconds. It cannot be taken back."""
    if not token.startswith(("T-", "t-")):
        raise Usage("expected a token's id, T-…, as `hourhand token list` shows it; never the token itself")
    call.confirm(f"Revoke {token}?")
    done = call.client.tokens.revoke(token, dry_run=call.dry_run)
    verb = "would revoke" if call.dry_run else "revoked"
    call.out.document(
        done, done["token_id"], lambda: call.out.line(f"{verb} {done['token_id']} {done['name']}")
    )


def whoami(call: Call) -> None:
    """Say who the server takes this caller for, and what they may do."""
    me = call.client.whoami()

    def show() -> None:
        call.out.facts(
            [
                ("subject", me["subject"]),
                ("tenant", me["tenant"]),
                ("acts for", me["acts_for"] if me["acts_for"] != me["tenant"] else None),
                ("role", me["role"]),
                ("known by", _KNOWN_BY[me["via"]]),
                ("expires", in_zone(me["expires_at"], call.tz)),
            ]
        )

    call.out.document(me, me["subject"], show)


def _direct(
    call: Call,
    launch: Launch,
    config: Path | None,
    name: str,
    role: str | None,
    tenant: str | None,
    expires_at: int | None,
) -> dict[str, Any]:
    from hourhand.config import load
    from hourhand.services.tokens import TokenWish

    if call.server is not None:
        raise Usage("give either --direct or --server")
    settings = load(environment=os.environ, config=config, folder=Path()).settings()
    whose = tenant or call.tenant or os.environ.get("HOURHAND_TENANT") or DEFAULT_TENANT
    wish = TokenWish(name=name, role=Role(role or Role.VIEWER), tenant=whose, expires_at=expires_at)
    return launch.create_token(settings, wish, dry_run=call.dry_run)


def _expiry(text: str) -> int:
    try:
        at = now() + parse_duration(text)
    except ValueError:
        try:
            return parse_given_instant(text)
        except ValueError:
            raise Usage(
                f"--expires: expected a duration such as 90d or a time such as 2027-11-16T08:00:00Z, got {text!r}"
            ) from None
    if not may_be_given(at):
        raise Usage("--expires: that is too far away")
    return at


def _show_new(call: Call, made: dict[str, Any]) -> None:
    call.out.facts(
        [
            ("token", made["token"] or "– (it would be made)"),
            ("id", made["token_id"]),
            ("name", made["name"]),
            ("tenant", made["tenant"]),
            ("role", made["role"]),
            ("expires", in_zone(made["expires_at"], call.tz)),
        ]
    )
    if made["token"]:
        call.out.note(
            "Keep the token now: it is not shown again. Use it as HOURHAND_TOKEN, or to log in to the page."
        )


def _columns(zone: str) -> tuple[Column, ...]:
    now_at = now()

    def ago(row: Any) -> str | None:
        return None if row["last_used_at"] is None else from_now(row["last_used_at"], now_at)

    return (
        Column(head="ID", cell=lambda row: row["token_id"]),
        Column(head="NAME", cell=lambda row: row["name"]),
        Column(head="TENANT", cell=lambda row: row["tenant"]),
        Column(head="ROLE", cell=lambda row: row["role"]),
        Column(head="STATE", cell=lambda row: row["state"]),
        Column(head="EXPIRES", cell=lambda row: in_zone(row["expires_at"], zone)),
        Column(head="LAST USED", cell=ago),
        Column(head="MADE BY", cell=lambda row: row["created_by"]),
    )


_KNOWN_BY = {
    "local": "nothing: this server asks nobody, since it listens on loopback only",
    "token": "an API token",
    "jwt": "a JWT",
}

"""The shape of answers about API tokens and about who asks, as OpenAPI shows them."""

from typing import Literal

from hourhand.web.shapes.parts import A_TIME, Shape, always, sometimes

A_TOKEN = "T-0d3x8m2k7q1vt"  # noqa: S105 - an id, no secret
RoleName = Literal["viewer", "operator", "editor", "admin"]


class TokenAnswer(Shape):
    """An API token, without its secret."""

    token_id: str | None = always("Its id; null in a dry run of creating it.", A_TOKEN)
    name: str = always("What it is for.", "ci")
    tenant: str = always('Whose jobs it is for; "*" is of those who run the system.', "acme")
    role: RoleName = always("What its owner may do.", "editor")
    state: Literal["live", "expired", "revoked"] = always("Whether it proves anything.", "live")
    created_at: str = always("When it was made.", A_TIME)
    created_by: str | None = always("Who made it.", "ann")
    expires_at: str | None = always("Until when it holds.", None)
    revoked_at: str | None = always("When it was revoked.", None)
    last_used_at: str | None = always("When it was last used, to a minute.", A_TIME)
    dry_run: bool | None = sometimes("True where nothing was written.", True)


class NewTokenAnswer(TokenAnswer):
    """A token that was just made, with its text, which nobody can see again."""

    token: str | None = always("The token itself; null in a dry run.", "hh_0d3x8m2k7q1vt_…")


class TokenList(Shape):
    """A page of tokens, newest first."""

    data: list[TokenAnswer] = always("The tokens.", [])
    next_cursor: str | None = always("Where the next page begins; null on the last.", None)
    partial: list[str] | None = sometimes("Databases that did not answer: theirs are not here.", ["shard 1"])


class WhoAmI(Shape):
    """Who asks, as this server knows them."""

    subject: str = always("Their name.", f"ci:{A_TOKEN}")
    tenant: str = always('Whose they are; "*" is of those who run the system.', "acme")
    acts_for: str = always("Whose jobs this request is about.", "acme")
    role: RoleName = always("What they may do.", "editor")
    via: Literal["local", "token", "jwt"] = always(
        "How they are known; local: not at all, since this server asks nobody.", "token"
    )
    expires_at: str | None = always("Until when that holds, where it is known.", None)

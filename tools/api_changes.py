"""Whether the API still keeps what its last release promised: breaking changes between two OpenAPI documents.

Breaking is what makes a request fail that was fine, or takes something from an answer that was there: an operation,
parameter or field that is gone (unknown ones are refused here), one that is required now, a narrower value in a
request, a field of an answer that may be missing or null now. New operations, optional fields, and further values in
answers are not: clients leave alone what they do not know.

    python -m tools.api_changes            # compares with the released document; exit 1 where something breaks
    python -m tools.api_changes --release  # makes the present API the released one
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

RELEASED = Path(__file__).parents[1] / "docs" / "openapi-released.json"
_METHODS = ("get", "put", "post", "patch", "delete")
_DEEPEST = 12  # documents name themselves: targets in jobs, and so on

Document = Mapping[str, Any]


def breaking_changes(old: Document, new: Document) -> list[str]:
    """What breaks, each in a line."""
    return list(_Comparison(old, new).found())


class _Comparison:
    def __init__(self, old: Document, new: Document) -> None:
        self._old = old
        self._new = new

    def found(self) -> Iterator[str]:
        for path, methods in self._old["paths"].items():
            for method in _METHODS:
                if method not in methods:
                    continue
                where = f"{method.upper()} {path}"
                present = self._new["paths"].get(path, {}).get(method)
                if present is None:
                    yield f"{where}: is gone"
                    continue
                yield from self._parameters(where, methods[method], present)
                yield from self._body(where, methods[method], present)
                yield from self._answers(where, methods[method], present)

    def _parameters(self, where: str, old: Document, new: Document) -> Iterator[str]:
        before = {(one["in"], one["name"]): one for one in old.get("parameters", ())}
        after = {(one["in"], one["name"]): one for one in new.get("parameters", ())}
        for place, one in before.items():
            name = f"{where}: the {place[0]} parameter {place[1]}"
            if place not in after:
                yield f"{name} is gone"
            else:
                yield from self._asked(name, _sendable(one["schema"]), _sendable(after[place]["schema"]))
        for place, one in after.items():
            if one.get("required") and not before.get(place, {}).get("required"):
                yield f"{where}: the {place[0]} parameter {place[1]} is required now"

    def _body(self, where: str, old: Document, new: Document) -> Iterator[str]:
        before, after = old.get("requestBody"), new.get("requestBody")
        if before is None:
            if after is not None and after.get("required"):
                yield f"{where}: a body is required now"
            return
        if after is None:
            yield f"{where}: takes no body any more"
            return
        if after.get("required") and not before.get("required"):
            yield f"{where}: a body is required now"
        for kind, content in before["content"].items():
            if kind not in after["content"]:
                yield f"{where}: takes no {kind} any more"
            else:
                yield from self._asked(f"{where} body", content["schema"], after["content"][kind]["schema"])

    def _answers(self, where: str, old: Document, new: Document) -> Iterator[str]:
        for status, answer in old["responses"].items():
            if not status.startswith("2"):
                continue
            present = new["responses"].get(status)
            if present is None:
                yield f"{where}: does not answer {status} any more"
                continue
            for kind, content in answer.get("content", {}).items():
                if kind not in present.get("content", {}):
                    yield f"{where}: does not answer {kind} any more"
                else:
                    yield from self._told(
                        f"{where} answer", content["schema"], present["content"][kind]["schema"]
                    )

    def _asked(self, where: str, old: Document, new: Document, depth: int = 0) -> Iterator[str]:
        """What a request may say."""
        old, new = _resolved(self._old, old), _resolved(self._new, new)
        for kind in sorted(_kinds(self._old, old) - _kinds(self._new, new)):
            yield f"{where}: may not be {kind} any more"
        for value in sorted(
            _values(self._old, old) - _values(self._new, new) if _values(self._new, new) else ()
        ):
            yield f"{where}: may not be {value} any more"
        for bound, is_narrower in (
            ("maximum", int.__lt__),
            ("maxLength", int.__lt__),
            ("maxItems", int.__lt__),
        ):
            if bound in new and (bound not in old or is_narrower(int(new[bound]), int(old[bound]))):
                yield f"{where}: {bound} is {new[bound]} now"
        if depth > _DEEPEST:
            return
        before, after = _fields(self._old, old), _fields(self._new, new)
        for name, one in before.items():
            if name not in after:
                yield f"{where}: the field {name} is gone"
            else:
                yield from self._asked(f"{where}/{name}", one, after[name], depth + 1)
        for name in sorted(_required(self._new, new) - _required(self._old, old)):
            yield f"{where}: the field {name} is required now"

    def _told(self, where: str, old: Document, new: Document, depth: int = 0) -> Iterator[str]:
        """What an answer says."""
        old, new = _resolved(self._old, old), _resolved(self._new, new)
        for kind in sorted(_kinds(self._new, new) - _kinds(self._old, old)):
            yield f"{where}: may be {kind} now"
        if depth > _DEEPEST:
            return
        before, after = _fields(self._old, old), _fields(self._new, new)
        for name, one in before.items():
            if name not in after:
                yield f"{where}: the field {name} is gone"
            else:
                yield from self._told(f"{where}/{name}", one, after[name], depth + 1)
        for name in sorted((_required(self._old, old) - _required(self._new, new)) & set(after)):
            yield f"{where}: the field {name} may be missing now"
        if "items" in old and "items" in new:
            yield from self._told(f"{where}[]", old["items"], new["items"], depth + 1)


def _sendable(schema: Document) -> Document:
    """What a parameter can say: nobody sends null in an address or a header, they leave it out."""
    others = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    return others[0] if len(others) == 1 else schema


def _resolved(document: Document, schema: Document) -> Document:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _alternatives(document: Document, schema: Document) -> list[Document]:
    nested = [one for word in ("anyOf", "oneOf") for one in schema.get(word, ())]
    if not nested:
        return [schema]
    return [found for one in nested for found in _alternatives(document, _resolved(document, one))]


def _kinds(document: Document, schema: Document) -> set[str]:
    """The JSON types that a value may have; none where it may be anything."""
    found: set[str] = set()
    for one in _alternatives(document, schema):
        kinds = one.get("type", ())
        found |= {kinds} if isinstance(kinds, str) else set(kinds)
    return found


def _values(document: Document, schema: Document) -> set[str]:
    found: set[str] = set()
    for one in _alternatives(document, schema):
        found |= {json.dumps(value) for value in one.get("enum", ())}
        found |= {json.dumps(one["const"])} if "const" in one else set()
    return found


def _fields(document: Document, schema: Document) -> dict[str, Document]:
    found: dict[str, Document] = {}
    for one in _alternatives(document, schema):
        found |= one.get("properties", {})
    return found


def _required(document: Document, schema: Document) -> set[str]:
    """Fields that every alternative with fields requires."""
    sets = [set(one.get("required", ())) for one in _alternatives(document, schema) if "properties" in one]
    return set.intersection(*sets) if sets else set()


def present_document() -> Document:
    """The API as it is."""
    from fastapi import FastAPI

    from hourhand.web.openapi import describe
    from hourhand.web.routes import PLACED

    app = FastAPI(openapi_url=None)
    app.router.routes.extend(PLACED.routes)
    document: Document = json.loads(json.dumps(describe(app)))
    return document


def main() -> int:
    """Compare, or make a release of what there is."""
    present = present_document()
    if "--release" in sys.argv[1:]:
        RELEASED.write_text(json.dumps(present, indent=1, sort_keys=True) + "\n")
        print(f"{RELEASED.name}: {len(present['paths'])} paths")
        return 0
    found = breaking_changes(json.loads(RELEASED.read_text()), present)
    print("\n".join(found) or "nothing breaks")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

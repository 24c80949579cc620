"""Parts of an audit as one: the API answers for some jobs at a time where there are very many."""

from hourhand.client.flow import Document

MOST_FINDINGS = 1_000


def added(whole: Document, part: Document) -> Document:
    """Numbers added, lists joined up to their limit."""
    summed = {**whole, "next_cursor": part["next_cursor"], "complete": part["complete"]}
    for name, value in whole.items():
        if isinstance(value, bool):
            continue
        if isinstance(value, int):
            summed[name] = value + part[name]
        elif isinstance(value, dict):
            summed[name] = {key: number + part[name][key] for key, number in value.items()}
        elif isinstance(value, list):
            summed[name] = (value + [one for one in part[name] if one not in value])[:MOST_FINDINGS]
    summed["complete"] = not summed["unread"] and not summed["partial"] and summed["next_cursor"] is None
    return summed

"""Text for a terminal: control characters made visible, long things cut, lengths in words."""

import re

# C0 and C1 controls, and the marks that turn the direction of text: a name must not move the cursor or hide.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def clean(text: str) -> str:
    """The text with everything escaped that a terminal would act on."""
    return _UNSAFE.sub(_escaped, text)


def clean_lines(text: str) -> str:
    """The same for text of many lines: what ends a line, and tabs, stay."""
    kept = (_UNSAFE.sub(_escaped_in_lines, line) for line in text.replace("\r\n", "\n").split("\n"))
    return "\n".join(kept)


def shortened(text: str, width: int) -> str:
    """At most `width` characters, the cut shown."""
    return text if len(text) <= width else text[: width - 1] + "…"


def plural(count: int, noun: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return {9: "\\t", 10: "\\n", 13: "\\r"}.get(code) or (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    )


def _escaped_in_lines(match: re.Match[str]) -> str:
    return match[0] if match[0] == "\t" else _escaped(match)

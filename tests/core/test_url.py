"""The spelling of target URLs, and that passwords are never shown."""

import pytest

from hourhand.core.url import masked_store_url, masked_url, url_faults


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com",
        "https://example.com:8443/a?b=c#d",
        "HTTPS://EXAMPLE.COM/",
        "http://[2606:4700::1]:80/",
        "http://user:pass@example.com/",
        "http://bücher.example/",
    ],
)
def test_good_urls(url: str) -> None:
    assert url_faults(url) == []


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("", "http:// or https://"),
        ("example.com", "http:// or https://"),
        ("ftp://example.com", "http:// or https://"),
        ("file:///etc/passwd", "http:// or https://"),
        ("gopher://x", "http:// or https://"),
        ("http://", "a URL such as"),
        ("http:///path", "a URL such as"),
        ("http://user@/path", "a URL such as"),
        ("http://[::1", "a URL such as"),
        ("http://a:99999/", "a URL such as"),
        ("http://a:0/", "a port from 1"),
        ("http://a b/", "no spaces"),
        ("http://a\\@b/", "no spaces"),
        ("http://a/\r\nX: y", "no spaces"),
        ("http://a/" + "x" * 2048, "at most 2,048 characters"),
    ],
)
def test_bad_urls_say_what_was_expected(url: str, expected: str) -> None:
    (fault,) = url_faults(url)
    assert expected in fault.expected
    assert fault.pointer == "/target/url"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ann:secret@example.com/x", "https://ann:***@example.com/x"),
        ("https://ann:se@cret@example.com/x", "https://ann:***@example.com/x"),
        ("https://:secret@example.com", "https://:***@example.com"),
        ("https://ann@example.com/x", "https://ann@example.com/x"),
        ("https://example.com:80/a@b:c@d", "https://example.com:80/a@b:c@d"),
        ("https://example.com?x=a:b@c", "https://example.com?x=a:b@c"),
        ("nonsense", "nonsense"),
    ],
)
def test_passwords_are_masked(url: str, shown: str) -> None:
    assert masked_url(url) == shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgres://ann:secret@db/x", "postgres://ann:***@db/x"),
        ("postgres://ann:se/c?r#e@t@db:5432/x", "postgres://ann:***@db:5432/x"),
        ("postgres://ann@db:5432/x", "postgres://ann@db:5432/x"),
        ("postgres://db:5432/x", "postgres://db:5432/x"),
        ("postgres:///x?host=/tmp&Password=secret&user=ann", "postgres:///x?host=/tmp&Password=***&user=ann"),
        ("sqlite:///./a:b@c.db", "sqlite:///./a:b@c.db"),
        ("postgre://ann:secret@db/x", "postgre://ann:***@db/x"),
        ("postgres://ann@corp:secret@db/x", "postgres://ann@corp:***@db/x"),
        ("postgres://ann:secret", "postgres://ann:***"),
        ("postgres://a:1,b:2/x", "postgres://a:1,b:2/x"),
        ("postgres://[::1]:5432/x", "postgres://[::1]:5432/x"),
        ("ann:secret@db/x", "a value that is not a URL"),
        ("postgres:ann:secret@db/x", "a value that is not a URL"),
        ("secret", "a value that is not a URL"),
    ],
)
def test_passwords_of_databases_are_masked(url: str, shown: str) -> None:
    assert masked_store_url(url) == shown

"""Which addresses are public, and what an operator's allow-list lets through besides."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.targets.addresses import parse_allowed, why_not_public, why_refused

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.215.14",
    "172.32.0.1",
    "100.128.0.1",
    "2606:4700::1111",
    "2a00:1450::1",
]

NOT_PUBLIC = {
    "unspecified": ["0.0.0.0", "0.1.2.3", "::"],
    "private": ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fd00:ec2::254"],
    "carrier-grade NAT": ["100.64.0.1", "100.127.255.255", "100.100.100.200"],
    "loopback": ["127.0.0.1", "127.255.255.255", "::1"],
    "cloud platform": ["168.63.129.16"],
    "link-local": ["169.254.169.254", "fe80::1"],
    "site-local": ["fec0::1"],
    "protocol assignment": ["192.0.0.1", "192.0.0.192", "2001:2::1"],
    "documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"],
    "6to4 relay": ["192.88.99.1"],
    "6to4": ["2002:7f00:1::"],
    "Teredo": ["2001::1", "2001:0:7f00:1::"],
    "benchmarking": ["198.18.0.1", "198.19.255.255"],
    "multicast": ["224.0.0.1", "239.255.255.255", "ff02::1"],
    "reserved": ["240.0.0.1", "255.255.255.255"],
    "IPv4-mapped": ["::ffff:127.0.0.1", "::ffff:8.8.8.8"],
    "NAT64": ["64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1"],
    "not global unicast": ["::127.0.0.1", "100::1", "4000::1", "5f00::1"],
}


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses(address: str) -> None:
    assert why_not_public(ipaddress.ip_address(address)) is None


@pytest.mark.parametrize(
    ("kind", "address"), [(kind, address) for kind, addresses in NOT_PUBLIC.items() for address in addresses]
)
def test_other_addresses_are_named(kind: str, address: str) -> None:
    assert why_not_public(ipaddress.ip_address(address)) == kind


def test_an_address_with_a_scope_is_not_public() -> None:
    assert why_not_public(ipaddress.ip_address("2606:4700::1%lo")) == "not global unicast"


@given(st.ip_addresses(v=4))
def test_no_translation_of_an_inner_address_is_public(inner: ipaddress.IPv4Address) -> None:
    number = int(inner)
    for outer in (0, 0xFFFF << 32, 0x64FF9B << 96, 0x64FF9B0001 << 80):
        assert why_not_public(ipaddress.IPv6Address(outer | number)) is not None
    assert why_not_public(ipaddress.IPv6Address(0x2002 << 112 | number << 80)) is not None


@given(st.ip_addresses())
def test_never_more_lenient_than_the_standard_library(address: ipaddress.IPv4Address) -> None:
    if not address.is_global or address.is_multicast or address.is_reserved:
        assert why_not_public(address) is not None


@pytest.mark.parametrize(
    "host",
    ["2130706433", "127.1", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "017700000001", "127.0.0.1.", "", "1"],
)
def test_an_odd_spelling_is_no_address(host: str) -> None:
    assert why_refused(host, 80, [host], ()) is not None
    assert why_refused(host, 80, [host], parse_allowed(["0.0.0.0/0"])) is not None


@pytest.mark.parametrize(
    ("addresses", "refused"),
    [
        (["1.1.1.1"], False),
        (["1.1.1.1", "2606:4700::1"], False),
        (["127.0.0.1"], True),
        (["1.1.1.1", "127.0.0.1"], True),
        (["127.0.0.1", "1.1.1.1"], True),
        (["1.1.1.1", "::1"], True),
        ([], True),
    ],
)
def test_one_address_that_is_not_public_is_enough(addresses: list[str], refused: bool) -> None:
    assert (why_refused("example.com", 80, addresses, ()) is not None) is refused


def test_a_refusal_names_the_kind_but_no_inner_address() -> None:
    refusal = why_refused("db.example.com", 80, ["10.1.2.3"], ())
    assert refusal == "'db.example.com' resolves to an address that is not public (private)"


@pytest.mark.parametrize(
    ("entry", "host", "address", "port", "passes"),
    [
        ("svc.internal", "svc.internal", "10.0.0.1", 80, True),
        ("svc.internal", "SVC.Internal.", "10.0.0.1", 80, True),
        ("SVC.internal.", "svc.internal", "10.0.0.1", 80, True),
        ("svc.internal", "evil.svc.internal", "10.0.0.1", 80, False),
        ("svc.internal", "xsvc.internal", "10.0.0.1", 80, False),
        ("svc.internal:8080", "svc.internal", "10.0.0.1", 8080, True),
        ("svc.internal:8080", "svc.internal", "10.0.0.1", 80, False),
        ("*.internal", "a.b.internal", "10.0.0.1", 80, True),
        ("*.internal", "internal", "10.0.0.1", 80, False),
        ("*.internal", "xinternal", "10.0.0.1", 80, False),
        ("*.internal:443", "a.internal", "10.0.0.1", 80, False),
        ("10.0.0.0/8", "anything.example", "10.9.9.9", 80, True),
        ("10.0.0.0/8", "anything.example", "11.9.9.9", 80, True),
        ("10.0.0.0/8", "anything.example", "192.168.0.1", 80, False),
        ("10.0.0.0/8:8080", "a", "10.9.9.9", 80, False),
        ("10.0.0.0/8:8080", "a", "10.9.9.9", 8080, True),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1", 9, True),
        ("127.0.0.1", "127.0.0.2", "127.0.0.2", 9, False),
        ("127.0.0.1", "x", "::ffff:127.0.0.1", 9, False),
        ("::1", "::1", "::1", 9, True),
        ("[::1]:80", "::1", "::1", 80, True),
        ("[::1]:80", "::1", "::1", 81, False),
        ("[fd00::/8]:80", "x", "fd12::1", 80, True),
        ("fd00::/8", "x", "fd12::1", 81, True),
        ("localhost", "127.0.0.1", "127.0.0.1", 80, False),
    ],
)
def test_allow_list(entry: str, host: str, address: str, port: int, passes: bool) -> None:
    refusal = why_refused(host, port, [address], parse_allowed([entry]))
    assert (refusal is None) is passes


def test_an_allowed_name_allows_every_address_it_has() -> None:
    allowed = parse_allowed(["svc.internal", "10.0.0.1"])
    assert why_refused("svc.internal", 80, ["10.0.0.1", "fd00::1", "1.1.1.1"], allowed) is None
    assert why_refused("other.internal", 80, ["10.0.0.1", "10.0.0.2"], allowed) is not None


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "*",
        "*.",
        "a b",
        "http://a",
        "a/b",
        "a:0",
        "a:70000",
        "[::1",
        "10.0.0.0/33",
        "127.1",
        "1.2.3",
        "a*b",
        "::1:x",
    ],
)
def test_a_wrong_entry_is_named(entry: str) -> None:
    with pytest.raises(ValueError, match=r"targets\.allow_hosts"):
        parse_allowed([entry])

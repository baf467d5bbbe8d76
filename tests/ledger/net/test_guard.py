"""Which URLs are asked, and which addresses are connected: names on the public internet, and nothing else."""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from random import Random
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yarl import URL

from ledger.errors import NotAccepted
from ledger.net.guard import MAX_URL, Target, check_url, is_public, require_public

LABEL = "a" * 63
LONGEST_HOST = ".".join([LABEL, LABEL, LABEL, "a" * 61])

NOT_ASKED = {
    "dotted": [
        *("127.0.0.1", "127.0.0.1:443", "10.0.0.5", "169.254.169.254", "0.0.0.0", "255.255.255.255", "1.1.1.1"),
        *("256.256.256.256", "1.2.3.4.5", "999.0.0.1"),
    ],
    "decimal": ["2130706433", "167772165", "0", "4294967295", "99999999999999999999"],
    "octal": ["0177.0.0.1", "0177.1", "017700000001", "0012.0.0.5", "00000000177.0.0.1", "0300.0250.1.1"],
    "hexadecimal": ["0x7f.0.0.1", "0x7f000001", "0X7F.0X0.0X0.0X1", "0xa.5", "0x", "0x0", "127.0.0.0x1", "name.0x7f"],
    "short": ["127.1", "127.0.1", "10.5", "1", "name.1"],
    "IPv6": [
        *("[::1]", "[::]", "[fc00::5]", "[2600:1f00::1]", "[::1]:443", "[0:0:0:0:0:0:0:1]", "::1", "[::1", "::1]"),
        *("[]", "[v1.a]"),
    ],
    "mapped": ["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::10.0.0.5]", "[2002:a00:5::]"],
    "zones": ["[fe80::1%25lo]", "[fe80::1%lo]", "[fe80::1%251]", "127.0.0.1%25lo"],
    "percent-encoded": [
        *("%31%32%37.0.0.1", "127%2e0%2e0%2e1", "127.0.0.1%2f.idv.example", "idv%2eexample", "%69dv.example"),
        *("localhost%00.idv.example", "idv.example%40127.0.0.1", "idv.example%2f", "%5b::1%5d"),
    ],
    "other digits and dots": [
        *("１２７.0.0.1", "１２７．０．０．１", "127。0。0。1", "①②⑦.⓪.⓪.①", "١٢٧.٠.٠.١", "𝟏𝟐𝟕.0.0.1"),
        *("idv。example", "idv．example", "idv｡example", "idv․example"),
    ],
    "other letters": [
        *("bücher.example", "ⅰdv.example", "ＩＤＶ.example", "idv.exаmple", "ı.example", "ℯxample.com", "ß.example"),
    ],
    "invisible letters": ["idv\u200b.example", "idv\u00ad.example", "\u202eidv.example", "idv.example\u2060"],
    "empty labels": [
        *("idv.example.", "idv.example..", ".idv.example", "idv..example", ".", "..", "127.0.0.1.", "0x7f.1."),
        *("localhost.", ""),
    ],
    "no full name": ["localhost", "intranet", "com", "LOCALHOST"],
    "bad labels": [
        *("-idv.example", "idv-.example", "idv.-example", "idv.example-", "_dmarc.example", "*.example"),
        *("idv_.example", "a!b.example", "a$b.example", "a,b.example", "(idv).example", f"{LABEL}a.example"),
        f"{LONGEST_HOST}a",
    ],
    "user names": [
        *("guest@idv.example", "guest:secret@idv.example", "@idv.example", ":@idv.example", "idv.example@127.0.0.1"),
        *("idv.example:443@127.0.0.1", "127.0.0.1@idv.example", "idv.example&@127.0.0.1", "a@b@idv.example"),
    ],
    "other ports": [
        *("idv.example:80", "idv.example:8443", "idv.example:0443", "idv.example:", "idv.example:4430"),
        *("idv.example:-443", "idv.example:+443", "idv.example:65979", "idv.example:443:443", "idv.example:٤٤٣"),
        *("idv.example:0", "idv.example:https", "idv.example:44３"),
    ],
    "backslashes": [
        *("idv.example\\@127.0.0.1", "127.0.0.1\\.idv.example", "\\idv.example", "idv.example\\"),
        "idv.example:443\\@127.0.0.1",
    ],
    "control characters": [
        *("idv.example\n", "idv.example\r\nHost: 127.0.0.1", "idv\t.example", "idv.example\0", "\nidv.example"),
        *("127.0.0.1\0.idv.example", "idv.example\x7f", "idv.example\x85", "idv.example\u2028", "idv .example"),
        " idv.example",
    ],
    "fragments": ["idv.example#", "idv.example#@127.0.0.1", "127.0.0.1#@idv.example", "#", "idv.example#/a"],
}

NOT_ASKED_AT_ALL = {
    "other schemes": [
        *("http://idv.example/", "ftp://idv.example/", "file:///etc/passwd", "file://idv.example/etc/passwd"),
        *("gopher://idv.example/", "dict://idv.example:443/", "wss://idv.example/", "javascript:alert(1)", "data:,x"),
        *("unix:///run/a.sock", "httpss://idv.example/", "xhttps://idv.example/", "view-source:https://idv.example/"),
        *("did:web:idv.example", "ｈttps://idv.example/"),
    ],
    "no scheme": ["", "idv.example", "//idv.example/", "/a", "?a", "#a", "://idv.example/", "https", "https:"],
    "other slashes": [
        *("https:/idv.example/", "https:idv.example", "https:///idv.example/", "https:\\\\idv.example\\"),
        *("https:/\\idv.example", "https:////idv.example/", "https://\\idv.example/", "https:\\/idv.example/"),
    ],
    "space around": [
        *(" https://idv.example/", "https://idv.example/ ", "https://idv.example/\n", "\ufeffhttps://idv.example/"),
    ],
    "paths": [
        *(f"https://idv.example/{odd}" for odd in ' "<>\\^`{|}[]#\t\r\n\0\x7f\x1f\xa0éñ한\U0001f3e0\ud800'),
        *("https://idv.example/%", "https://idv.example/%2", "https://idv.example/%zz", "https://idv.example/%u0041"),
        *("https://idv.example/a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "https://idv.example/?é"),
        "https://idv.example?a#b",
    ],
    "too long": [
        *("https://idv.example/" + "a" * (MAX_URL - 19), "https://idv.example/" + "a" * 10**6),
        "https://" + "a." * 5000 + "example/",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://idv.example", Target("https://idv.example/", "idv.example")),
        ("https://idv.example/", Target("https://idv.example/", "idv.example")),
        ("https://IDV.Example:443/A/b", Target("https://idv.example/A/b", "idv.example")),
        ("https://idv.example?a=b", Target("https://idv.example/?a=b", "idv.example")),
        ("https://idv.example:443?a=b", Target("https://idv.example/?a=b", "idv.example")),
        (
            "https://xn--bcher-kva.example/%C3%A9",
            Target("https://xn--bcher-kva.example/%C3%A9", "xn--bcher-kva.example"),
        ),
        ("https://a.b/.well-known/did.json", Target("https://a.b/.well-known/did.json", "a.b")),
        ("https://a.b//x/../y/./z", Target("https://a.b//x/../y/./z", "a.b")),
        ("https://a.b/:443@x?https://c.d/", Target("https://a.b/:443@x?https://c.d/", "a.b")),
        ("https://a.b/~_-.!$&'()*+,;=", Target("https://a.b/~_-.!$&'()*+,;=", "a.b")),
        # Numbers are names when another label stands behind them.
        ("https://1e100.net/", Target("https://1e100.net/", "1e100.net")),
        ("https://127.0.0.1.example/", Target("https://127.0.0.1.example/", "127.0.0.1.example")),
        ("https://0x7f.1.a1/", Target("https://0x7f.1.a1/", "0x7f.1.a1")),
        (f"https://{LONGEST_HOST}/", Target(f"https://{LONGEST_HOST}/", LONGEST_HOST)),
    ],
)
def test_names_on_the_port_of_https_are_asked(url: str, target: Target) -> None:
    assert check_url(url) == target
    assert check_url(target.url) == target
    assert target.origin == f"https://{target.host}"


@pytest.mark.parametrize("kind", NOT_ASKED)
def test_hosts_that_are_not_asked(kind: str) -> None:
    """Whatever follows them."""
    for host in NOT_ASKED[kind]:
        for rest in ("", "/", "/.well-known/did.json", "?a=b"):
            assert_not_asked(f"https://{host}{rest}")


@pytest.mark.parametrize("kind", NOT_ASKED_AT_ALL)
def test_urls_that_are_not_asked(kind: str) -> None:
    for url in NOT_ASKED_AT_ALL[kind]:
        assert_not_asked(url)


def test_the_longest_url() -> None:
    longest = "https://idv.example/" + "a" * (MAX_URL - 20)
    assert len(longest) == MAX_URL
    assert check_url(longest).url == longest
    assert_not_asked(longest + "a")


def assert_not_asked(url: str) -> None:
    with pytest.raises(NotAccepted) as refusal:
        check_url(url)
    assert refusal.value.code == "address_not_allowed", url
    # It goes into answers and logs.
    assert refusal.value.message.isprintable()
    assert len(refusal.value.message) < 2000


_pieces = st.sampled_from(
    [
        *(
            "https://",
            "http://",
            "//",
            "/",
            "\\",
            "@",
            ":",
            ":443",
            ":80",
            "?",
            "#",
            "%",
            "%2e",
            "%40",
            ".",
            "..",
            "-",
            "_",
        ),
        *(
            "a",
            "A",
            "idv",
            ".example",
            "xn--",
            "xn--a",
            "localhost",
            "127",
            "0",
            "1",
            "0x",
            "0x7f",
            "0177",
            "f",
            "[",
            "]",
        ),
        *(
            "[::1]",
            "::",
            " ",
            "\t",
            "\n",
            "\r",
            "\0",
            "é",
            "。",
            "１",
            "ﬀ",
            "\u200b",
            "\u00ad",
            "&",
            ";",
            "=",
            "+",
            "~",
        ),
    ]
)
_urls = st.lists(_pieces, max_size=8).map("".join).map("https://".__add__) | st.builds(
    "https://{}.{}{}".format,
    st.from_regex(r"[a-z0-9.-]{1,20}", fullmatch=True),
    st.from_regex(r"[a-z0-9-]{1,8}", fullmatch=True),
    st.lists(_pieces, max_size=3).map("".join),
)


@settings(max_examples=1000)
@given(_urls)
def test_what_is_asked_is_the_same_host_to_every_reader(url: str) -> None:
    """Whoever reads the URL after the guard has no other view of where it leads."""
    try:
        target = check_url(url)
    except NotAccepted:
        return
    assert check_url(target.url) == target
    assert target.url.isascii()
    for parts in (urlsplit(target.url), urlsplit(url)):
        assert (parts.scheme, parts.hostname, parts.port or 443) == ("https", target.host, 443)
        assert (parts.username, parts.password, parts.fragment) == (None, None, "")
    sent = URL(target.url, encoded=True)
    assert (sent.raw_host, sent.port, sent.user) == (target.host, 443, None)
    assert str(sent) == target.url
    other = httpx.URL(target.url)
    assert (other.raw_host.decode(), other.port, other.userinfo) == (target.host, None, b"")


@settings(max_examples=1000)
@given(_urls)
def test_what_is_asked_is_no_address_to_the_system(url: str) -> None:
    """No spelling of an address gets past the guard as a name: not with the dot behind it either."""
    try:
        host = check_url(url).host
    except NotAccepted:
        return
    for name in (host, f"{host}."):
        with pytest.raises(OSError):
            socket.inet_aton(name)
        with pytest.raises(OSError):
            socket.getaddrinfo(name, 443, flags=socket.AI_NUMERICHOST)


@given(st.ip_addresses(v=4))
def test_every_spelling_of_every_address_is_refused(address: IPv4Address) -> None:
    number, (a, b, c, d) = int(address), address.packed
    for spelling in (
        *(str(address), str(number), hex(number), f"0{number:o}", f"{a}.{number & 0xFFFFFF}", f"{a}.{b}.{c << 8 | d}"),
        *(f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}", f"0{a:o}.0{b:o}.0{c:o}.0{d:o}", f"0x{a:x}.{b}.0{c:o}.{d}", f"{address}."),
        *(f"[::ffff:{address}]", f"[::{address}]", f"[64:ff9b::{address}]", f"[{IPv6Address(number)}]"),
    ):
        assert_not_asked(f"https://{spelling}/")
        assert_not_asked(f"https://{spelling.upper()}:443/")


SPECIAL = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
    *("192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    *("224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32"),
    *("::/128", "::1/128", "::ffff:0:0/96", "::ffff:0:0:0/96", "::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64"),
    *("100:0:0:1::/64", "2001::/32", "2001:2::/48", "2001:10::/28", "2001:20::/28", "2001::/23", "2001:db8::/32"),
    *("2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
    # What no registry has handed out.
    *("::/3", "4000::/2", "8000::/1"),
)  # fmt: skip


@pytest.mark.parametrize("network", SPECIAL)
def test_special_networks_are_not_public(network: str) -> None:
    """The first, the last and some of their addresses, in every spelling that a resolver might use."""
    special = ip_network(network)
    first, last = int(special[0]), int(special[-1])
    random = Random(network)
    make = IPv4Address if special.version == 4 else IPv6Address
    for number in (first, last, *(random.randint(first, last) for _ in range(100))):
        address = make(number)
        assert address in special
        assert not is_public(str(address)), address
        assert not is_public(address.exploded), address
        assert not is_public(address.exploded.upper()), address


@pytest.mark.parametrize(
    "address",
    [
        # In the clouds: metadata of most of them; AWS's tasks and name server; Azure; Alibaba; Oracle.
        *("169.254.169.254", "169.254.170.2", "169.254.169.253", "168.63.129.16", "100.100.100.200", "192.0.0.192"),
        *("fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fe80::a9fe:a9fe"),
        # The same through IPv6: mapped, compatible, NAT64, 6to4, Teredo.
        *("::ffff:169.254.169.254", "::169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"),
        "::ffff:0:169.254.169.254",
        *("2001:0:a9fe:a9fe::1", "2001:0:4136:e378:8000:63bf:5601:5601", "64:ff9b:1::a9fe:a9fe"),
        # And public addresses by way of a translator.
        *("::ffff:20.1.1.1", "::20.1.1.1", "64:ff9b::1401:101", "2002:1401:101::1"),
    ],
)  # fmt: skip
def test_where_clouds_and_translators_answer_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        *("1.1.1.1", "8.8.8.8", "9.9.9.9", "20.1.1.1", "93.184.215.14", "151.101.1.69", "185.199.108.153"),
        *("2600:1f00::1", "2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001:82a::200e", "2620:fe::fe"),
        # The neighbours of special networks.
        *("1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0"),
        *("169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0"),
        "192.0.3.0",
        *("192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0"),
        *("198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255"),
        *("168.63.129.15", "168.63.129.17"),
        *("2001:200::", "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::"),
        *("2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2003::", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        "3fff:1000::",
    ],
)  # fmt: skip
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)
    assert is_public(ip_address(address).exploded)


@settings(max_examples=2000)
@given(st.ip_addresses())
def test_nothing_is_public_that_python_calls_special(address: IPv4Address | IPv6Address) -> None:
    """The other way round does not hold: to Python, translators and multicast are global."""
    special = [
        *(not address.is_global, address.is_private, address.is_multicast, address.is_reserved),
        *(address.is_loopback, address.is_link_local, address.is_unspecified),
    ]
    if isinstance(address, IPv6Address):
        inner = (address.ipv4_mapped, address.sixtofour, address.teredo)
        special += [address.is_site_local, *(each is not None for each in inner)]
    if any(special):
        assert not is_public(str(address))


@pytest.mark.parametrize(
    "address",
    [
        *("", " ", "idv.example", "localhost", "8.8.8.8 ", " 8.8.8.8", "8.8.8.8\n", "8.8.8.8/32", "8.8.8", "134744072"),
        *("0x8080808", "08.8.8.8", "010.8.8.8", "８.8.8.8", "8.8.8.8%eth0", "8.8.8.8:443", "[2600:1f00::1]"),
        *("2600:1f00::1%lo", "2600:1f00::1%", "2600:1f00::1/128", "2600:1f00::g", "fe80::1%lo", "fe80::1%1", "\0", "é"),
    ],
)  # fmt: skip
def test_what_is_no_plain_address_is_not_public(address: str) -> None:
    assert not is_public(address)


@given(st.text())
def test_no_text_is_too_odd_to_be_judged(text: str) -> None:
    assert is_public(text) in (True, False)


def test_all_addresses_of_a_name_have_to_be_public() -> None:
    """And nobody is told which one is not: it would be a map of the operator's own network."""
    require_public("idv.example", ["20.1.1.1", "2600:1f00::1"])
    for addresses in (["10.0.0.5"], ["20.1.1.1", "10.0.0.5"], ["10.0.0.5", "20.1.1.1"], ["2600:1f00::1", "::1"]):
        with pytest.raises(NotAccepted) as refusal:
            require_public("idv.example", addresses)
        assert refusal.value.code == "address_not_allowed"
        assert not any(address in refusal.value.message for address in addresses)

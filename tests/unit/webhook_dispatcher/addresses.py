"""Addresses and forms of addresses that deliveries never go to; and some that they do."""

from __future__ import annotations

from ipaddress import ip_network

from services.webhook_dispatcher.adapters.networks import REFUSED

PUBLIC = [
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2606:4700:4700::1111",
    "2a00:1450:4001:81b::200e",
    "3ffd:ffff::1",
]

OF_THE_TABLE = sorted(
    {
        str(address)
        for network in map(ip_network, REFUSED)
        for address in (network[0], network[network.num_addresses // 2], network[-1])
    }
)
"""The first, the middle and the last address of each network."""

NOTORIOUS = [
    "0.0.0.0",
    "10.0.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.31.255.255",
    "192.168.1.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::8.8.8.8",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:2::1",
    "2001:10::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%1",
    "2606:4700::1%2",
    "fec0::1",
    "ff02::1",
    "4000::1",
    "1::1",
    "2a00:1450::5efe:7f00:1",
    "2a00:1450::200:5efe:7f00:1",
    "2a00:1450::100:5efe:808:808",
]

REFUSED_ADDRESSES = sorted({*OF_THE_TABLE, *NOTORIOUS})

LITERAL_FORMS = [
    "2130706433",
    "0x7f.1",
    "0x7f000001",
    "0X7F000001",
    "127.1",
    "127.0.1",
    "0177.0.0.1",
    "017700000001",
    "0",
    "0x",
    "127.0.0.1.",
    "127.0.0.01",
    "1.2.3.4.5",
    "256.256.256.256",
    "8.8.8.8",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[2606:4700:4700::1111]",
    "[0:0:0:0:0:0:0:1]",
    "[fe80::1%251]",
    "[fe80::1%25eth0]",
    "[v1.abc]",
    "[::1",
    "::1",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "%31%32%37.0.0.1",
    "127.0.0.%31",
]
"""Hosts in a URL that are addresses in some form, or could be read as one, whether public or not."""

"""Patterns that the documents show: what a pattern allows is accepted, but for the rules that a field's description
names. They are anchored, and mean the same in ECMAScript and in Python.
"""

VISIBLE_TEXT = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"
"""Text without control characters that is not blank. The document says in words what else a text has to be, since a
narrower pattern would break those who compiled the released one.
"""
PLAIN_TEXT = r"^[^\x00-\x1f\x7f-\x9f]*$"
"""Text without control characters, perhaps nothing."""
FILTER_ID = r"^[!-~]{1,128}$"
HEADER_TEXT = r"^[ -~]{0,255}$"

EIN = r"^(0[1-6]|1[0-6]|2[0-7]|[35][0-9]|4[0-8]|6[0-8]|7[1-7]|8[0-8]|9[0-589])-?[0-9]{7}$"
"""The prefixes are those that the IRS assigns (irs.gov, "How EINs are assigned and valid EIN prefixes")."""

_SSN = (
    r"(00[1-9]|0[1-9][0-9]|[1-57-8][0-9]{2}|6[0-57-9][0-9]|66[0-57-9])"
    r"-?(0[1-9]|[1-9][0-9])-?(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
)
_ITIN = r"9[0-9]{2}-?(5[0-9]|6[0-5]|7[0-9]|8[0-8]|9[0-24-9])-?[0-9]{4}"
SSN = f"^{_SSN}$"
"""The areas 000, 666 and from 900, the group 00 and the serial 0000 are not assigned (SSA, POMS RM 10201.035)."""
TIN = f"^({_SSN}|{_ITIN})$"
"""The fourth and fifth digits of an ITIN are 50 to 65, 70 to 88, 90 to 92 and 94 to 99 (Internal Revenue Manual
3.21.263).
"""

PHONE = r"^(\+[1-9][0-9]{6,14}|\(?[2-9][0-9]{2}\)?[ .-]?[2-9][0-9]{2}[ .-]?[0-9]{4})$"

_LABEL_REST = r"([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST = rf"([A-Za-z0-9_]{_LABEL_REST}\.)*[A-Za-z]{_LABEL_REST}"
"""A host name in ASCII, whose last label is no number. One with `xn--` is not checked further."""
_PORT = r"([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_IN_PATH = r"([A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})"
_IN_QUERY = r"[A-Za-z0-9._~!$&'()*+,;=:@%/?-]"
_PATH = rf"(/{_IN_PATH}*)?(\?{_IN_QUERY}*)?"
WEB_URL = rf"^[Hh][Tt][Tt][Pp][Ss]?://{_HOST}(:{_PORT})?{_PATH}(#{_IN_QUERY}*)?$"
CALLBACK_URL = rf"^[Hh][Tt][Tt][Pp][Ss]://{_HOST}(:(443|8443))?{_PATH}$"

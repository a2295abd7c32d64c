#!/usr/bin/env python3
"""Writes deliveries.json. Deterministic; signatures come from Python's own hmac, never from the crate under test."""

import base64
import hashlib
import hmac
import json
import pathlib

SECRET = "whsec_made_up_for_the_vectors_only"
OLD = "whsec_made_up_as_the_key_before_it"
OTHER = "whsec_made_up_for_another_tenant_1"
NOW = 1763690000
BODY = '{"id":"evt_1","type":"row.created","createdAt":"2025-11-21T01:53:20Z","workspaceId":"ws_1","data":{}}'
SIGNATURE, TIMESTAMP = "X-Service-Signature", "X-Service-Timestamp"
WEBHOOK_ID, EVENT_ID, EVENT_TYPE = "X-Service-Webhook-Id", "X-Service-Event-Id", "X-Service-Event-Type"

deliveries = []


def digest(body, timestamp=str(NOW), key=SECRET):
    key = key if isinstance(key, bytes) else key.encode()
    body = body if isinstance(body, bytes) else body.encode()
    return hmac.new(key, timestamp.encode("latin-1") + b"." + body, hashlib.sha256).hexdigest()


def ring(*keys, scope=None):
    keys = keys or (("primary", SECRET),)
    return {"keys": [{"name": name, "secret": secret} for name, secret in keys], **({"scope": scope} if scope else {})}


SINGLE = {"single": ring()}
TENANTS = {"subscriptions": {"wh_1": ring(), "wh_2": ring(("primary", OTHER), scope="tenant-2")}}


def add(name, verdict, body=BODY, headers=None, signature=None, timestamp=str(NOW), keys=SINGLE, now=NOW,
        past=300, ahead=300, extra=(), key=SECRET, signed=None):
    """A delivery that is right but for what the arguments say. `body` is text, bytes, or (text, times)."""
    whole = body[0] * body[1] if isinstance(body, tuple) else body
    if signature is None:
        signature = "sha256=" + digest(whole if signed is None else signed, timestamp, key)
    if headers is None:
        headers = [[SIGNATURE, signature], [TIMESTAMP, timestamp], *map(list, extra)]
    if isinstance(body, tuple):
        stored = {"repeat": body[0], "times": body[1]}
    elif isinstance(body, bytes):
        stored = {"base64": base64.b64encode(body).decode()}
    else:
        stored = {"text": body}
    deliveries.append({
        "name": name, "keys": keys, "window": {"past": past, "ahead": ahead}, "now": str(now),
        "headers": headers, "body": stored, "verdict": verdict,
    })


def verified(key="primary", scope="default"):
    return {"verified": {"key": key, "scope": scope}}


def refused(kind, header=None):
    return {"refused": {"kind": kind, **({"header": header.lower()} if header else {})}}


MISMATCH = refused("signature-mismatch")

# Authentic and fresh.
add("a plain delivery", verified())
add("header names in any case and order, foreign headers between", verified(), headers=[
    ["Host", "receiver.example.org"], ["x-SERVICE-timestamp", str(NOW)], ["X-Service-Nonsense1", "x"],
    ["X-SERVICE-SIGNATURE", "sha256=" + digest(BODY)], ["Accept", "*/*"], ["Accept", "*/*"]])
add("unsigned headers say what they like", verified(), extra=[
    (EVENT_ID, "evt_other"), (EVENT_TYPE, ""), (WEBHOOK_ID, "wh_unheard_of")])
add("empty body", verified(), body="")
add("one byte", verified(), body="0")
for size in (42, 43, 44, 45, 52, 53, 54, 116, 117, 118):
    add(f"a body of {size} bytes, about where SHA-256 pads over a block", verified(), body=("x", size))
add("1 MiB", verified(), body=("0123456789abcdef", 1 << 16))
add("binary body, all byte values", verified(), body=bytes(range(256)))
add("a body that is no UTF-8", verified(), body=b'{"id":"\xff\xfe\xc0\x80"}')
add("emoji", verified(), body='{"name":"\U0001f980\u200d\U0001f9ea \u00e9 e\u0301"}')
add("CRLF and a last line break", verified(), body='{\r\n  "id": "evt_1"\r\n}\n')
add("byte order mark", verified(), body=b"\xef\xbb\xbf{}")
add("escaped slash", verified(), body='{"url":"https:\\/\\/example.org\\/"}')
add("number text", verified(), body='{"n":1.0,"e":1E+2,"big":18446744073709551617}')
add("doubled and unsorted keys", verified(), body='{"b":1,"a":2,"b":3}')
add("NUL and a dot in front", verified(), body=b"\x00.\x00")
add("a secret without the prefix, of a service configured so", verified(), key="made-up-without-any-prefix",
    keys={"single": ring(("primary", "made-up-without-any-prefix"))})
add("a secret longer than a block of SHA-256", verified(), key="whsec_" + "made_up_" * 20,
    keys={"single": ring(("primary", "whsec_" + "made_up_" * 20))})
add("the first second", verified(), timestamp="1", now=1)
add("sixteen digits", verified(), timestamp="9999999999999999", now=9999999999999999)

# Rotation: every live key is tried, and the one that matched is named.
ROTATING = {"single": ring(("new", SECRET), ("old", OLD), scope="orders")}
add("signed with the new key of two", verified("new", "orders"), keys=ROTATING)
add("signed with the old key of two", verified("old", "orders"), keys=ROTATING, key=OLD)
add("signed with a retired key", MISMATCH, keys={"single": ring(("new", SECRET))}, key=OLD)
FOUR = {"single": ring(*((f"key-{n}", f"whsec_made_up_as_number_{n}_of_four") for n in range(4)))}
for n in range(4):
    add(f"signed with key {n} of four", verified(f"key-{n}"), keys=FOUR, key=f"whsec_made_up_as_number_{n}_of_four")
add("signed with a fifth key", MISMATCH, keys=FOUR)

# Subscriptions: the unsigned id selects, the key decides.
add("first subscription", verified(scope="wh_1"), keys=TENANTS, extra=[(WEBHOOK_ID, "wh_1")])
add("second subscription, with a scope of its own", verified(scope="tenant-2"), keys=TENANTS, key=OTHER,
    extra=[(WEBHOOK_ID, "wh_2")])
add("id changed on the way to another subscription", MISMATCH, keys=TENANTS, extra=[(WEBHOOK_ID, "wh_2")])
for name, id in (("unknown", "wh_3"), ("empty", ""), ("differing in case", "WH_1"), ("spaced", " wh_1"), ("no UTF-8", "wh_\xff")):
    add(f"subscription id: {name}", refused("unknown-subscription"), keys=TENANTS, extra=[(WEBHOOK_ID, id)])
add("no subscription id, two subscriptions", refused("header-missing", WEBHOOK_ID), keys=TENANTS)
ALONE = {"subscriptions": {"wh_1": ring()}}
add("no subscription id, one subscription", verified(scope="wh_1"), keys=ALONE)
add("unknown subscription id, one subscription", refused("unknown-subscription"), keys=ALONE, extra=[(WEBHOOK_ID, "wh_2")])

# The window.
for age, verdict in ((0, verified()), (299, verified()), (300, verified()), (301, refused("stale")), (86400, refused("stale")),
                     (-1, verified()), (-300, verified()), (-301, refused("ahead"))):
    add(f"age {age} s", verdict, now=NOW + age)
add("own limits, just inside: old", verified(), now=NOW + 10, past=10, ahead=0)
add("own limits, just outside: old", refused("stale"), now=NOW + 11, past=10, ahead=0)
add("own limits, just inside: ahead", verified(), now=NOW, past=0, ahead=0)
add("own limits, just outside: ahead", refused("ahead"), now=NOW - 1, past=0, ahead=0)
add("the clock at its greatest", refused("stale"), now=2**63 - 1)
add("the clock at its least", refused("ahead"), now=-(2**63))
add("the clock before 1970", refused("ahead"), now=-1)
add("milliseconds", refused("ahead"), timestamp=str(NOW * 1000))
add("stale and forged: the window is looked at first", refused("stale"), now=NOW + 301, key=OTHER)
add("stale, for nobody", refused("stale"), now=NOW + 301, keys=TENANTS, extra=[(WEBHOOK_ID, "wh_3")])

# Headers: missing, doubled, malformed.
right = {SIGNATURE: "sha256=" + digest(BODY), TIMESTAMP: str(NOW), WEBHOOK_ID: "wh_1", EVENT_ID: "evt_1", EVENT_TYPE: "row.created"}
add("no headers at all", refused("header-missing", SIGNATURE), headers=[])
for name in (SIGNATURE, TIMESTAMP):
    add(f"{name} missing", refused("header-missing", name), headers=[[n, v] for n, v in right.items() if n != name])
for name, value in right.items():
    pairs = [[n, v] for n, v in right.items()]
    add(f"{name} twice, alike", refused("header-doubled", name), headers=[*pairs, [name, value]])
    add(f"{name} twice, other value and case", refused("header-doubled", name), headers=[[name.lower(), "x"], *pairs])
    add(f"{name} three times", refused("header-doubled", name), headers=[*pairs, [name, value], [name.upper(), value]])
BAD_TIMESTAMPS = {
    "empty": "", "zero": "0", "leading zero": f"0{NOW}", "plus": f"+{NOW}", "minus": f"-{NOW}", "least of 64 bits": str(-(2**63)),
    "beyond 64 bits": str(2**63), "beyond 128 bits": str(2**128), "seventeen digits": "1" + "0" * 16, "space before": f" {NOW}",
    "space after": f"{NOW} ", "tab": f"\t{NOW}", "line break": f"{NOW}\n", "fraction": f"{NOW}.0", "dot": f"{NOW}.", "exponent": "1e9",
    "hexadecimal": hex(NOW), "underscore": "1_763_690_000", "comma": "1,763,690,000", "two joined": f"{NOW}, {NOW}",
    "date": "2025-11-21T01:53:20Z", "NUL": f"{NOW}\0", "Arabic-Indic digits": "\xd9\xa1\xd9\xa7\xd9\xa6\xd9\xa3",
    "superscript": "176369000\xb2", "infinite": "inf", "8 KiB of nines": "9" * 8192, "quoted": f'"{NOW}"', "null": "null",
}
for name, value in BAD_TIMESTAMPS.items():
    # Signed over the very bytes: what refuses them is their form alone.
    add(f"timestamp: {name}", refused("header-malformed", TIMESTAMP), timestamp=value)
good = digest(BODY)
BAD_SIGNATURES = {
    "empty": "", "prefix alone": "sha256=", "no prefix": good, "sha1=": f"sha1={good[:40]}", "sha1= with all digits": f"sha1={good}",
    "sha512=": f"sha512={good * 2}", "none=": f"none={good}", "prefix in upper case": f"SHA256={good}", "prefix with a dash": f"sha-256={good}",
    "prefix twice": f"sha256=sha256={good}", "colon": f"sha256:{good}", "upper-case hex": f"sha256={good.upper()}",
    "one upper-case digit": f"sha256={good[:-1]}F", "one digit short": f"sha256={good[:-1]}", "two digits short": f"sha256={good[:-2]}",
    "half": f"sha256={good[:32]}", "one digit more": f"sha256={good}0", "a byte more": f"sha256={good}00", "space before": f" sha256={good}",
    "space after": f"sha256={good} ", "space after the sign": f"sha256= {good}", "line break": f"sha256={good}\n", "NUL": f"sha256={good}\0",
    "two joined": f"sha256={good},sha256={good}", "two joined with a space": f"sha256={good}, sha256={good}", "quoted": f'"sha256={good}"',
    "base64": "sha256=" + base64.b64encode(bytes.fromhex(good)).decode(), "a letter beyond f": f"sha256={good[:-1]}g",
    "a byte beyond ASCII": f"sha256={good[:-1]}\xff", "with a timestamp, as others do": f"t={NOW},v1={good}", "version, as others do": f"v1,{good}",
}
for name, value in BAD_SIGNATURES.items():
    add(f"signature: {name}", refused("header-malformed", SIGNATURE), signature=value)
add("both malformed: the signature is named", refused("header-malformed", SIGNATURE), signature="sha256=", timestamp="+1")

# Well-formed, fresh, and not authentic.
add("a byte of the body changed", MISMATCH, body=BODY.replace("evt_1", "evt_2"), signed=BODY)
add("one bit of the body changed", MISMATCH, body=b"a", signed=b"c")
add("a byte of the body missing", MISMATCH, body=BODY[:-1], signed=BODY)
add("a byte after the body", MISMATCH, body=BODY + "\n", signed=BODY)
add("empty body in place of the signed one", MISMATCH, body="", signed=BODY)
add("re-serialised with spaces", MISMATCH, body=json.dumps(json.loads(BODY)), signed=BODY)
add("re-serialised with sorted keys", MISMATCH, body=json.dumps(json.loads(BODY), sort_keys=True, separators=(",", ":")), signed=BODY)
add("re-serialised without escapes", MISMATCH, body='{"a":"\u00e9/"}', signed='{"a":"\\u00e9\\/"}')
add("byte order mark removed", MISMATCH, body="{}", signed=b"\xef\xbb\xbf{}")
add("line breaks changed", MISMATCH, body="{\n}", signed="{\r\n}")
add("Unicode normalised", MISMATCH, body="\u00e9", signed="e\u0301")
add("invalid bytes replaced", MISMATCH, body="\ufffd", signed=b"\xff")
add("timestamp changed", MISMATCH, timestamp=str(NOW + 1), signature="sha256=" + digest(BODY))
add("timestamp not signed", MISMATCH, signature="sha256=" + hmac.new(SECRET.encode(), BODY.encode(), hashlib.sha256).hexdigest())
add("dot not signed", MISMATCH, signature="sha256=" + hmac.new(SECRET.encode(), (str(NOW) + BODY).encode(), hashlib.sha256).hexdigest())
add("dot moved into the body", MISMATCH, body="5.{}", timestamp="176369000", now=176369000, signature="sha256=" + digest("{}", "1763690005"))
add("dot moved into the timestamp", MISMATCH, body="{}", timestamp=str(NOW), signature="sha256=" + digest(f"{NOW}.{{}}", "1"))
add("signed as re-printed, with a leading zero", MISMATCH, signature="sha256=" + digest(BODY, f"0{NOW}"))
add("signed as re-printed, as a fraction", MISMATCH, signature="sha256=" + digest(BODY, f"{NOW}.0"))
add("signed with an event id in front, as others do", MISMATCH, signature="sha256=" + digest(BODY, f"evt_1.{NOW}"))
add("another key", MISMATCH, key=OTHER)
add("key without its prefix", MISMATCH, key=SECRET.removeprefix("whsec_"))
# As other services do it: strip the prefix, decode the rest.
add("key decoded from base64", MISMATCH, key=base64.urlsafe_b64decode(SECRET.removeprefix("whsec_")))
add("key hashed", MISMATCH, key=hashlib.sha256(SECRET.encode()).digest())
add("key with a line break", MISMATCH, key=SECRET + "\n")
add("key in upper case", MISMATCH, key=SECRET.upper())
add("empty key", MISMATCH, key="")
add("plain hash in place of a MAC", MISMATCH, signature="sha256=" + hashlib.sha256((SECRET + f"{NOW}." + BODY).encode()).hexdigest())
add("hash of the body", MISMATCH, signature="sha256=" + hashlib.sha256(BODY.encode()).hexdigest())
add("all zeros", MISMATCH, signature="sha256=" + "0" * 64)
add("first digit of the signature changed", MISMATCH, signature=f"sha256={'0' if good[0] != '0' else '1'}{good[1:]}")
add("last digit of the signature changed", MISMATCH, signature=f"sha256={good[:-1]}{'0' if good[-1] != '0' else '1'}")
add("signature reversed", MISMATCH, signature="sha256=" + bytes.fromhex(good)[::-1].hex())

names = [delivery["name"] for delivery in deliveries]
assert len(names) == len(set(names)), "two deliveries have one name"
lines = ",\n".join(json.dumps(delivery) for delivery in deliveries)
path = pathlib.Path(__file__).with_name("deliveries.json")
path.write_text('{"format": 1, "deliveries": [\n' + lines + "\n]}\n", encoding="ascii", newline="\n")
print(f"{len(deliveries)} deliveries written")

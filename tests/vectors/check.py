#!/usr/bin/env python3
"""Judges deliveries.json by the service's rules, straightforwardly, with Python's own hmac. Shares nothing with the crate."""

import base64
import hashlib
import hmac
import json
import pathlib
import re
import sys

OURS = ["signature", "timestamp", "webhook-id", "event-id", "event-type"]
FORMS = {"signature": r"sha256=[0-9a-f]{64}", "timestamp": r"[1-9][0-9]{0,15}"}


def refused(kind, header=None):
    return {"refused": {"kind": kind, **({"header": "x-service-" + header} if header else {})}}


def body_of(stored):
    if "base64" in stored:
        return base64.b64decode(stored["base64"])
    return (stored["text"] if "text" in stored else stored["repeat"] * stored["times"]).encode()


def judge(delivery):
    found = {}
    for short in OURS:
        values = [value for name, value in delivery["headers"] if name.lower() == "x-service-" + short]
        if len(values) > 1:
            return refused("header-doubled", short)
        if not values and short in FORMS:
            return refused("header-missing", short)
        if short in FORMS and not re.fullmatch(FORMS[short], values[0], re.ASCII):
            return refused("header-malformed", short)
        found[short] = values[0] if values else None

    age = int(delivery["now"]) - int(found["timestamp"])
    if age > delivery["window"]["past"]:
        return refused("stale")
    if -age > delivery["window"]["ahead"]:
        return refused("ahead")

    keys, scope = delivery["keys"], "default"
    if "single" in keys:
        ring = keys["single"]
    else:
        rings = keys["subscriptions"]
        scope = found["webhook-id"]
        if scope is None and len(rings) > 1:
            return refused("header-missing", "webhook-id")
        if scope is None:
            scope = next(iter(rings))
        if scope not in rings:
            return refused("unknown-subscription")
        ring = rings[scope]

    signed = found["timestamp"].encode() + b"." + body_of(delivery["body"])
    for key in ring["keys"]:
        mac = hmac.new(key["secret"].encode(), signed, hashlib.sha256).hexdigest()
        if hmac.compare_digest("sha256=" + mac, found["signature"]):
            return {"verified": {"key": key["name"], "scope": ring.get("scope", scope)}}
    return refused("signature-mismatch")


file = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("deliveries.json")
deliveries = json.loads(file.read_bytes())["deliveries"]
wrong = [delivery["name"] for delivery in deliveries if judge(delivery) != delivery["verdict"]]
for name in wrong:
    print("differs:", name)
print(f"{len(deliveries)} deliveries judged, {len(wrong)} differ")
sys.exit(1 if wrong or not deliveries else 0)

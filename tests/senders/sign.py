"""Signs made-up deliveries with the senders' own libraries: a line of JSON for each. Arguments: the time, the number of each."""

import datetime
import json
import sys

import standardwebhooks
import stripe
import svix.webhooks

now, count = int(sys.argv[1]), int(sys.argv[2])
TEXT = "whsec_made_up_for_the_senders_libraries"
BYTES = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
moment = datetime.datetime.fromtimestamp(now, tz=datetime.timezone.utc)


def body(number):
    event = {"id": f"evt_{number}", "object": "event", "data": {"note": "Žluťoučký \u2028 😀" * (number % 5), "n": number}}
    # Some senders escape, some do not; some write white space.
    pretty = {"indent": 2} if number % 3 == 0 else {"separators": (",", ":")}
    return json.dumps({**event, "type": "invoice.paid"}, ensure_ascii=number % 2 == 0, **pretty)


def line(scheme, secret, text, headers):
    print(json.dumps({"scheme": scheme, "secret": secret, "body": text, "headers": list(headers.items())}))


for number in range(count):
    text = body(number)
    signature = stripe.WebhookSignature._compute_signature(f"{now}.{text}", TEXT)
    header = f"t={now},v1={signature}" + (",v0=" + "0" * 64 if number % 2 else "")
    stripe.WebhookSignature.verify_header(text, header, TEXT)
    line("stripe", TEXT, text, {"Stripe-Signature": header})
    for scheme, prefix, library in [("standard-webhooks", "webhook", standardwebhooks), ("svix", "svix", svix.webhooks)]:
        id = f"msg_{number}"
        signature = library.Webhook(BYTES).sign(id, moment, text)
        headers = {f"{prefix}-id": id, f"{prefix}-timestamp": str(now), f"{prefix}-signature": signature}
        line(scheme, BYTES, text, headers)

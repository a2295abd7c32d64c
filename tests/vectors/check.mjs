#!/usr/bin/env node
// Judges deliveries.json by the service's rules, straightforwardly, with Node's own HMAC. Shares nothing with the crate.

import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

const ours = ["signature", "timestamp", "webhook-id", "event-id", "event-type"];
const forms = { signature: /^sha256=[0-9a-f]{64}$/, timestamp: /^[1-9][0-9]{0,15}$/ };

const refused = (kind, header) => ({ refused: header ? { kind, header: `x-service-${header}` } : { kind } });

function bodyOf(stored) {
  if ("base64" in stored) return Buffer.from(stored.base64, "base64");
  return Buffer.from(stored.text ?? stored.repeat.repeat(stored.times), "utf8");
}

function judge({ headers, keys, window, now, body }) {
  const found = {};
  for (const short of ours) {
    const values = headers.filter(([name]) => name.toLowerCase() === `x-service-${short}`).map(([, value]) => value);
    if (values.length > 1) return refused("header-doubled", short);
    if (values.length === 0 && forms[short]) return refused("header-missing", short);
    if (forms[short] && !forms[short].test(values[0])) return refused("header-malformed", short);
    found[short] = values[0];
  }

  const age = BigInt(now) - BigInt(found.timestamp);
  if (age > BigInt(window.past)) return refused("stale");
  if (-age > BigInt(window.ahead)) return refused("ahead");

  let ring = keys.single;
  let scope = "default";
  if (!ring) {
    const rings = new Map(Object.entries(keys.subscriptions));
    scope = found["webhook-id"];
    if (scope === undefined && rings.size > 1) return refused("header-missing", "webhook-id");
    scope ??= [...rings.keys()][0];
    ring = rings.get(scope);
    if (!ring) return refused("unknown-subscription");
  }

  const given = Buffer.from(found.signature.slice("sha256=".length), "hex");
  for (const key of ring.keys) {
    const mac = createHmac("sha256", key.secret).update(`${found.timestamp}.`).update(bodyOf(body)).digest();
    if (timingSafeEqual(mac, given)) return { verified: { key: key.name, scope: ring.scope ?? scope } };
  }
  return refused("signature-mismatch");
}

const { deliveries } = JSON.parse(readFileSync(process.argv[2] ?? new URL("deliveries.json", import.meta.url), "utf8"));
const wrong = deliveries.filter((delivery) => !isDeepStrictEqual(judge(delivery), delivery.verdict));
for (const { name } of wrong) console.log("differs:", name);
console.log(`${deliveries.length} deliveries judged, ${wrong.length} differ`);
process.exit(wrong.length > 0 || deliveries.length === 0 ? 1 : 0);

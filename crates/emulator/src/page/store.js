// The newest deliveries, the newest first, kept up to date by the stream. It reads a small JSON interface, which `hookgate listen` has too:
//
//   GET {base}deliveries?limit=N&state=S&type=T&search=WORDS&dataModelId=ID  {"data": [delivery], "meta": totals}, the newest first
//   totals: {"kept": the number of those that were searched}; of `listen` also "received", "leftOut", and "states": numbers by their state of
//   those that fit the filter but for its state
//   GET {base}deliveries/{id}             {"data": delivery, where each attempt has "request", "answer" and "fault" too}
//   a delivery: {"number": greater for a later one, "id", "eventId", "eventType", "subscriptionId", "state", "nextAttemptAt", "attempts": [{"at", "status", "error", "meaning", "durationMs"}]};
//   of `listen` also "subject", "reason" and "authentic", and on the stream "totals"

import { part, request } from './api.js';

const MAX = 2000;
const PAUSE_MS = 500;

/** What a delivery has of a parameter; `undefined` where only the server knows. */
const valueOf = (delivery, name) => (name === 'dataModelId' ? delivery.payload?.data?.datamodelId ?? '' : delivery[name]);

/** `first` is the number of deliveries at the start. */
export function deliveryStore(base, first = 100) {
  let list = [];
  let limit = first;
  // Whether the server may have more than are in the list.
  let more = false;
  let totals = { kept: 0 };
  let wanted = [];
  let isNarrowed = false;
  let reading = 0;
  // What the stream brings during a reading.
  let taken;
  let waiting = false;
  const watchers = new Set();
  const changed = (delivery) => watchers.forEach((watch) => watch(delivery));
  const put = (delivery) => {
    list = [delivery, ...list.filter((other) => other.id !== delivery.id)]
      .filter((one) => wanted.every(([name, value]) => [undefined, value].includes(valueOf(one, name))))
      .sort((one, other) => other.number - one.number);
    more ||= list.length > limit;
    list = list.slice(0, limit);
  };
  const store = {
    all: () => list,
    find: (id) => list.find((delivery) => delivery.id === id),
    hasMore: () => more && limit < MAX,
    /** The number of deliveries among which the filter found none, if that is so. */
    searched: () => (isNarrowed && list.length === 0 ? totals.kept : 0),
    totals: () => totals,
    /** Calls `watch` after each change, with the delivery that the stream brought, if it was that. */
    watch: (watch) => watchers.add(watch),
    async load() {
      const number = (reading += 1);
      taken = [];
      const query = new URLSearchParams([['limit', limit], ...wanted]);
      try {
        const { data, meta } = await request('GET', `${base}deliveries?${query}`);
        // Where the filter has changed since, a later reading has the answer.
        if (number !== reading) return;
        totals = meta;
        list = data;
        more = list.length >= limit;
        taken.forEach(put);
      } finally {
        if (number === reading) taken = undefined;
      }
      changed();
    },
    async more() {
      limit = Math.min(limit * 2, MAX);
      await store.load();
    },
    /** Shows only the deliveries with these values, such as `{ state: 'pending' }`; an empty value fits all. `always` is no choice of the user's. The server searches. */
    async filter(values, always = {}) {
      isNarrowed = Object.values(values).some(Boolean);
      wanted = Object.entries({ ...values, ...always }).filter(([, value]) => value);
      limit = first;
      await store.load();
    },
    /** Takes a delivery of the stream. */
    take(delivery) {
      // Only the server knows whether a delivery fits a search.
      if (wanted.some(([name]) => valueOf(delivery, name) === undefined)) {
        changed(delivery);
        store.loadSoon();
        return;
      }
      totals = delivery.totals ?? totals;
      taken?.push(delivery);
      put(delivery);
      changed(delivery);
      // Others take the place of those that no longer fit the filter; where none fits, the number of those that were searched grows.
      const isShort = list.length === 0 || (more && list.length < limit);
      if (isShort) store.loadSoon();
    },
    loadSoon() {
      if (waiting) return;
      waiting = true;
      setTimeout(() => {
        waiting = false;
        store.load().catch(() => {});
      }, PAUSE_MS);
    },
    detail: async (id) => (await request('GET', `${base}deliveries/${part(id)}`)).data,
  };
  return store;
}

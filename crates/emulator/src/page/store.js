// The newest deliveries, the newest first, kept up to date by the stream. It reads a small JSON interface, which `hookgate listen` has too:
//
//   GET {base}deliveries?limit=N  {"data": [delivery]}, the newest first
//   GET {base}deliveries/{id}     {"data": delivery, where each attempt has "request", "answer" and "fault" too}
//   a delivery: {"id", "eventId", "eventType", "subscriptionId", "state", "nextAttemptAt", "attempts": [{"at", "status", "error", "durationMs"}]}

import { part, request } from './api.js';

const FIRST = 100;
const MOST = 2000;

export function deliveryStore(base) {
  let list = [];
  let limit = FIRST;
  const watchers = new Set();
  const changed = () => watchers.forEach((watch) => watch());
  return {
    all: () => list,
    find: (id) => list.find((delivery) => delivery.id === id),
    /** Whether the server may have more than are shown. */
    hasMore: () => list.length >= limit && limit < MOST,
    watch: (watch) => watchers.add(watch),
    async load() {
      list = (await request('GET', `${base}deliveries?limit=${limit}`)).data;
      changed();
    },
    async more() {
      limit = Math.min(limit * 2, MOST);
      await this.load();
    },
    /** Takes a delivery of the stream. */
    take(delivery) {
      const at = list.findIndex((other) => other.id === delivery.id);
      if (at >= 0) list[at] = delivery;
      else list = [delivery, ...list].slice(0, limit);
      changed();
    },
    detail: async (id) => (await request('GET', `${base}deliveries/${part(id)}`)).data,
  };
}

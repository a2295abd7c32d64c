// Something that the control API has, read anew when an event of the stream says that it changed.

import { control } from './api.js';

const PAUSE_MS = 200;

/**
 * `path()` is read now, and again after events of these `kinds`: one request at a time, with a pause between, however many events come.
 * A resource that nothing shows (`wanted`) is read when it is shown.
 */
export function resource(stream, path, kinds, wanted = () => true) {
  const watchers = new Set();
  let reading;
  let stale = true;
  const made = {
    value: undefined,
    watch(watch) {
      watchers.add(watch);
      if (made.value !== undefined) watch(made.value);
    },
    /** Reads it, and is done when what is shown is as new as this call. */
    async load() {
      stale = true;
      while (stale) await (reading ??= read());
    },
    /** Reads it where it has changed since it was last shown. */
    refresh: () => (stale && wanted() ? made.load().catch(() => {}) : undefined),
  };
  async function read() {
    stale = false;
    try {
      made.value = (await control('GET', path())).data;
      watchers.forEach((watch) => watch(made.value));
    } finally {
      reading = undefined;
    }
  }
  let waiting = false;
  const later = () => {
    stale = true;
    if (waiting) return;
    waiting = true;
    setTimeout(() => {
      waiting = false;
      made.refresh();
    }, PAUSE_MS);
  };
  for (const kind of [...kinds, 'missed', 'reset']) stream.on(kind, later);
  return made;
}

// A clock that follows the emulator's: it is set from time to time, and goes on by itself between.

export function tickingClock() {
  let base = Date.now();
  let since = performance.now();
  return {
    set(iso) {
      const time = Date.parse(iso);
      if (Number.isNaN(time)) return;
      base = time;
      since = performance.now();
    },
    now: () => base + performance.now() - since,
    iso() {
      return new Date(this.now()).toISOString();
    },
  };
}

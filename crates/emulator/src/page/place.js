// The part of the address behind `#`: what is shown, and behind a `?` the filters, so that both survive a reload and can be shared.

const parts = () => /^#?([^?]*)\??(.*)$/.exec(location.hash).slice(1);
const write = (path, query) => history.replaceState(null, '', `#${path}${query ? `?${query}` : ''}`);
/** An id with its time stays readable. */
const encoded = (part) => encodeURIComponent(part).replaceAll('%40', '@').replaceAll('%3A', ':');

/** The parts between the slashes. An address that someone mistyped names nothing. */
export function place() {
  try {
    return parts()[0].split('/').map(decodeURIComponent);
  } catch {
    return [''];
  }
}

/** Writes the parts that are there into the address. */
export const setPlace = (...named) => write(named.filter((one) => one !== undefined).map(encoded).join('/'), parts()[1]);

/** The filters by their names; `undefined` where the address has none. */
export const filters = () => (parts()[1] ? Object.fromEntries(new URLSearchParams(parts()[1])) : undefined);

/** Writes the filters that have a value into the address. */
export const setFilters = (values) =>
  write(parts()[0], String(new URLSearchParams(Object.entries(values).filter(([, value]) => value))));

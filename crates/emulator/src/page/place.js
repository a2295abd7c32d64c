// The part of the address behind `#`: what is shown, so that it survives a reload and can be shared.

/** The parts between the slashes. An address that someone mistyped names nothing. */
export function place() {
  try {
    return location.hash.slice(1).split('/').map(decodeURIComponent);
  } catch {
    return [''];
  }
}

/** Writes the parts that are there into the address. */
export function setPlace(...parts) {
  history.replaceState(null, '', `#${parts.filter((one) => one !== undefined).map(encodeURIComponent).join('/')}`);
}

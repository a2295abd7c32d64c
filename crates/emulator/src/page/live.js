// The stream of server-sent events. It connects again by itself, and then everything is read anew, since events were missed.

const AGAIN_AFTER_MS = 1000;

/** Calls `take(kind, data)` for each event, and `changed(isConnected)` when the connection comes or goes. */
export function listen(path, kinds, take, changed) {
  let source;
  let lost = false;
  const connect = () => {
    source = new EventSource(path);
    source.addEventListener('open', () => {
      changed(true);
      if (lost) take('missed', null);
      lost = false;
    });
    source.addEventListener('error', () => {
      lost = true;
      changed(false);
      // The browser gives up after an answer that is not a stream, as from another server on this port.
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, AGAIN_AFTER_MS);
    });
    for (const kind of kinds) source.addEventListener(kind, (event) => take(kind, parsed(event.data)));
  };
  connect();
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

// A request as a command of curl.

/** curl makes these itself. */
const OF_CURL = new Set(['host', 'content-length', 'connection', 'transfer-encoding', 'accept-encoding']);

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

export function curl({ method, url, headers, body }) {
  // Without -g, brackets and braces of an address would be patterns.
  const lines = [`curl -g -i -X ${method} ${quoted(url)}`];
  for (const [name, value] of headers) {
    if (!OF_CURL.has(name.toLowerCase())) lines.push(`-H ${quoted(`${name}: ${value}`)}`);
  }
  if (body) lines.push(`--data-raw ${quoted(body)}`);
  return lines.join(' \\\n  ');
}

// A request as a command of curl.

/** curl makes these itself. */
const OF_CURL = new Set(['host', 'content-length', 'connection', 'transfer-encoding', 'accept-encoding']);

/** A system gives a program no longer argument than 128 KiB; `printf` is a part of the shell. A character has four bytes at most. */
const LONGEST_ARGUMENT = 30_000;

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

export function curl({ method, url, headers, body }) {
  // Without -g, brackets and braces of an address would be patterns.
  const lines = [`curl -g -i -X ${method} ${quoted(url)}`];
  for (const [name, value] of headers) {
    if (!OF_CURL.has(name.toLowerCase())) lines.push(`-H ${quoted(`${name}: ${value}`)}`);
  }
  if (body && body.length > LONGEST_ARGUMENT) lines.push('--data-binary @-');
  else if (body) lines.push(`--data-raw ${quoted(body)}`);
  const command = lines.join(' \\\n  ');
  return body?.length > LONGEST_ARGUMENT ? `printf %s ${quoted(body)} | ${command}` : command;
}

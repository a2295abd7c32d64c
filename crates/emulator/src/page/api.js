// Requests to the server of this page. An error carries the message of the service's envelope.

/** Sends a request and returns the whole JSON of its answer, or `null` where there is none. */
export async function request(method, path, body, headers = {}) {
  const init = { method, headers: { ...headers } };
  if (body !== undefined) {
    init.headers['content-type'] = 'application/json';
    init.body = typeof body === 'string' ? body : JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, init);
  } catch {
    throw new Error('The server does not answer.');
  }
  const text = await answer.text();
  let json = null;
  try {
    if (text) json = JSON.parse(text);
  } catch {
    throw new Error(`${answer.status}: the answer is not JSON`);
  }
  if (!answer.ok) {
    throw Object.assign(new Error(json?.error?.message ?? `the answer is ${answer.status}`), { status: answer.status });
  }
  return json;
}

/** The control API: `control('GET', 'clock')`. */
export const control = (method, path, body) => request(method, `/_emulator/${path}`, body);

/** An id as a part of a path. */
export const part = encodeURIComponent;

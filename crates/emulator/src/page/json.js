// JSON that a person can read: indented, with its names and values told apart by colour.

import { el, fill } from './dom.js';
import { acting, copy } from './told.js';

/** What is longer is shown as it came: a text of this size is coloured in some milliseconds. */
const LONGEST = 200_000;
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** A block with this value. */
export const jsonOf = (value) => block(JSON.stringify(value, null, 2) ?? '');

/** A block with this text: indented where it is JSON, else as it came. */
function jsonText(text) {
  // Numbers that JavaScript would round stay as they came.
  if (text.length > LONGEST || /\d{16}/.test(text)) return plain(text);
  try {
    return block(JSON.stringify(JSON.parse(text), null, 2));
  } catch {
    return plain(text);
  }
}

/** The choice for all bodies. */
let isRaw = false;

/** A body with a button to copy it, and one that shows it raw or indented. `bytes` is the length of the whole, where this is its beginning. */
export function bodyShown(text, bytes) {
  const shown = el('div');
  const form = el('button', { class: 'quiet', onclick: () => {
    isRaw = !isRaw;
    draw();
  } });
  const draw = () => {
    fill(shown, isRaw ? plain(text) : jsonText(text));
    fill(form, isRaw ? 'Show indented' : 'Show raw');
  };
  draw();
  return el('div', { class: 'body' }, text !== '' && el('p', { class: 'actions' }, form,
    el('button', { class: 'quiet', onclick: acting(() => copy(text, 'Body')) }, 'Copy body')), shown,
  bytes && el('p', { class: 'dim' }, `The beginning of a body of ${bytes.toLocaleString('en')} bytes.`));
}

function plain(text) {
  return el('pre', { class: 'json', tabindex: '0', dir: 'auto' }, text === '' ? el('span', { class: 'dim' }, '(empty)') : text);
}

function block(text) {
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(TOKEN)) {
    parts.push(text.slice(end, found.index));
    const [whole, string, colon] = found;
    if (colon) parts.push(el('span', { class: 'name' }, string), colon);
    else parts.push(el('span', { class: string ? 'string' : 'value' }, whole));
    end = found.index + whole.length;
  }
  parts.push(text.slice(end));
  return el('pre', { class: 'json', tabindex: '0' }, parts);
}

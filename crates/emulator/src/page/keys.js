// API keys: scope, expiry, use, and the window of each key's request rate.

import { control, part } from './api.js';
import { el, keyed, setText } from './dom.js';
import { choice, field, openForm, shownOnce } from './form.js';
import { moment, span } from './times.js';
import { acting, copy } from './told.js';

const SCOPES = [['read'], ['write'], ['admin']];
const FORMS = [['tk_test_'], ['tk_live_'], ['mcp_']];

/** What is left of a rate window: a bar with its numbers. */
export function rateShown() {
  const bar = el('meter', { min: '0' });
  const text = el('span', { class: 'number' });
  const element = el('span', { class: 'rate' }, bar, text);
  return {
    element,
    set({ limit, remaining, reset }, now) {
      bar.max = limit;
      bar.low = limit / 4;
      bar.value = remaining;
      bar.setAttribute('aria-label', `${remaining} of ${limit} requests left`);
      const left = reset * 1000 - now;
      setText(text, `${remaining} / ${limit}${remaining < limit && left > 0 ? `, full in ${span(left)}` : ''}`);
    },
  };
}

export function keysSection({ keys, clock }) {
  const body = el('tbody');
  const table = el('table', { class: 'list', 'aria-label': 'API keys' }, el('thead', {}, el('tr', {},
    ['Name', 'Key', 'Scope', 'Expires', 'Requests left', 'Actions'].map((name) => el('th', { scope: 'col' }, name)))), body);
  const change = async (key, fields) => {
    await control('PATCH', `keys/${part(key.name)}`, fields);
    await keys.load();
  };

  function make(key) {
    const scope = choice(SCOPES, key.scope);
    scope.setAttribute('aria-label', `Scope of ${key.name}`);
    scope.addEventListener('change', acting(() => change(row.key, { scope: scope.value })));
    const rate = rateShown();
    const row = el('tr', { 'data-key': key.name }, el('td', { class: 'main' }), el('td', {}, el('code')), el('td', {}, scope),
      el('td', { class: 'number' }, el('span'), el('button', { class: 'quiet', onclick: () => expiry(row.key) }, 'Change')),
      el('td', {}, rate.element),
      el('td', { class: 'actions' }, el('button', { onclick: acting(() => change(row.key, { disabled: !row.key.disabled })) })));
    row.rate = rate;
    row.scope = scope;
    return row;
  }
  function update(row, key) {
    row.key = key;
    const [name, form, , expires, , actions] = row.children;
    setText(name, key.name);
    setText(form.firstElementChild, key.form);
    row.scope.value = key.scope;
    const isPast = key.expiresAt && Date.parse(key.expiresAt) <= clock.now();
    setText(expires.firstElementChild, key.expiresAt ? `until ${moment(key.expiresAt)}${isPast ? ', expired' : ''}` : 'never expires');
    row.rate.set(key.rate, clock.now());
    setText(actions.firstElementChild, key.disabled ? 'Enable' : 'Disable');
    row.classList.toggle('off', key.disabled);
  }

  function expiry(key) {
    const input = el('input', { value: key.expiresAt ?? '', placeholder: clock.iso().replace(/\.\d+Z/, 'Z'), autocomplete: 'off' });
    openForm({
      title: `Expiry of ${key.name}`, button: 'Save', fields: [field('Expires at', input, 'UTC, the emulator\u2019s time. Empty: never.')],
      send: () => change(key, { expiresAt: input.value.trim() || null }),
    });
  }

  function create() {
    const name = el('input', { autocomplete: 'off', required: true });
    const scope = choice(SCOPES, 'read');
    const form = choice(FORMS, 'tk_test_');
    const expires = el('input', { placeholder: 'never', autocomplete: 'off' });
    openForm({
      title: 'New key', button: 'Create',
      fields: [field('Name', name), field('Scope', scope, 'Each scope includes those before it.'), field('Form', form), field('Expires at', expires)],
      async send() {
        const { data } = await control('POST', 'keys', {
          name: name.value, scope: scope.value, form: form.value, expiresAt: expires.value.trim() || null,
        });
        await keys.load();
        shownOnce(`Key ${data.name}`, 'It is shown once: copy it now.', data.key, copy);
      },
    });
  }

  const draw = () => keyed(body, keys.value ?? [], (key) => key.name, make, update);
  keys.watch(draw);
  setInterval(() => body.isConnected && draw(), 1000);
  return {
    element: el('div', { class: 'section' }, el('section', { class: 'panel' },
      el('header', {}, el('h2', { class: 'grow' }, 'API keys'), el('button', { class: 'primary', onclick: create }, 'New key')),
      el('div', { class: 'scroll' }, table, el('p', { class: 'empty otherwise' }, 'There is no key: every request is refused.')))),
  };
}

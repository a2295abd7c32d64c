// The search and the filter above a list of deliveries: the server looks at all that it keeps.

import { el } from './dom.js';
import { EVENT_TYPES } from './event_types.js';
import { choice } from './form.js';
import { failed } from './told.js';

const PAUSE_MS = 200;

/** `states` are pairs of a value and a label, and `label` says what they are; `more` are other choices by the name of their parameter. */
export function deliveryFilter({ store, list, states, label, more = {} }) {
  const search = el('input', { type: 'search', id: 'search', 'aria-label': 'Search', placeholder: 'Search: /', autocomplete: 'off', spellcheck: 'false' });
  const type = el('input', { list: 'event-types', 'aria-label': 'Event type', placeholder: 'every type', size: '14', autocomplete: 'off', spellcheck: 'false' });
  const state = choice(states, '');
  state.setAttribute('aria-label', label);
  const inputs = { search, type, state, ...more };
  const ask = () => store.filter(Object.fromEntries(Object.entries(inputs).map(([name, { value }]) => [name, value.trim()]))).catch(failed);
  let waiting;
  const askSoon = () => {
    clearTimeout(waiting);
    waiting = setTimeout(ask, PAUSE_MS);
  };
  for (const input of Object.values(inputs)) for (const kind of ['input', 'change']) input.addEventListener(kind, askSoon);
  search.addEventListener('keydown', (event) => {
    if (event.key !== 'ArrowDown') return;
    event.preventDefault();
    list.focus();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || !search.isConnected || event.target.closest('input, textarea, select, dialog, [role=grid]')) return;
    event.preventDefault();
    search.focus();
  });
  return {
    ask,
    element: el('search', { class: 'inline' }, search, type,
      el('datalist', { id: 'event-types' }, EVENT_TYPES.map((value) => el('option', { value }))), state, Object.values(more)),
  };
}

// The search and the filter above a list of deliveries.

import { el } from './dom.js';
import { EVENT_TYPES } from './event_types.js';
import { choice } from './form.js';
import { asked, searchInput } from './search.js';
import { failed } from './told.js';

/**
 * `states` are pairs of a value and a label, and `label` says what they are; `more` are other choices by the name of their parameter,
 * and `also()` are values that have no input. `search` are the settings of the search.
 */
export function deliveryFilter({ store, list, states, label, search = { label: 'Search' }, more = {}, also = () => ({}) }) {
  const words = searchInput({ ...search, id: 'search', down: () => list.focus() });
  const type = el('input', { list: 'event-types', 'aria-label': 'Event type', placeholder: 'every type', size: '14', autocomplete: 'off', spellcheck: 'false' });
  const state = choice(states, '');
  state.setAttribute('aria-label', label);
  const inputs = { search: words, type, state, ...more };
  const values = () => Object.fromEntries(Object.entries(inputs).map(([name, { value }]) => [name, value.trim()]));
  const ask = () => store.filter({ ...values(), ...also() }).catch(failed);
  asked(Object.values(inputs), ask);
  return {
    ask,
    element: el('search', { class: 'inline' }, words, type,
      el('datalist', { id: 'event-types' }, EVENT_TYPES.map((value) => el('option', { value }))), state, Object.values(more)),
  };
}

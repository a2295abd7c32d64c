// The search and the filter above a list of deliveries. The address has them too.

import { el, keyed, setText } from './dom.js';
import { EVENT_TYPES } from './event_types.js';
import { choice } from './form.js';
import { filters, setFilters } from './place.js';
import { asked, searchInput } from './search.js';
import { failed } from './told.js';

const TYPES = [['', 'every type'], ...['row', 'page', 'member'].map((kind) => [`${kind}.`, `${kind}.*`]), ...EVENT_TYPES.map((type) => [type])];

/**
 * `states` are pairs of a value and a label, and `label` says what they are; `more` are other choices by the name of their parameter,
 * and `also()` are values that have no input. `search` are the settings of the search. `totals` is an element: how many deliveries there
 * are of each state, where the server says so.
 */
export function deliveryFilter({ store, list, states, label, search = { label: 'Search' }, more = {}, also = () => ({}) }) {
  const words = searchInput({ ...search, id: 'search', down: () => list.focus() });
  const type = choice(TYPES, '');
  type.setAttribute('aria-label', 'Event type');
  const state = choice(states, '');
  state.setAttribute('aria-label', label);
  const inputs = { search: words, type, state, ...more };
  const values = () => Object.fromEntries(Object.entries(inputs).map(([name, { value }]) => [name, value.trim()]));
  const totals = el('p', { class: 'totals', 'aria-label': 'Deliveries by their state' });
  const element = el('search', { class: 'inline' }, Object.values(inputs));

  function ask() {
    if (element.isConnected) setFilters(values());
    drawTotals();
    return store.filter(values(), also()).catch(failed);
  }
  function set(given) {
    for (const [name, input] of Object.entries(inputs)) {
      const value = given[name] ?? '';
      // A type that the specification does not have.
      if (input === type && ![...type.options].some((option) => option.value === value)) type.append(el('option', { value }, value));
      input.value = value;
      if (input.value !== value) input.value = '';
    }
    return ask();
  }
  list.clear = () => set({});

  const makeTotal = ({ value }) => el('button', { class: 'chip', onclick: () => {
    state.value = state.value === value ? '' : value;
    ask();
  } });
  function drawTotals() {
    const { states: counts, kept, received } = store.totals();
    totals.hidden = !counts || received === 0;
    if (totals.hidden) return;
    const found = Object.values(counts).reduce((sum, count) => sum + count, 0);
    // A search is among those that are kept.
    const of = found < kept ? kept : received;
    const all = found === of ? found.toLocaleString('en') : `${found.toLocaleString('en')} of ${of.toLocaleString('en')}`;
    const shown = [{ value: '', text: `${all} ${of === 1 ? 'delivery' : 'deliveries'}` },
      ...states.filter(([value]) => counts[value]).map(([value, text]) => ({ value, text: `${counts[value].toLocaleString('en')} ${text}` }))];
    keyed(totals, shown, (one) => one.value, makeTotal, (button, { value, text }) => {
      setText(button, text);
      button.setAttribute('aria-pressed', String(state.value === value));
    });
  }
  store.watch(drawTotals);
  asked(Object.values(inputs), ask);
  return {
    ask, element, totals,
    /** Called when the list is shown: takes the filters of the address, or writes its own there. */
    shown() {
      const given = filters();
      if (given) return set(given);
      setFilters(values());
      return undefined;
    },
  };
}

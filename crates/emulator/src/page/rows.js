// Models and rows: a grid with a page of rows, and below it the deliveries that changes of this data model caused.

import { control, part } from './api.js';
import { deliveries } from './deliveries.js';
import { deliveryFilter } from './delivery_filter.js';
import { el, fill, setText } from './dom.js';
import { confirmed, field, openForm } from './form.js';
import { grid } from './grid.js';
import { actionsOf, factsOf, gone, STATES } from './delivery_actions.js';
import { asked, searchInput } from './search.js';
import { acting, done, failed } from './told.js';
import { inputFor, valueOf } from './values.js';

const PAGE = 50;

export function rowsSection(context) {
  const { models, store, clock, subscriptions, stream } = context;
  let model;
  let offset = 0;
  let order = '';
  let rows = [];
  let meta = { total: 0 };
  let reads = 0;
  // The data model whose deliveries are listed.
  let filtered;

  const path = (id) => `models/${part(model.id)}/rows${id === undefined ? '' : `/${part(id)}`}`;
  const table = grid({
    change: async (row, property, value) => (await control('PATCH', path(row.id), { values: { [property.id]: value } })).data,
    remove: (row) => confirmed(`Delete ${row.id}?`, 'The row is gone then; row.deleted is delivered.', 'Delete', async () => {
      await control('DELETE', path(row.id));
      await readRows();
    }),
    sort(property) {
      const up = `${property.id}:asc`;
      const down = `${property.id}:desc`;
      order = order === up ? down : order === down ? '' : up;
      offset = 0;
      acting(readRows)();
    },
  });

  const choose = el('div', { class: 'models', role: 'group', 'aria-label': 'Data models' });
  const title = el('h2', { dir: 'auto' });
  const about = el('p', { class: 'dim' });
  const range = el('span', { class: 'number', id: 'range', 'aria-live': 'polite' });
  const earlier = el('button', { class: 'quiet', onclick: acting(() => turn(-PAGE)), 'aria-label': 'Earlier rows' }, '‹');
  const later = el('button', { class: 'quiet', onclick: acting(() => turn(PAGE)), 'aria-label': 'Later rows' }, '›');
  const add = el('button', { class: 'primary', onclick: () => addRow() }, 'Add a row');
  const words = searchInput({ label: 'Search rows', down: () => table.focus() });
  asked([words], () => {
    offset = 0;
    readRows().catch(failed);
  });
  const noneWords = el('p', { role: 'status' });
  const clear = el('button', { onclick: () => {
    words.value = '';
    readRows().catch(failed);
  } }, 'Clear the search');
  const none = el('div', { class: 'empty' }, noneWords, clear);

  const { list, detail, open } = deliveries({ store, now: () => clock.now() }, {
    label: 'Deliveries of this data model', empty: 'No delivery of this data model yet.',
    noneFits: 'No delivery of this data model fits the filter',
    nameOf: (id) => subscriptions.value?.find((one) => one.id === id)?.name || id,
  }, { actions: actionsOf(context), facts: factsOf(context), at: () => ['rows', model.id], gone });
  const filter = deliveryFilter({
    store, list, states: STATES, label: 'State', search: { label: 'Search deliveries', hasKey: false }, also: () => ({ dataModelId: model.id }),
  });

  async function turn(by) {
    offset = Math.max(0, offset + by);
    await readRows();
  }

  async function readRows() {
    const { id } = model;
    const number = (reads += 1);
    const query = new URLSearchParams({ limit: PAGE, offset, search: words.value });
    if (order) query.set('orderBy', order);
    const answer = await control('GET', `${path()}?${query}`);
    // A later reading has the answer.
    if (number !== reads || id !== model?.id) return;
    if (answer.data.length === 0 && offset > 0) return turn(-PAGE);
    ({ data: rows, meta } = answer);
    draw();
  }

  // One read at a time, and a last one after the last change.
  let reading = false;
  let again = false;
  async function readSoon() {
    again = true;
    if (reading || !model || !element.isConnected) return;
    reading = true;
    while (again) {
      again = false;
      await readRows().catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    reading = false;
  }

  function draw() {
    setText(title, model.title);
    setText(about, model.description ? `${model.description} · ${model.id}` : model.id);
    setText(range, rows.length ? `${offset + 1}–${offset + rows.length} of ${meta.total}` : '0 rows');
    earlier.disabled = offset === 0;
    later.disabled = !meta.hasMore;
    none.hidden = rows.length > 0;
    clear.hidden = !words.value;
    setText(noneWords, words.value ? `No row fits the search (${model.rowCount.toLocaleString('en')} searched).` : 'This data model has no rows.');
    table.draw(model, rows, order);
    list.draw();
  }

  /** Shows this data model from its first row on, without order and search. */
  function turnTo(other) {
    model = other;
    offset = 0;
    order = '';
    words.value = '';
  }

  function drawModels(all) {
    const same = all.find((one) => one.id === model?.id);
    if (same) model = same;
    else turnTo(all[0]);
    // The property that the rows were sorted by may have been removed.
    if (!model?.properties.some((property) => order.startsWith(`${property.id}:`))) order = '';
    fill(choose, all.map((one) => el('a', {
      class: 'chip', href: `#rows/${encodeURIComponent(one.id)}`, 'aria-current': one.id === model?.id ? 'true' : null,
    }, el('bdi', {}, one.title), el('span', { class: 'number dim' }, ` ${one.rowCount}`))));
    if (model && filtered !== model.id) {
      filtered = model.id;
      filter.ask();
    }
    shown.hidden = !model;
    nothing.hidden = Boolean(model);
  }

  function addRow() {
    const inputs = model.properties.map((property) => [property, inputFor(property)]);
    openForm({
      title: `New row of ${model.title}`, button: 'Add',
      fields: inputs.map(([property, input]) => field(property.name, input, property.type.toLowerCase().replace('_', ' '))),
      async send() {
        const values = inputs.map(([property, input]) => [property.id, valueOf(property, input)]).filter(([, value]) => value !== null);
        const { data } = await control('POST', path(), { values: Object.fromEntries(values) });
        done(`${data.id} added`);
        await readRows();
      },
    });
  }

  models.watch((all) => {
    const before = model?.id;
    drawModels(all);
    if (model && (model.id !== before || element.isConnected)) readSoon();
  });
  stream.on('row', ({ dataModelId }) => dataModelId === model?.id && readSoon());
  for (const kind of ['missed', 'reset']) stream.on(kind, readSoon);

  const shown = el('div', { class: 'section' },
    choose,
    el('section', { class: 'panel' },
      el('header', {}, el('div', { class: 'grow' }, title, about), words, range, earlier, later, add),
      table.element, none,
      el('p', { class: 'dim hint' }, 'Arrows move, Enter or typing edits, Escape leaves the cell as it was. Lists are separated by commas.')),
    el('div', { class: 'beside' },
      el('section', { class: 'panel' }, el('header', {}, el('h2', { class: 'grow' }, 'Deliveries'), filter.element), list.element),
      detail.element));
  const nothing = el('p', { class: 'empty' }, 'The workspace has no data models. A seed and the API make them.');
  const element = el('div', {}, shown, nothing);

  return {
    element,
    show(id, delivery) {
      if (id && id !== model?.id && models.value.some((one) => one.id === id)) {
        turnTo(models.value.find((one) => one.id === id));
        drawModels(models.value);
      }
      if (model) readSoon();
      filter.shown();
      if (model && delivery) open(delivery);
      else detail.close();
    },
  };
}

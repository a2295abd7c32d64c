// The rows of a data model as a grid: arrows move, Enter, F2, typing or a second click edits, Escape leaves a cell as it was.

import { el, fill, keyed, setText, shownText } from './dom.js';
import { inputFor, shownValue, valueOf } from './values.js';

const NUMERIC = new Set(['NUMBER', 'CURRENCY']);

/** `change(row, property, value)` and `remove(row)` return promises; `sort(property)` is called for a click on a head. */
export function grid({ change, remove, sort }) {
  const head = el('tr');
  const body = el('tbody');
  const table = el('table', { role: 'grid', class: 'list grid' }, el('thead', {}, head), body);
  let properties = [];
  let editing;
  let waiting;

  function draw(model, rows, order) {
    // A cell that is being written in stays; what came meanwhile is drawn at its end.
    if (editing) {
      waiting = [model, rows, order];
      return;
    }
    const columns = model.properties.filter((property) => property.visible !== false);
    const isSame = table.dataset.model === model.id && JSON.stringify(columns) === JSON.stringify(properties);
    properties = columns;
    table.setAttribute('aria-label', `Rows of ${model.title}`);
    drawHead(order);
    if (!isSame) keyed(body, [], () => 0);
    table.dataset.model = model.id;
    keyed(body, rows, (row) => row.id, makeRow, updateRow);
    if (!body.querySelector('[tabindex="0"]')) body.querySelector('td')?.setAttribute('tabindex', '0');
  }

  function drawHead(order) {
    fill(head, properties.map((property) => {
      const [by, direction] = (order ?? '').split(':');
      const sorted = by === property.id && (direction === 'asc' ? 'ascending' : 'descending');
      return el('th', { scope: 'col', 'aria-sort': sorted || 'none', class: NUMERIC.has(property.type) ? 'number right' : null },
        el('button', { class: 'link', title: `${property.id} · ${property.type}`, onclick: () => sort(property) }, el('bdi', {}, property.name),
          el('span', { class: 'arrow', 'aria-hidden': 'true' }, sorted === 'ascending' ? ' ↑' : sorted ? ' ↓' : '')));
    }), el('th', { scope: 'col' }, 'Row'));
  }

  function makeRow(row) {
    const cells = properties.map((property) => el('td', {
      role: 'gridcell', tabindex: '-1', dir: 'auto', 'data-property': property.id, class: NUMERIC.has(property.type) ? 'number right' : null,
    }));
    const gone = el('button', { class: 'quiet danger', 'aria-label': `Delete ${row.id}`, title: 'Delete the row', tabindex: '-1' }, '×');
    gone.addEventListener('click', () => remove(made.row));
    const made = el('tr', { 'data-row': row.id }, cells, el('td', { class: 'last' },
      el('div', {}, el('code', { class: 'id' }, row.id), gone)));
    return made;
  }

  function updateRow(element, row) {
    const isNew = !element.row;
    element.row = row;
    properties.forEach((property, at) => {
      const cell = element.children[at];
      const text = shownText(shownValue(property, row.data[property.id]));
      if (cell.textContent === text) return;
      setText(cell, text);
      cell.title = text.length > 30 ? text : '';
      if (!isNew) flash(cell);
    });
  }

  function flash(cell) {
    cell.classList.remove('changed');
    requestAnimationFrame(() => cell.classList.add('changed'));
  }

  function focusAt(cell) {
    if (!cell) return;
    body.querySelectorAll('[tabindex="0"]').forEach((other) => other.setAttribute('tabindex', '-1'));
    cell.setAttribute('tabindex', '0');
    cell.focus();
  }

  /** The cells that the arrows go through: the values, and the button at the end. */
  const stops = (row) => row && [...row.querySelectorAll('td[role=gridcell], td.last button')];

  function move(from, down, right) {
    const row = from.closest('tr');
    const at = stops(row).indexOf(from);
    const beside = down > 0 ? row.nextElementSibling : down < 0 ? row.previousElementSibling : row;
    focusAt(stops(beside)?.[at + right]);
  }

  const ARROWS = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };
  body.addEventListener('keydown', (event) => {
    const stop = event.target.closest('td[role=gridcell], td.last button');
    if (!stop || editing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (ARROWS[event.key]) {
      event.preventDefault();
      move(stop, ...ARROWS[event.key]);
    } else if (event.key === 'Home' || event.key === 'End') {
      event.preventDefault();
      focusAt(stops(stop.closest('tr')).at(event.key === 'Home' ? 0 : -1));
    } else if (stop.matches('td') && (event.key === 'Enter' || event.key === 'F2')) {
      event.preventDefault();
      edit(stop);
    } else if (stop.matches('td') && event.key.length === 1) {
      // The sign goes into the input, which has the focus now, in place of the old text.
      edit(stop);
    }
  });
  body.addEventListener('click', (event) => {
    const cell = event.target.closest('td[role=gridcell]');
    if (!cell || cell.contains(editing?.input)) return;
    if (document.activeElement === cell || event.detail > 1) edit(cell);
    else focusAt(cell);
  });
  body.addEventListener('mousedown', (event) => {
    // The first click chooses a cell, and the second one, which finds it chosen, edits it.
    const cell = event.target.closest('td[role=gridcell]');
    if (cell && !editing && document.activeElement !== cell) event.preventDefault();
  });

  /** While a cell has an input, its column is as wide as before. */
  function keepWidths(kept) {
    const cells = [...head.cells];
    const widths = cells.map((cell) => (kept ? `${cell.offsetWidth}px` : ''));
    table.style.width = kept ? `${table.offsetWidth}px` : '';
    table.style.tableLayout = kept ? 'fixed' : '';
    cells.forEach((cell, at) => {
      cell.style.width = widths[at];
    });
  }

  function edit(cell) {
    if (editing) return;
    focusAt(cell);
    const property = properties.find((one) => one.id === cell.dataset.property);
    const { row } = cell.closest('tr');
    const before = row.data[property.id];
    const input = inputFor(property, before);
    const refusal = el('span', { class: 'refusal', role: 'alert', id: 'cell-refusal' });
    input.setAttribute('aria-label', property.name);
    input.setAttribute('aria-describedby', refusal.id);
    const unchanged = input.value;
    editing = { input };
    keepWidths(true);
    fill(cell, input, refusal);
    cell.classList.add('editing');
    input.focus();
    input.select?.();

    let ended = false;
    let sending = false;
    const end = (back) => {
      if (ended) return;
      ended = true;
      editing = undefined;
      keepWidths(false);
      cell.classList.remove('editing');
      fill(cell, shownValue(property, row.data[property.id]));
      const [model, rows, order] = waiting ?? [];
      waiting = undefined;
      if (model) draw(model, rows, order);
      if (back) focusAt(cell);
    };
    const send = async (back) => {
      if (sending || ended) return;
      if (input.value === unchanged) return end(back);
      sending = true;
      try {
        const changed = await change(row, property, valueOf(property, input));
        row.data = changed.data;
        end(back);
      } catch (error) {
        sending = false;
        input.setAttribute('aria-invalid', 'true');
        setText(refusal, error.message);
        // A value that was left by the mouse is not sent again by the next blur.
        input.focus();
      }
    };
    // A choice by mouse is the end of the edit; the arrows of the keyboard only go through the choices.
    let byKey = false;
    input.addEventListener('pointerdown', () => {
      byKey = false;
    });
    input.addEventListener('keydown', (event) => {
      byKey = true;
      if (event.key === 'Enter') {
        event.preventDefault();
        send(true);
      } else if (event.key === 'Escape') {
        event.preventDefault();
        end(true);
      } else if (event.key === 'Tab') {
        event.preventDefault();
        const beside = stops(cell.closest('tr')).at(stops(cell.closest('tr')).indexOf(cell) + (event.shiftKey ? -1 : 1));
        send(true).then(() => ended && focusAt(beside));
      }
      event.stopPropagation();
    });
    input.addEventListener('blur', () => {
      if (input.getAttribute('aria-invalid') === 'true') end(false);
      else send(false);
    });
    if (input.tagName === 'SELECT') input.addEventListener('change', () => !byKey && send(true));
  }

  return { element: el('div', { class: 'scroll' }, table), draw, focus: () => focusAt(body.querySelector('td')) };
}

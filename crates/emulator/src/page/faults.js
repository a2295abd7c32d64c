// Faults: every fault that there is, how often it is to come, and how often it came.

import { control, part } from './api.js';
import { el, fill } from './dom.js';
import { choice } from './form.js';
import { acting } from './told.js';

export function faultsSection({ resource, faults: on }) {
  const table = resource(() => 'faults/table', [], 'faults');
  const body = el('tbody');
  const clear = el('button', { class: 'danger', onclick: acting(async () => {
    await control('DELETE', 'faults');
    await on.load();
  }) }, 'Switch all off');
  const rows = new Map();

  table.watch((all) => {
    rows.clear();
    fill(body, all.map(({ fault, where, about }) => {
      const number = el('input', { type: 'number', min: '0', value: '1', 'aria-label': `Number for ${fault}` });
      const how = choice([['first', 'the first N'], ['seed', 'by seed N']], 'first');
      how.setAttribute('aria-label', `How ${fault} is chosen`);
      const add = el('form', { class: 'inline', onsubmit: (event) => {
        event.preventDefault();
        acting(async () => {
          await control('POST', 'faults', { fault, [how.value]: Number(number.value) });
          await on.load();
        })();
      } }, how, number, el('button', { 'aria-label': `Switch ${fault} on` }, 'On'));
      const state = el('td', { class: 'state' });
      rows.set(fault, state);
      return el('tr', { 'data-fault': fault }, el('td', { class: 'main' }, el('code', {}, fault), el('small', {}, about)),
        el('td', { class: 'dim' }, where), el('td', {}, add), state);
    }));
    drawOn();
  });
  function drawOn() {
    for (const [fault, cell] of rows) {
      const entries = (on.value ?? []).filter((entry) => entry.fault === fault);
      fill(cell, entries.map(({ first, seed, hits }) => {
        const isFirst = first !== null && first !== undefined;
        const isSpent = isFirst && hits >= first;
        return el('div', {},
          el('span', { class: `badge ${isSpent ? 'calm' : 'wait'}` }, isSpent ? `off after ${first}` : isFirst ? `first ${first}` : `seed ${seed}`),
          el('span', { class: 'number' }, ` ${hits} ${hits === 1 ? 'hit' : 'hits'} `),
          el('button', { 'aria-label': isSpent ? `Remove ${fault}` : `Switch ${fault} off`, onclick: acting(async () => {
            await control('DELETE', `faults/${part(fault)}`);
            await on.load();
          }) }, isSpent ? 'Remove' : 'Off'));
      }));
    }
    clear.disabled = (on.value ?? []).length === 0;
  }
  on.watch(drawOn);
  return {
    resources: [table],
    element: el('div', { class: 'section' }, el('section', { class: 'panel' },
      el('header', {}, el('h2', { class: 'grow' }, 'Faults'), clear),
      el('p', { class: 'dim' }, 'Never by chance: for the first N from now on, or for one in ten, drawn by a seed.'),
      el('div', { class: 'scroll' }, el('table', { class: 'list', 'aria-label': 'Faults' }, el('thead', {}, el('tr', {},
        ['Fault', 'Where', 'Switch on', 'On, with hits'].map((name) => el('th', { scope: 'col' }, name)))), body)))),
  };
}

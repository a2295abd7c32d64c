// The page of `hookgate listen --page`: the deliveries that arrived, each with its verdict.

import { part, request } from './api.js';
import { connectionBadge } from './connection.js';
import { curl } from './curl.js';
import { deliveries } from './deliveries.js';
import { deliveryFilter } from './delivery_filter.js';
import { drawnOnce, el, fill } from './dom.js';
import { explained } from './explained.js';
import { listen } from './live.js';
import { deliveryStore } from './store.js';
import { place } from './place.js';
import { moment } from './times.js';
import { copy, done, failed } from './told.js';

const BASE = '/_listen/';
const VERDICTS = [['', 'every verdict'], ['done', '✓ done'], ['again', '= again'], ['runs_on', '… runs_on'], ['failed', '! failed'],
  ['refused', '✗ refused']];

const store = deliveryStore(BASE);
const ask = async (id, what) => (await request('POST', `${BASE}deliveries/${part(id)}/${what}`)).data;
const { list, detail, open } = deliveries({ store, states: VERDICTS }, {
  label: 'Deliveries', empty: 'Nothing has arrived yet.', names: { state: 'Verdict', result: 'Answer' },
}, {
  at: () => [],
  // Times as in the rest of the page.
  facts: ({ facts }) => facts.map(([name, text]) => [name, moment(text)]),
  // The event's age tells which attempt it is.
  heading: () => 'Delivery',
  actions: [
    {
      label: 'Deliver again', about: 'To this command, signed for now; only what is authentic',
      run: async ({ id }) => {
        done((await ask(id, 'replay')).told);
        return null;
      },
    },
    {
      label: 'Copy as curl', about: 'Without the signature, which this page does not get; c in the terminal copies it too',
      run: async ({ attempts: [{ request: sent }] }) => {
        const headers = sent.headers.filter(([name]) => name !== 'x-service-signature');
        await copy(curl({ ...sent, headers }), 'Command without the signature');
        return null;
      },
    },
    { label: 'Why was it refused?', about: 'Tries the known mistakes with the secrets of this command', run: async ({ id }) => explained(await ask(id, 'explain')) },
  ],
});
const filter = deliveryFilter({ store, list, states: VERDICTS, label: 'Verdict' });
const connection = connectionBadge();
fill(document.getElementById('top'), el('h1', {}, 'hookgate listen'), connection.element);
fill(document.getElementById('main'), el('div', { class: 'beside' },
  el('section', { class: 'panel' }, el('header', {}, el('h2', { class: 'grow' }, 'Deliveries'), filter.element), list.element), detail.element));

const again = drawnOnce(() => store.load().catch(failed));
const take = { delivery: store.take, missed: again };
listen(`${BASE}stream`, Object.keys(take), (kind, data) => take[kind](data), connection.set);
again();
const show = () => {
  const [id] = place();
  if (id && id !== 'main') open(id);
};
addEventListener('hashchange', show);
show();

// The page of `hookgate listen --page`: where to send, and the deliveries that arrived, each with its verdict.

import { part, request } from './api.js';
import { connectionBadge } from './connection.js';
import { curl } from './curl.js';
import { deliveries } from './deliveries.js';
import { deliveryFilter } from './delivery_filter.js';
import { drawnOnce, el, fill, setText } from './dom.js';
import { explained } from './explained.js';
import { field, openForm } from './form.js';
import { listen } from './live.js';
import { deliveryStore } from './store.js';
import { place } from './place.js';
import { moment } from './times.js';
import { acting, copy, done, failed } from './told.js';

const BASE = '/_listen/';
const VERDICTS = [['', 'every verdict'], ['done', '✓ done'], ['again', '= again'], ['runs_on', '… still running'], ['failed', '! failed'],
  ['refused', '✗ refused']];

const token = new URLSearchParams(location.search).get('token');
const headers = token ? { authorization: `Bearer ${token}` } : {};
const store = deliveryStore(BASE);
async function ask(id, what, body) {
  try {
    return (await request('POST', `${BASE}deliveries/${part(id)}/${what}`, body, headers)).data;
  } catch (error) {
    throw error.status === 404 ? new Error(gone(id)) : error;
  }
}
let receiver = {};

/** Where deliveries are taken, to copy. */
const copied = (what, text, label) => el('button', { 'aria-label': label, onclick: acting(() => copy(text, what)) }, 'Copy');
const line = (label, text, ...more) => el('p', { class: 'given' }, label && el('span', { class: 'dim' }, label), el('code', {}, text), more);
const above = el('section', { class: 'panel where', 'aria-label': 'Where to send' });
const empty = el('div');

function drawReceiver() {
  const { url, next, forward, maySign } = receiver;
  fill(above, line('Send to', url, copied('Address', url, 'Copy the address')), forward && line('Passed on to', forward),
    line('Try it', next, copied('Command', next, 'Copy the command')),
    token && !maySign && el('p', { class: 'refusal' }, 'The token of this address is not the one that the command printed: nothing is signed with it.'));
  fill(empty, el('p', {}, 'Nothing has arrived yet.'), el('p', {}, 'Give this address to the service as the URL of a webhook:'),
    line('', url, copied('Address', url, 'Copy the address')), el('p', {}, 'Or send a signed delivery from another terminal:'),
    line('', next, copied('Command', next, 'Copy the command')));
}

/** The parts of a delivery's id. */
const idParts = (id) => /^(.*)@([^@]*?)(?:\.\d+)?$/.exec(id)?.slice(1) ?? [id];

function gone(id) {
  const [event, at] = idParts(id);
  const which = at ? `The delivery of ${event} at ${moment(at)}` : `A delivery ${event}`;
  return `${which} is not kept: it never came, or it made room for newer ones. The page keeps the newest ${receiver.most?.toLocaleString('en')}.`;
}

function sendChanged({ id, eventId, attempts: [{ request: sent }] }) {
  const isAgain = Boolean(eventId) && sent.body.includes(`"${eventId}"`);
  // An event that is done is not handled a second time.
  const text = isAgain ? sent.body.replace(`"${eventId}"`, `"${eventId}_${Date.now().toString(36)}"`) : sent.body;
  const body = el('textarea', { rows: '18', spellcheck: 'false', value: text });
  openForm({
    title: 'Edit and send again', button: 'Sign and send', isWide: true,
    fields: [field('Body', body, `It is signed with the key of this command and sent to ${receiver.url}.${isAgain ? ' The event has a new id: one that is done is not handled again.' : ''}`)],
    async send() {
      const { told, id: made } = await ask(id, 'send', body.value);
      done(told);
      if (made) open(made);
    },
  });
}

const whole = ({ attempts: [{ request: sent }] }) => {
  if (sent.bytes) throw new Error('The body is longer than what the page has of it.');
  return sent;
};
const { list, detail, open } = deliveries({ store, states: VERDICTS }, {
  label: 'Deliveries', empty, names: { state: 'Verdict', result: 'Answer' },
}, {
  at: () => [], gone,
  // Times as in the rest of the page.
  facts: ({ facts, subject }) => [...subject ? [['About', subject]] : [], ...facts.map(([name, text]) => [name, moment(text)])],
  // The event's age tells which attempt it is.
  heading: () => 'Delivery',
  actions: [
    {
      label: 'Deliver again', about: 'To this command, signed for now', fits: ({ authentic }) => authentic,
      async run({ id }) {
        done((await ask(id, 'replay')).told);
      },
    },
    {
      label: 'Edit and send again', about: 'Another body, signed with the key of this command',
      fits: ({ attempts: [{ request: sent }] }) => receiver.maySign && sent.body !== null && !sent.bytes,
      run: async (shown) => sendChanged(shown),
    },
    {
      label: 'Copy as curl without signature', about: 'The signature is taken out: a receiver refuses the request',
      async run(shown) {
        const sent = whole(shown);
        const kept = sent.headers.filter(([name]) => name !== 'x-service-signature');
        await copy(curl({ ...sent, headers: kept }), sent.body === null ? 'Command without signature and body, which was not read,' : 'Command without the signature');
      },
    },
    {
      label: 'Why was it refused?', about: 'Tries the known mistakes with the secrets of this command', fits: ({ state }) => state === 'refused',
      run: async ({ id }) => explained(await ask(id, 'explain')),
    },
  ],
});
const filter = deliveryFilter({ store, list, states: VERDICTS, label: 'Verdict' });
const connection = connectionBadge();
const leftOut = el('p', { class: 'dim', hidden: true });
store.watch(() => {
  const number = store.totals().leftOut;
  leftOut.hidden = !number;
  setText(leftOut, `${number?.toLocaleString('en')} of other types left out by --events`);
});
fill(document.getElementById('top'), el('h1', {}, 'hookgate listen'), connection.element);
fill(document.getElementById('main'), el('div', { class: 'section' }, above, el('div', { class: 'beside' },
  el('section', { class: 'panel' }, el('header', {}, el('h2', { class: 'grow' }, 'Deliveries'), filter.element), filter.totals, leftOut, list.element),
  detail.element)));

async function readReceiver() {
  receiver = (await request('GET', `${BASE}receiver`, undefined, headers)).data;
  drawReceiver();
}
const again = drawnOnce(() => Promise.all([readReceiver(), store.load()]).catch(failed));
const take = { delivery: store.take, totals: store.loadSoon, missed: again };
const show = async () => {
  await filter.shown();
  const [id] = place();
  if (id && id !== 'main') open(id);
};
async function start() {
  await readReceiver();
  await store.load();
  addEventListener('hashchange', show);
  await show();
}
listen(`${BASE}stream`, Object.keys(take), (kind, data) => take[kind](data), connection.set);
start().catch(failed);

// Inbound triggers: how each is called and what it answers, and the calls that came.

import { control, part } from './api.js';
import { el, fill } from './dom.js';
import { confirmed } from './form.js';
import { triggerForm } from './trigger_form.js';
import { headersShown } from './delivery_detail.js';
import { curl } from './curl.js';
import { bodyShown, jsonOf } from './json.js';
import { timeShown } from './times.js';
import { acting, copy } from './told.js';

const PAGE = 50;

const authOf = ({ mode, name, username }) =>
  ({ none: 'no authentication', basic: `Basic, user ${username}`, header: `header ${name}` })[mode] ?? mode;
const whenOf = ({ mode }) => (mode === 'immediate' ? 'at once' : 'after completion');

function call({ workflowId, method, path, auth }) {
  const headers = [['content-type', 'application/json']];
  if (auth?.mode === 'header') headers.push([auth.name, '<the value>']);
  if (auth?.mode === 'basic') headers.push(['authorization', `Basic <${auth.username}:password in base64>`]);
  return curl({ method, url: location.origin + (path ?? `/webhooks/${workflowId}`), headers, body: method === 'GET' ? '' : '{"a": 1}' });
}

export function triggersSection({ resource, clock }) {
  const triggers = resource(() => 'triggers', ['triggers'], 'triggers');
  const calls = resource(() => 'triggers/calls', ['trigger'], 'triggers');
  const list = el('div', { class: 'triggers' });
  const log = el('div', { class: 'calls' });
  let shown = PAGE;
  const more = el('button', { class: 'quiet', onclick: () => {
    shown += PAGE;
    drawCalls();
  } }, 'Show more');

  const remove = ({ workflowId }) => confirmed(`Remove ${workflowId}?`, 'Every trigger of this workflow goes.', 'Remove', async () => {
    await control('DELETE', `triggers/${part(workflowId)}`);
    await triggers.load();
  });
  triggers.watch((all) => fill(list, all.map((trigger) => {
    const { workflowId, method, path, auth, response } = trigger;
    return el('article', { 'data-trigger': workflowId },
      el('header', {}, el('h3', { class: 'grow break' }, el('span', { class: 'method' }, method), ` ${path ?? `/webhooks/${workflowId}`}`),
        el('button', { onclick: acting(() => copy(call(trigger), 'Command')) }, 'Copy as curl'),
        el('button', { onclick: () => triggerForm(trigger, triggers.load) }, 'Change'),
        el('button', { class: 'danger', onclick: () => remove(trigger) }, 'Remove')),
      el('p', { class: 'dim' }, `${workflowId} · ${authOf(auth)} · answers ${whenOf(response)} with ${response.status}`),
      response.template !== null && response.template !== undefined && jsonOf(response.template));
  }), all.length === 0 && el('p', { class: 'empty' }, 'The workspace has no inbound triggers.')));

  // An open call stays open when others come.
  const opened = new Set();
  const drawCalls = () => {
    const all = calls.value ?? [];
    fill(log, all.slice(0, shown).map((one, at) => {
      const key = all.length - at;
      const details = el('details', { class: 'attempt', open: opened.has(key) },
        el('summary', {}, el('span', { class: 'number' }, timeShown(one.at, clock.now())),
          el('span', { class: 'grow break' }, `${one.method} ${one.path}${one.query ? `?${one.query}` : ''}`),
          el('span', { class: `badge ${one.status < 400 ? 'good' : 'bad'}` }, String(one.status))),
        headersShown(one.headers, 'Headers of the call'), bodyShown(one.body));
      details.addEventListener('toggle', () => (details.open ? opened.add(key) : opened.delete(key)));
      return details;
    }), all.length === 0 && el('p', { class: 'empty' }, 'No call yet.'));
    more.hidden = all.length <= shown;
  };
  calls.watch(drawCalls);
  return {
    resources: [triggers, calls],
    element: el('div', { class: 'section' },
      el('section', { class: 'panel' }, el('header', {}, el('h2', { class: 'grow' }, 'Inbound triggers'),
        el('button', { class: 'primary', onclick: () => triggerForm(undefined, triggers.load) }, 'New trigger')), list),
      el('section', { class: 'panel' }, el('header', {}, el('h2', {}, 'Calls')), log, more)),
  };
}

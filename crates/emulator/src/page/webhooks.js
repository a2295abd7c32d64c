// Webhooks: the subscriptions with their settings, and all recent deliveries.

import { control, part } from './api.js';
import { actionsOf, factsOf, gone, STATES, tellResult } from './delivery_actions.js';
import { deliveries } from './deliveries.js';
import { deliveryFilter } from './delivery_filter.js';
import { el, keyed, setText } from './dom.js';
import { choice, confirmed, field, openForm, shownOnce } from './form.js';
import { acting, copy, done } from './told.js';
import { EVENT_TYPES, SAMPLES } from './event_types.js';

export function webhooksSection(context) {
  const { store, subscriptions, models, clock } = context;
  const all = () => subscriptions.value ?? [];
  const body = el('tbody');
  const table = el('table', { class: 'list', 'aria-label': 'Webhooks' },
    el('thead', {}, el('tr', {}, ['Name', 'URL', 'Events', 'Data model', 'Actions'].map((name) => el('th', { scope: 'col' }, name)))), body);
  const none = el('p', { class: 'empty' }, 'There is no webhook: nothing is delivered.');

  function make(subscription) {
    const row = el('tr', { 'data-subscription': subscription.id },
      el('td', { class: 'main' }, el('span'), el('small', { class: 'id' })), el('td', { class: 'break' }), el('td', { class: 'dim' }), el('td'),
      el('td', { class: 'actions' },
        el('button', { onclick: acting(() => test(row.subscription)) }, 'Test event'),
        el('button', { onclick: () => edit(row.subscription) }, 'Change'),
        el('button', { onclick: acting(() => toggle(row.subscription)) }),
        el('button', { class: 'danger', onclick: () => remove(row.subscription) }, 'Remove')));
    return row;
  }
  function update(row, subscription) {
    row.subscription = subscription;
    const [name, url, events, model, actions] = row.children;
    setText(name.firstElementChild, subscription.name || '(no name)');
    setText(name.lastElementChild, subscription.id);
    setText(url, subscription.url);
    setText(events, subscription.events.length === EVENT_TYPES.length ? 'all' : subscription.events.join(', '));
    const { dataModelId } = subscription;
    setText(model, dataModelId ? models.value?.find((one) => one.id === dataModelId)?.title ?? dataModelId : 'every data model');
    setText(actions.children[2], subscription.disabled ? 'Enable' : 'Disable');
    row.classList.toggle('off', subscription.disabled === true);
  }

  async function test({ id }) {
    const { data } = await control('POST', 'events/test', { subscriptionId: id });
    store.take(data);
    tellResult('Test event', data);
    await open(data.id);
  }
  async function toggle({ id, disabled }) {
    await control('PATCH', `subscriptions/${part(id)}`, { disabled: !disabled });
    await subscriptions.load();
  }
  function remove({ id, name }) {
    confirmed(`Remove ${name || id}?`, 'What waits for it is discarded. Its secret is gone then.', 'Remove', async () => {
      await control('DELETE', `subscriptions/${part(id)}`);
      await subscriptions.load();
    });
  }

  function edit(subscription) {
    const name = el('input', { value: subscription?.name ?? '', autocomplete: 'off' });
    const url = el('input', { value: subscription?.url ?? 'http://127.0.0.1:8787/webhooks', autocomplete: 'off', spellcheck: 'false' });
    const events = EVENT_TYPES.map((type) => [type, el('input', { type: 'checkbox', checked: subscription?.events.includes(type) ?? true })]);
    const pairs = (models.value ?? []).map((one) => [one.id, one.title]);
    const model = choice([['', 'every data model'], ...pairs], subscription?.dataModelId ?? '');
    openForm({
      title: subscription ? `Change ${subscription.name || subscription.id}` : 'New webhook',
      button: subscription ? 'Save' : 'Create',
      fields: [field('Name', name), field('URL', url, 'Deliveries go to this machine, unless the emulator was started with --deliver-anywhere.'),
        el('fieldset', {}, el('legend', {}, 'Events'), events.map(([type, box]) => el('label', { class: 'check' }, box, type))),
        field('Data model', model)],
      async send() {
        const settings = {
          name: name.value, url: url.value.trim(), events: events.filter(([, box]) => box.checked).map(([type]) => type),
          dataModelId: model.value || null,
        };
        const { data } = subscription
          ? await control('PATCH', `subscriptions/${part(subscription.id)}`, settings)
          : await control('POST', 'subscriptions', settings);
        await subscriptions.load();
        if (data.secret) {
          shownOnce(`Secret of ${data.name || data.id}`, 'Give it to your receiver now. It is not shown again.', data.secret, copy);
        } else done('Saved');
      },
    });
  }

  function emit() {
    const type = choice(EVENT_TYPES.map((one) => [one]), 'page.updated');
    const sample = () => JSON.stringify(SAMPLES[type.value.split('.')[0]], null, 2);
    const data = el('textarea', { rows: '6', spellcheck: 'false', value: sample() });
    type.addEventListener('change', () => {
      data.value = sample();
    });
    openForm({
      title: 'Emit an event', button: 'Emit',
      fields: [field('Type', type), field('Data', data, 'JSON. The specification does not show the data of page and member events.')],
      async send() {
        let parsed;
        try {
          parsed = JSON.parse(data.value);
        } catch (error) {
          throw new Error(`The data is not JSON: ${error.message}`);
        }
        const made = await control('POST', 'events', { type: type.value, data: parsed });
        done(`${made.data.id} emitted`);
      },
    });
  }

  const webhook = el('select', {});
  const { list, detail, open } = deliveries({ store, now: () => clock.now() }, {
    label: 'Recent deliveries', empty: 'Nothing was delivered yet.',
    nameOf: (id) => all().find((one) => one.id === id)?.name || id,
  }, { actions: actionsOf(context), facts: factsOf(context), at: () => ['webhooks'], gone });
  webhook.setAttribute('aria-label', 'Webhook');
  const filter = deliveryFilter({ store, list, states: STATES, label: 'State', more: { subscriptionId: webhook } });

  const draw = () => {
    keyed(body, all(), (subscription) => subscription.id, make, update);
    table.hidden = all().length === 0;
    none.hidden = !table.hidden;
    const chosen = webhook.value;
    keyed(webhook, [{ id: '', name: 'every webhook' }, ...all()], (one) => one.id, (one) => el('option', { value: one.id }),
      (option, one) => setText(option, one.name || one.id));
    // The webhook that was chosen is gone.
    if (webhook.value !== chosen) filter.ask();
    list.draw();
  };
  subscriptions.watch(draw);
  models.watch(draw);

  return {
    element: el('div', { class: 'section' },
      el('section', { class: 'panel' },
        el('header', {}, el('h2', { class: 'grow' }, 'Webhooks'), el('button', { onclick: emit }, 'Emit an event'),
          el('button', { class: 'primary', onclick: () => edit() }, 'New webhook')),
        el('div', { class: 'scroll' }, table, none)),
      el('div', { class: 'beside' },
        el('section', { class: 'panel' }, el('header', {}, el('h2', { class: 'grow' }, 'Recent deliveries'), filter.element), list.element),
        detail.element)),
    show(id) {
      filter.shown();
      if (id) open(id);
      else detail.close();
    },
  };
}

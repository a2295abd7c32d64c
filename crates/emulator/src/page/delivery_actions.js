// The actions on a delivery that the emulator has.

import { control, part } from './api.js';
import { curl } from './curl.js';
import { el } from './dom.js';
import { explained } from './explained.js';
import { moment } from './times.js';
import { copy, done, failed } from './told.js';
import { isAccepted, resultOf } from './delivery_list.js';

/** The states of a delivery, to choose from. */
export const STATES = [['', 'every state'], ['pending'], ['delivered'], ['discarded']];

/** Tells the result of a delivery that was sent now. */
export function tellResult(what, { state, attempts }) {
  const last = attempts.at(-1);
  const isBad = last ? !isAccepted(last) : state === 'discarded';
  const result = last?.status ? `the receiver answered ${last.status}${last.meaning ? `: ${last.meaning}` : ''}` : resultOf(last) || state;
  (isBad ? failed : done)(`${what}: ${result}`);
}

/** What is said of a delivery that the emulator does not have. */
export const gone = (id) => `The emulator keeps no delivery ${id}: it made room for newer ones, or the emulator was started again without its state.`;

export const factsOf = ({ subscriptions }) => (detail) => {
  const webhook = subscriptions.value?.find((one) => one.id === detail.subscriptionId);
  return [
    ['Event', detail.eventId], ['Delivery', detail.id],
    ['Webhook', webhook?.name ? `${webhook.name} (${webhook.id})` : detail.subscriptionId],
    ['Retries', String(detail.retryCount)],
    ['Created', moment(detail.payload?.createdAt)],
  ];
};

export const actionsOf = ({ store }) => [
  {
    label: 'Send again', about: 'Sends the same event once more, as a delivery of its own',
    async run({ id }) {
      const { data } = await control('POST', `deliveries/${part(id)}/redeliver`);
      store.take(data);
      tellResult(`Sent again as ${data.id}`, data);
      return null;
    },
  },
  {
    label: 'Copy as curl', about: 'The request of the last attempt, signature included',
    async run({ attempts }) {
      const { request } = attempts.at(-1) ?? {};
      if (!request) throw new Error('No attempt has ended yet.');
      await copy(curl(request), 'Command');
      return null;
    },
  },
  {
    label: 'Why was it refused?', about: 'Tries the known mistakes on the request of the last attempt',
    fits: ({ attempts }) => attempts.at(-1)?.status >= 400 && attempts.at(-1).status < 500,
    run: async (detail) => whyRefused(detail),
  },
];

/** The explanation, and a field for the receiver's own secret: with it, a mistake in the receiver's settings is found too. */
async function whyRefused({ id }) {
  const ask = async (secret) => (await control('POST', `deliveries/${part(id)}/explain`, secret ? { secret } : {})).data;
  const shown = el('div', {}, explained(await ask()));
  const input = el('input', { type: 'password', autocomplete: 'off', 'aria-label': 'The secret that your receiver has', placeholder: 'whsec_…' });
  const form = el('form', { class: 'inline', onsubmit: async (event) => {
    event.preventDefault();
    try {
      shown.replaceChildren(explained(await ask(input.value)));
    } catch (error) {
      shown.replaceChildren(el('p', { class: 'refusal' }, error.message));
    }
  } }, el('label', {}, 'The secret that your receiver has: ', input), el('button', {}, 'Compare'));
  return [shown, form];
}

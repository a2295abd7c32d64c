// Why a delivery is refused, as `explain` of hookgate-testing says it.

import { el } from './dom.js';

/** `{"authentic", "conclusion", "causes": [{"what", "detail", "fix"}], "hints": [{"what", "detail"}], "remarks": [text]}` */
export function explained({ authentic, conclusion, causes, hints, remarks = [] }) {
  return el('div', { class: `explained ${authentic ? 'good' : 'bad'}` },
    el('h3', {}, 'Why it was refused'), el('p', {}, conclusion),
    causes.map(({ what, detail, fix }) => el('div', { class: 'cause' },
      el('p', {}, el('strong', {}, what), detail && ` (${detail})`), el('p', { class: 'dim' }, fix))),
    hints.map(({ what, detail }) => el('p', { class: 'dim' }, what, detail && ` (${detail})`)),
    remarks.map((text) => el('p', {}, text)));
}

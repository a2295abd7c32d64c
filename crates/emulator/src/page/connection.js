// The badge that says whether the page hears of changes.

import { el, setText } from './dom.js';

export function connectionBadge() {
  const element = el('span', { id: 'connection', class: 'badge calm', role: 'status' }, 'connecting');
  return {
    element,
    set(is) {
      setText(element, is ? 'live' : 'connection lost, trying again');
      element.className = `badge ${is ? 'good' : 'bad'}`;
      document.body.classList.toggle('lost', !is);
    },
  };
}

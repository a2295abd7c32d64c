// Makes elements. A text becomes a text node, so nothing that was received is ever read as HTML, and what turns the direction of writing
// or can't be seen is shown as an escape.

const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const SHOWN = new Set(['title', 'aria-label']);

/** A text as it is shown. */
export const shownText = (text) => String(text).replace(HIDDEN, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** `el('button', { class: 'quiet', onclick: f }, 'Close')`. Properties without a value are left out. */
export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (name === 'value' || name === 'checked' || name === 'selected') made[name] = value;
    else made.setAttribute(name, value === true ? '' : SHOWN.has(name) ? shownText(value) : value);
  }
  made.append(...present(children));
  return made;
}

/** Replaces the children of an element. */
export function fill(parent, ...children) {
  parent.replaceChildren(...present(children));
  return parent;
}

function present(children) {
  return children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false)
    .map((child) => (child instanceof Node ? child : shownText(child)));
}

/** Sets a text where it differs, so that a selection and a screen reader's place stay. */
export function setText(element, text) {
  const shown = shownText(text);
  if (element.textContent !== shown) element.textContent = shown;
}

const kept = new WeakMap();

/** Makes the children of `parent` those of `items`: an item whose key is there already keeps its element, and with it the focus. */
export function keyed(parent, items, keyOf, make, update) {
  const before = kept.get(parent) ?? new Map();
  const now = new Map();
  for (const item of items) {
    const key = keyOf(item);
    const element = before.get(key) ?? make(item);
    update(element, item);
    now.set(key, element);
  }
  for (const [key, element] of before) if (now.get(key) !== element) element.remove();
  let at = parent.firstElementChild;
  for (const element of now.values()) {
    if (element === at) at = at.nextElementSibling;
    else parent.insertBefore(element, at);
  }
  kept.set(parent, now);
}

/** Calls `draw` once before the next frame, however often it is asked for. */
export function drawnOnce(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    // A page in the background gets no frames.
    const wait = document.hidden ? (run) => setTimeout(run, 50) : requestAnimationFrame;
    wait(() => {
      asked = false;
      draw();
    });
  };
}

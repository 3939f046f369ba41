// Small helpers around the document. Text goes in as text: nothing here parses markup.

export const $ = (id) => document.getElementById(id);

/** An element with attributes and children. `class`, `data-…` and `aria-…` are attributes like any other. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ''));
  return element;
}

const SVG = 'http://www.w3.org/2000/svg';

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Writes only what differs, so that nothing is laid out anew for nothing. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element, name, value) {
  if (value === null || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) {
    element.setAttribute(name, value);
  }
}

/** Calls `draw` once before the next picture, however often it is asked for. */
export function onNextFrame(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}

/**
 * A listbox of one choice: one stop for Tab, arrow keys within, and what has the focus is selected.
 * `choose` gets the key of an option, or null.
 */
export function listbox(list, choose) {
  const options = () => [...list.querySelectorAll('[role=option]')];
  const perRow = (all) => {
    const top = all[0].offsetTop;
    const next = all.findIndex((option) => option.offsetTop !== top);
    return next === -1 ? all.length : next;
  };
  const go = (option) => {
    if (!option) return;
    option.focus({ preventScroll: false });
    choose(option.dataset.key);
  };
  list.addEventListener('click', (event) => {
    if (event.target.closest('a')) return;
    go(event.target.closest('[role=option]'));
  });
  list.addEventListener('keydown', (event) => {
    const all = options();
    const at = all.indexOf(event.target.closest('[role=option]'));
    if (at === -1) return;
    const step = {
      ArrowRight: () => at + 1,
      ArrowLeft: () => at - 1,
      ArrowDown: () => at + perRow(all),
      ArrowUp: () => at - perRow(all),
      Home: () => 0,
      End: () => all.length - 1,
      Enter: () => at,
      ' ': () => at,
    }[event.key];
    if (!step || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    go(all[Math.min(Math.max(step(), 0), all.length - 1)]);
  });
}

/** Marks the selected option and makes it, or else the first one, the stop for Tab. */
export function mark(list, key) {
  const selected = key === null ? null : list.querySelector(`[role=option][data-key="${CSS.escape(key)}"]`);
  const stop = selected ?? list.querySelector('[role=option]');
  for (const option of list.querySelectorAll('[role=option][tabindex="0"], [role=option][aria-selected=true]')) {
    if (option !== stop) setAttribute(option, 'tabindex', -1);
    if (option !== selected) setAttribute(option, 'aria-selected', 'false');
  }
  if (stop) setAttribute(stop, 'tabindex', 0);
  if (selected) setAttribute(selected, 'aria-selected', 'true');
}

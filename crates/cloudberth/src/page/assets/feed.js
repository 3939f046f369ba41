// What happens, newest first: decisions, events, calls to the cloud and writes to Kubernetes.
import { $, el, setAttribute } from './dom.js';
import { clock, line } from './words.js';

/** So many lines are shown. */
const LINES = 200;
/** What happens again while it is among so many of the newest lines is counted there. */
const NEAR = 4;
const KINDS = { decided: 'decided', event: 'event', cloud: 'cloud', read: 'cloud', wrote: 'wrote', did: 'you' };

export class Feed {
  #list = $('entries');
  #held = false;
  #waiting = [];

  constructor(about) {
    this.about = about;
    for (const button of document.querySelectorAll('[data-show]')) {
      button.addEventListener('click', () => {
        const on = button.getAttribute('aria-pressed') !== 'true';
        setAttribute(button, 'aria-pressed', String(on));
        this.#list.classList.toggle(`no-${button.dataset.show}`, !on);
      });
    }
    $('hold').addEventListener('click', () => this.hold(!this.#held));
    this.#list.addEventListener('click', (event) => {
      const object = event.target.closest('[data-object]')?.dataset.object;
      if (object) about(object);
    });
  }

  hold(held = !this.#held) {
    this.#held = held;
    setAttribute($('hold'), 'aria-pressed', String(held));
    if (!held) this.add(this.#waiting.splice(0));
  }

  add(entries) {
    if (this.#held) {
      this.#waiting.push(...entries);
      this.#waiting.splice(0, this.#waiting.length - LINES);
      return;
    }
    // More than a screen at once is not read one by one anyway.
    for (const entry of entries.slice(-LINES)) this.#put(entry);
    while (this.#list.childElementCount > LINES) this.#list.lastElementChild.remove();
  }

  gap() {
    this.#list.prepend(el('li', { class: 'gap' }, 'More happened here than is remembered.'));
  }

  #put(entry) {
    const { kind, object, text, note, tone, key } = line(entry);
    const near = [...this.#list.children].slice(0, kind === 'read' ? NEAR : 1);
    const same = near.find((row) => row.dataset.key === key);
    if (same) {
      const times = Number(same.dataset.times ?? 1) + 1;
      same.dataset.times = times;
      same.querySelector('.times').textContent = `×${times}`;
      same.querySelector('time').textContent = clock(entry.at_ms);
      same.querySelector('.note').textContent = note;
      return;
    }
    this.#list.prepend(el(
      'li',
      { class: 'entry', 'data-kind': kind, 'data-tone': tone, 'data-key': key },
      el('time', {}, clock(entry.at_ms)),
      el('span', { class: 'kind' }, KINDS[kind] ?? kind),
      el('span', { class: 'text' },
        object ? el('span', { class: 'object', 'data-object': object }, object) : '',
        object ? ' ' : '', text, ' ',
        el('span', { class: 'note' }, note), el('span', { class: 'times' })),
    ));
  }
}

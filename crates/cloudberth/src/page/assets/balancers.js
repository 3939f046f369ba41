// The load balancers: a card each, with their members' health and the requests of the last minute.
import { $, el, listbox, mark, setAttribute, setText, svg } from './dom.js';
import { balancerAloud, balancerState, healths, rateInWords } from './words.js';
import { pulse } from './nodes.js';

/** Samples of a sparkline, one a second. */
const SAMPLES = 60;

export class Balancers {
  #list = $('balancer-list');
  #shown = new Map();
  #rates = new Map();

  constructor(world, choose) {
    this.world = world;
    listbox(this.#list, choose);
    setInterval(() => this.#sample(), 1000);
  }

  element(service) {
    return this.#shown.get(service);
  }

  draw({ set, gone }, selected) {
    for (const service of gone) this.#remove(service);
    for (const service of set) this.#put(this.world.balancers.get(service));
    const all = [...this.world.balancers.values()];
    const total = all.reduce((sum, balancer) => sum + balancer.requests_per_second, 0);
    setText($('balancers-sum'), this.world.head.traffic && all.length ? `${rateInWords(total)} requests per second` : '');
    $('no-balancers').hidden = all.length > 0;
    mark(this.#list, selected);
  }

  #put(balancer) {
    if (!balancer) return;
    let element = this.#shown.get(balancer.service);
    if (!element) {
      element = card(balancer.service);
      this.#shown.set(balancer.service, element);
      const services = [...this.world.balancers.keys()];
      const next = services.slice(services.indexOf(balancer.service) + 1).map((name) => this.#shown.get(name)).find(Boolean);
      this.#list.insertBefore(element, next ?? null);
    }
    const before = element.dataset.state;
    setAttribute(element, 'data-state', balancer.state);
    setAttribute(element, 'data-empty', balancer.members.length === 0 ? '' : null);
    setAttribute(element, 'aria-label', balancerAloud(balancer));
    setText(element.querySelector('.balancer-state'), balancerState(balancer));
    setText(element.querySelector('.address'), balancer.address ?? '—');
    setText(element.querySelector('.ports'), balancer.ports.join(', '));
    setText(element.querySelector('.rate'), this.world.head.traffic ? rateInWords(balancer.requests_per_second) : '');
    setText(element.querySelector('.refused'), balancer.refused.at(-1) ?? '');
    const counts = healths(balancer.members);
    const text = counts.map(([health, n]) => `${n} ${health}`).join(' · ') || 'no members';
    const share = element.querySelector('.share');
    if (setTextChanged(element.querySelector('.members'), text)) {
      share.replaceChildren(...counts.map(([health, n]) => {
        const part = el('i', { 'data-health': health });
        part.style.flexGrow = n;
        return part;
      }));
    }
    if (before && before !== balancer.state) pulse(element);
  }

  #remove(service) {
    const element = this.#shown.get(service);
    this.#shown.delete(service);
    this.#rates.delete(service);
    if (!element) return;
    const focused = element === document.activeElement;
    element.remove();
    if (focused) document.querySelector('[data-do=service]').focus();
  }

  #sample() {
    if (!this.world.head.traffic) return;
    for (const [service, balancer] of this.world.balancers) {
      const rates = this.#rates.get(service) ?? [];
      rates.push(balancer.requests_per_second);
      if (rates.length > SAMPLES) rates.shift();
      this.#rates.set(service, rates);
      this.#shown.get(service)?.querySelector('.spark path').setAttribute('d', sparkline(rates));
    }
  }
}

function setTextChanged(element, text) {
  const changed = element.textContent !== text;
  if (changed) element.textContent = text;
  return changed;
}

/** A line through the samples in a box of 60 by 20, the newest at its right end. */
export function sparkline(rates) {
  const most = Math.max(1, ...rates);
  const at = (rate, index) => `${SAMPLES - rates.length + index} ${(19 - (rate / most) * 17).toFixed(1)}`;
  return rates.length < 2 ? '' : `M${rates.map(at).join('L')}`;
}

function card(service) {
  const [namespace, name] = service.split('/');
  return el(
    'div',
    { role: 'option', class: 'balancer', 'data-key': service, tabindex: -1, 'aria-selected': 'false' },
    el('span', { class: 'balancer-top' }, el('i', { class: 'lamp' }), el('span', { class: 'space' }, `${namespace}/`), el('b', {}, name),
      el('span', { class: 'rate big', 'data-unit': '/s' })),
    el('span', { class: 'balancer-state' }),
    el('span', { class: 'balancer-where' }, el('span', { class: 'address' }), el('span', { class: 'ports' })),
    svg('svg', { class: 'spark', viewBox: '0 0 60 20', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, svg('path')),
    el('span', { class: 'share', 'aria-hidden': 'true' }),
    el('span', { class: 'members' }),
    el('span', { class: 'refused' }),
  );
}

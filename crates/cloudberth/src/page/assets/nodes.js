// The nodes: cards while they are few, a grid of small cells when they are many. Only what changed is drawn.
import { $, el, listbox, mark, setAttribute, setText } from './dom.js';
import { NODE_STATES, nodeAloud, nodeState, number, rateInWords, taintInWords } from './words.js';

/** With more nodes than this, a node is a cell. */
export const MOST_CARDS = 48;

export class Nodes {
  #list = $('node-list');
  #shown = new Map();
  #dense = null;

  constructor(world, choose) {
    this.world = world;
    listbox(this.#list, choose);
    this.#tips();
  }

  get dense() {
    return this.#dense;
  }

  element(name) {
    return this.#shown.get(name);
  }

  /** Draws the nodes named in `changed`; `selected` is a node's name, `balancer` the card whose members are marked. */
  draw({ set, gone }, selected, balancer) {
    const dense = this.world.nodes.size > MOST_CARDS;
    const anew = dense !== this.#dense;
    this.#dense = dense;
    if (anew) {
      this.#list.replaceChildren();
      this.#shown.clear();
      this.#list.classList.toggle('dense', dense);
    }
    const size = this.world.nodes.size > 400 ? 'small' : this.world.nodes.size > 150 ? 'medium' : 'large';
    setAttribute(this.#list, 'data-size', dense ? size : null);
    for (const name of gone) this.#remove(name);
    const order = [...this.world.nodes.keys()];
    for (const name of anew ? order : set) this.#put(name, order);
    this.#summary();
    this.mark(selected, balancer);
  }

  mark(selected, balancer) {
    mark(this.#list, selected);
    this.#list.classList.toggle('picked', balancer !== null);
    if (balancer === null && !this.#marked) return;
    const healths = new Map((balancer?.members ?? []).map((member) => [member.node, member.health]));
    for (const [name, element] of this.#shown) setAttribute(element, 'data-member', healths.get(name) ?? null);
    this.#marked = balancer !== null;
  }
  #marked = false;

  #put(name, order) {
    const node = this.world.nodes.get(name);
    if (!node) return;
    const rate = this.world.rate(name);
    let element = this.#shown.get(name);
    if (!element) {
      element = this.#dense ? cell(name) : card(name);
      this.#shown.set(name, element);
      this.#insert(element, name, order);
    }
    const [state, words] = nodeState(node);
    const before = element.dataset.state;
    setAttribute(element, 'data-state', state);
    setAttribute(element, 'aria-label', nodeAloud(node, rate));
    if (!this.#dense) fill(element, node, words, rate);
    if (before && before !== state) pulse(element);
  }

  /** The list stays in order; what is drawn for the first time comes in order anyway. */
  #insert(element, name, order) {
    const last = this.#list.lastElementChild;
    if (!last || order.indexOf(last.dataset.key) < order.indexOf(name)) {
      this.#list.append(element);
      return;
    }
    const next = order.slice(order.indexOf(name) + 1).map((other) => this.#shown.get(other)).find(Boolean);
    this.#list.insertBefore(element, next ?? null);
  }

  #remove(name) {
    const element = this.#shown.get(name);
    if (!element) return;
    this.#shown.delete(name);
    const focused = element === document.activeElement;
    const next = element.nextElementSibling ?? element.previousElementSibling;
    element.remove();
    if (focused) (next ?? document.querySelector('[data-do=add]')).focus();
  }

  #summary() {
    const counts = {};
    for (const node of this.world.nodes.values()) {
      const [state] = nodeState(node);
      counts[state] = (counts[state] ?? 0) + 1;
    }
    const sum = $('nodes-sum');
    const parts = Object.entries(NODE_STATES).filter(([state]) => counts[state]);
    const text = parts.map(([state, words]) => `${number(counts[state])} ${words}`).join('');
    if (sum.textContent !== text) {
      sum.replaceChildren(...parts.map(([state, words]) =>
        el('span', { class: 'count' }, el('i', { class: 'lamp', 'data-state': state }), el('span', {}, `${number(counts[state])} ${words}`))));
    }
    $('no-nodes').hidden = this.world.nodes.size > 0;
  }

  /** Cells have no room for names: the one under the pointer or with the focus is named beside it. */
  #tips() {
    const tip = $('tip');
    const show = (event) => {
      const option = this.#dense ? event.target.closest?.('[role=option]') : null;
      tip.hidden = !option;
      if (!option) return;
      setText(tip, option.getAttribute('aria-label'));
      tip.style.left = `${Math.min(option.offsetLeft, this.#list.offsetWidth - 180)}px`;
      tip.style.top = `${option.offsetTop + this.#list.offsetTop - tip.offsetHeight - 8}px`;
    };
    const hide = () => { tip.hidden = true; };
    for (const [name, act] of [['pointerover', show], ['focusin', show], ['pointerleave', hide], ['focusout', hide]]) {
      this.#list.addEventListener(name, act);
    }
  }
}

const option = (name, ...children) =>
  el('div', { role: 'option', class: 'node', 'data-key': name, tabindex: -1, 'aria-selected': 'false' }, ...children);

const cell = (name) => option(name);

function card(name) {
  return option(
    name,
    el('span', { class: 'node-top' }, el('i', { class: 'lamp' }), el('b', {}, name), el('span', { class: 'rate' })),
    el('span', { class: 'node-state' }),
    el('span', { class: 'node-where' }),
    el('span', { class: 'taints' }),
  );
}

function fill(element, node, words, rate) {
  setText(element.querySelector('.rate'), rate === null ? '' : `${rateInWords(rate)}/s`);
  setText(element.querySelector('.node-state'), [words, node.zone].filter(Boolean).join(' · '));
  setText(element.querySelector('.node-where'), node.addresses[0] ?? 'no address yet');
  const taints = element.querySelector('.taints');
  const keys = node.taints.join(' ');
  if (taints.dataset.keys !== keys) {
    taints.dataset.keys = keys;
    taints.replaceChildren(...node.taints.map((taint) => el('span', { class: 'chip', title: taint }, taintInWords(taint))));
  }
}

/** A short ring around what has just changed; the style sheet leaves it out for those who want no motion. */
export function pulse(element) {
  element.classList.remove('pulse');
  requestAnimationFrame(() => element.classList.add('pulse'));
}

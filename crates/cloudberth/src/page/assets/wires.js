// The lines from load balancers to their members. Dots travel along those that carry requests.
import { $, onNextFrame, setAttribute, svg } from './dom.js';

const RANK = { up: 0, unknown: 1, draining: 2, down: 3 };

export class Wires {
  #root = $('wires');
  #picture = $('picture');
  #shown = new Map();

  /** `picked()` is the service whose lines are in front, or null. */
  constructor(world, nodes, balancers, picked) {
    Object.assign(this, { world, nodes, balancers, picked });
    this.draw = onNextFrame(() => this.#draw());
    new ResizeObserver(this.draw).observe(this.#picture);
    for (const list of ['node-list', 'balancer-list']) new ResizeObserver(this.draw).observe($(list));
  }

  #draw() {
    const picked = this.picked();
    const wanted = this.nodes.dense ? this.#bundles() : this.#single();
    this.#root.setAttribute('height', this.#picture.scrollHeight);
    for (const [key, wire] of this.#shown) {
      if (!wanted.has(key)) {
        wire.remove();
        this.#shown.delete(key);
      }
    }
    for (const [key, want] of wanted) {
      let wire = this.#shown.get(key);
      if (!wire) {
        wire = svg('g', { class: 'wire' }, svg('path', { class: 'thread' }), svg('path', { class: 'flow' }));
        this.#shown.set(key, wire);
        this.#root.append(wire);
      }
      wire.classList.toggle('aside', picked !== null && !key.startsWith(`${picked} `));
      setAttribute(wire, 'data-health', want.health);
      setAttribute(wire, 'data-flow', want.rate > 0 && want.health !== 'down');
      const [x1, y1] = want.from;
      const [x2, y2] = want.to;
      const bend = Math.max(24, (y2 - y1) * 0.5);
      const d = `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
      for (const path of wire.children) setAttribute(path, 'd', d);
      // In steps, because a new duration makes the dots jump.
      const seconds = (1.6 / (1 + Math.round(Math.log2(1 + want.rate)))).toFixed(2);
      wire.lastChild.style.animationDuration = `${seconds}s`;
    }
  }

  #box(element) {
    const origin = this.#picture.getBoundingClientRect();
    const box = element.getBoundingClientRect();
    const [left, top] = [box.left - origin.left + this.#picture.scrollLeft, box.top - origin.top + this.#picture.scrollTop];
    return { left, top, width: box.width, height: box.height };
  }

  /** A line for each member. */
  #single() {
    const wires = new Map();
    const services = [...this.world.balancers.values()];
    const ends = new Map();
    services.forEach((balancer, nth) => {
      const card = this.balancers.element(balancer.service);
      if (!card) return;
      const from = this.#box(card);
      const members = balancer.members.filter((member) => this.nodes.element(member.node));
      const to = new Map(members.map((member) => [member.node, this.#nodeBox(ends, member.node)]));
      members.sort((a, b) => to.get(a.node).left - to.get(b.node).left || to.get(a.node).top - to.get(b.node).top);
      members.forEach((member, index) => {
        const box = to.get(member.node);
        const x1 = from.left + (from.width * (index + 1)) / (members.length + 1);
        const x2 = box.left + (box.width * (nth + 1)) / (services.length + 1);
        wires.set(`${balancer.service} ${member.node}`, {
          from: [round(x1), round(from.top + from.height)],
          to: [round(x2), round(box.top)],
          health: member.health,
          rate: member.requests_per_second,
        });
      });
    });
    return wires;
  }

  #nodeBox(seen, name) {
    if (!seen.has(name)) seen.set(name, this.#box(this.nodes.element(name)));
    return seen.get(name);
  }

  /** With many nodes a line for each would be a curtain: one line per load balancer and health. */
  #bundles() {
    const wires = new Map();
    const grid = this.#box($('node-list'));
    const services = [...this.world.balancers.values()];
    services.forEach((balancer, nth) => {
      const card = this.balancers.element(balancer.service);
      if (!card || balancer.members.length === 0) return;
      const from = this.#box(card);
      const x2 = grid.left + (grid.width * (nth + 1)) / (services.length + 1);
      const groups = Map.groupBy(balancer.members, (member) => member.health);
      const sorted = [...groups].sort(([a], [b]) => RANK[a] - RANK[b]);
      sorted.forEach(([health, members], index) => {
        const aside = (index - (sorted.length - 1) / 2) * 14;
        wires.set(`${balancer.service} ${health}`, {
          from: [round(from.left + from.width / 2 + aside), round(from.top + from.height)],
          to: [round(x2 + aside), round(grid.top)],
          health,
          rate: members.reduce((sum, member) => sum + member.requests_per_second, 0),
        });
      });
    });
    return wires;
  }
}

const round = (value) => Math.round(value * 2) / 2;

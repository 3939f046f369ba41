// All that is known of the node or load balancer that is selected, and what was decided about it.
import { $, el } from './dom.js';
import { balancerState, clock, isAbout, line, nodeState, rateInWords, taintInWords } from './words.js';

const MEMBERS = 40;
const LINES = 6;

let drawn = null;

/** Draws the panel; `selected` is `['node', name]`, `['balancer', service]` or null. */
export function drawDetail(world, selected, remove) {
  const panel = $('detail');
  const [kind, name] = selected ?? [];
  const card = kind === 'node' ? world.nodes.get(name) : world.balancers.get(name);
  // Drawn anew only when something in it changed, so that its text can be selected and copied.
  const now = JSON.stringify([selected, card, kind === 'node' && world.duties.get(name)?.behind, world.entries.at(-1)?.seq]);
  if (now === drawn) return;
  drawn = now;
  const content = !card ? hint() : kind === 'node' ? node(world, card) : balancer(world, card, remove);
  const recent = card ? history(world, kind === 'node' ? 'node' : 'service', name) : null;
  // The panel is redrawn as a whole; a button in it keeps the focus.
  const focused = panel.contains(document.activeElement);
  panel.replaceChildren(...content, ...(recent ? [recent] : []));
  if (focused) panel.querySelector('button')?.focus();
}

function hint() {
  return [
    el('h2', {}, 'Nothing selected'),
    el('p', { class: 'soft' }, 'Pick a node or a load balancer to see what is known of it and what was decided about it. ',
      'Press ', el('kbd', {}, '?'), ' for the keys.'),
  ];
}

function facts(rows) {
  const list = el('dl', { class: 'facts' });
  for (const [name, value] of rows) if (value) list.append(el('dt', {}, name), el('dd', {}, value));
  return list;
}

function node(world, card) {
  const [state, words] = nodeState(card);
  const duty = world.duties.get(card.name);
  const taints = card.taints.map((taint) => el('li', {}, `Taint: ${taintInWords(taint)} `, el('code', {}, taint)));
  return [
    el('h2', {}, el('i', { class: 'lamp', 'data-state': state }), card.name, el('span', { class: 'soft' }, ` ${words}`)),
    facts([
      ['Ready', card.ready ? 'yes' : 'no'],
      ['Instance', card.instance_state],
      ['Provider id', card.instance ?? 'none yet'],
      ['Addresses', card.addresses.join(', ')],
      ['Zone', card.zone],
      ['Type', card.instance_type],
      ['Behind', duty && duty.behind.map(({ service, health }) => `${service} (${health})`).join(', ')],
    ]),
    taints.length ? el('ul', { class: 'plain' }, ...taints) : '',
  ].filter(Boolean);
}

function balancer(world, card, remove) {
  const gone = el('button', { type: 'button', class: 'small', id: 'delete-service' }, 'Delete the Service');
  gone.addEventListener('click', () => remove(card.service));
  const members = card.members.slice(0, MEMBERS).map((member) =>
    el('li', { 'data-health': member.health }, el('i', { class: 'lamp', 'data-health': member.health }), el('b', {}, member.node), ` ${member.health}`,
      world.head.traffic ? el('span', { class: 'rate' }, `${rateInWords(member.requests_per_second)}/s`) : ''));
  const more = card.members.length - members.length;
  return [
    el('h2', {}, card.service, el('span', { class: 'soft' }, ` ${balancerState(card)}`)),
    facts([
      ['Address', card.url ? el('a', { href: card.url, target: '_blank', rel: 'noreferrer' }, card.url) : card.address],
      ['Ports', card.ports.join(', ')],
    ]),
    ...card.refused.map((why) => el('p', { class: 'refusal' }, why)),
    el('ul', { class: 'plain member-list' }, ...members, more > 0 ? el('li', { class: 'soft' }, `and ${more} more`) : ''),
    el('p', {}, gone),
  ];
}

function history(world, kind, name) {
  const lines = [];
  for (let at = world.entries.length - 1; at >= 0 && lines.length < LINES; at -= 1) {
    const entry = world.entries[at];
    if (!isAbout(entry, kind, name)) continue;
    const { text, note, tone, kind: what } = line(entry);
    lines.push(el('li', { class: 'entry', 'data-kind': what, 'data-tone': tone },
      el('time', {}, clock(entry.at_ms)), el('span', { class: 'text' }, text, ' ', el('span', { class: 'note' }, note))));
  }
  return lines.length ? el('ol', { class: 'history', 'aria-label': 'What happened to it, newest first' }, ...lines) : null;
}

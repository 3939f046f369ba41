// The page of the sandbox: it listens to the world, draws what changed, and passes on what a person asks for.
//
//   /events ──► World ──► Nodes, Balancers, Wires, Feed, Detail
//                ▲
//   /do ◄──── Controls
import { Balancers } from './balancers.js';
import { Controls } from './controls.js';
import { drawDetail } from './detail.js';
import { $, onNextFrame, setAttribute, setText } from './dom.js';
import { Feed } from './feed.js';
import { Nodes } from './nodes.js';
import { Wires } from './wires.js';
import { number } from './words.js';
import { World, listen } from './world.js';

const NAMES = { cloudlycke: 'Cloudlycke', cloudscale: 'cloudscale.ch', binarylane: 'BinaryLane', brightbox: 'Brightbox' };
const LINKS = {
  live: 'live',
  lost: 'connecting again',
  ended: 'ended: open the link that the sandbox prints',
};

const world = new World();
/** `['node', name]`, `['balancer', service]` or null. */
let selected = null;
const fresh = () => ({ nodes: { set: new Set(), gone: new Set() }, balancers: { set: new Set(), gone: new Set() } });
let pending = fresh();

const nodes = new Nodes(world, (name) => select('node', name));
const balancers = new Balancers(world, (service) => select('balancer', service));
const wires = new Wires(world, nodes, balancers, () => chosen('balancer'));
const feed = new Feed(selectObject);
const controls = new Controls(world, feed, () => chosen('node'));

const draw = onNextFrame(() => {
  const changed = pending;
  pending = fresh();
  if (selected && !(selected[0] === 'node' ? world.nodes : world.balancers).has(selected[1])) selected = null;
  nodes.draw(changed.nodes, chosen('node'), picked());
  balancers.draw(changed.balancers, chosen('balancer'));
  wires.draw();
  controls.draw();
  drawHead();
  drawDetail(world, selected, (service) => controls.removeService(service));
});

listen({
  world(message) {
    const changed = world.take(message);
    for (const part of ['nodes', 'balancers']) {
      for (const key of changed[part].gone) {
        pending[part].set.delete(key);
        pending[part].gone.add(key);
      }
      for (const key of changed[part].set) {
        pending[part].gone.delete(key);
        pending[part].set.add(key);
      }
    }
    draw();
  },
  happened({ entries, gap }) {
    const added = world.takeEntries(entries);
    if (gap) feed.gap();
    feed.add(added);
    draw();
  },
  link(state) {
    setText($('link-pill').lastElementChild, LINKS[state]);
    setAttribute($('link-pill'), 'data-tone', { live: 'good', lost: 'warn', ended: 'bad' }[state]);
    document.body.classList.toggle('away', state !== 'live');
  },
});

function chosen(kind) {
  return selected?.[0] === kind ? selected[1] : null;
}

/** The load balancer whose members are marked. */
function picked() {
  const service = chosen('balancer');
  return service === null ? null : world.balancers.get(service) ?? null;
}

function select(kind, key) {
  selected = [kind, key];
  draw();
}

/** An object of the feed: `node/worker-1`, `service/web`, `service/default/web`. */
function selectObject(object) {
  const [kind, ...name] = object.split('/');
  if (kind === 'node' && world.nodes.has(name[0])) select('node', name[0]);
  const service = name.length === 1 ? `default/${name[0]}` : name.join('/');
  if (kind === 'service' && world.balancers.has(service)) select('balancer', service);
}

function drawHead() {
  const { provider, leader, fault, traffic, totals } = world.head;
  const cloud = $('cloud-pill');
  setText(cloud.lastElementChild, `${NAMES[provider] ?? provider} ${fault ? 'is broken' : 'answers'}`);
  setAttribute(cloud, 'data-tone', fault ? 'bad' : 'good');
  setText($('leader-pill').lastElementChild, leader ?? 'nobody');
  setAttribute($('leader-pill'), 'data-tone', leader ? 'good' : 'warn');
  for (const [name, value] of Object.entries(totals)) {
    const total = $(`total-${name}`);
    if (total) setText(total, number(value));
  }
  setAttribute($('total-errors'), 'data-tone', totals.errors > 0 ? 'bad' : null);
  for (const element of document.querySelectorAll('[data-traffic]')) element.hidden = !traffic;
  $('picture').classList.toggle('broken', fault !== null);
  const trouble = $('trouble');
  const words = fault && `The cloud is broken: ${fault}. What is doubtful changes nothing: nodes and load balancers stay until it answers again.`;
  trouble.hidden = !fault;
  if (fault) setText(trouble, words);
  document.title = `cloudberth sandbox · ${world.nodes.size} nodes`;
}

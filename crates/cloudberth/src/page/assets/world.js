// What is known of the world, and the stream that keeps it up to date.

/** So many happenings are kept; the list shows fewer. */
const KEPT = 1000;

export class World {
  head = { provider: '', leader: null, fault: null, traffic: false, totals: {}, at_ms: 0, seq: 0 };
  nodes = new Map();
  balancers = new Map();
  /** Node → what load balancers do with it. */
  duties = new Map();
  entries = [];

  /** Takes a message of the stream in; returns the keys of what changed and went. */
  take(message) {
    const { nodes, balancers, full, ...head } = message;
    this.head = head;
    const changed = {
      nodes: merge(this.nodes, nodes, full, (node) => node.name),
      balancers: merge(this.balancers, balancers, full, (balancer) => balancer.service),
    };
    if (changed.balancers.set.size + changed.balancers.gone.size > 0) this.#countDuties(changed.nodes.set);
    return changed;
  }

  takeEntries(entries) {
    const last = this.entries.at(-1)?.seq ?? 0;
    const fresh = entries.filter((entry) => entry.seq > last);
    this.entries.push(...fresh);
    if (this.entries.length > KEPT) this.entries.splice(0, this.entries.length - KEPT);
    return fresh;
  }

  /** The requests per second that a node gets; null if it is behind no load balancer. */
  rate(name) {
    return this.duties.get(name)?.rate ?? null;
  }

  #countDuties(touched) {
    const duties = new Map();
    for (const balancer of this.balancers.values()) {
      for (const member of balancer.members) {
        const duty = duties.get(member.node) ?? { rate: 0, behind: [] };
        duty.rate += member.requests_per_second;
        duty.behind.push({ service: balancer.service, health: member.health });
        duties.set(member.node, duty);
      }
    }
    for (const name of new Set([...duties.keys(), ...this.duties.keys()])) {
      const [before, now] = [this.duties.get(name), duties.get(name)];
      const same = before && now && Math.round(before.rate * 10) === Math.round(now.rate * 10)
        && JSON.stringify(before.behind) === JSON.stringify(now.behind);
      if (!same && this.nodes.has(name)) touched.add(name);
    }
    this.duties = duties;
  }
}

/** Puts changed cards into a map that stays in the order of its keys. */
function merge(map, change, full, keyOf) {
  const set = new Set();
  const gone = new Set(change.gone.filter((key) => map.delete(key)));
  if (full) {
    const there = new Set(change.set.map(keyOf));
    for (const key of [...map.keys()]) {
      if (!there.has(key)) {
        map.delete(key);
        gone.add(key);
      }
    }
  }
  let added = false;
  for (const card of change.set) {
    const key = keyOf(card);
    added ||= !map.has(key);
    map.set(key, card);
    set.add(key);
  }
  if (added) {
    const sorted = [...map].sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }));
    map.clear();
    for (const [key, card] of sorted) map.set(key, card);
  }
  return { set, gone, added };
}

/** Listens for as long as the page is open. The browser connects again by itself and says what it has seen last. */
export function listen({ world, happened, link }) {
  const source = new EventSource('/events');
  source.addEventListener('open', () => link('live'));
  source.addEventListener('error', () => link(source.readyState === EventSource.CLOSED ? 'ended' : 'lost'));
  source.addEventListener('world', (event) => world(JSON.parse(event.data)));
  source.addEventListener('happened', (event) => happened(JSON.parse(event.data)));
}

/** Carries a command out. The words are for a person in either case. */
export async function send(command) {
  try {
    const answer = await fetch('/do', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(command),
    });
    const said = await answer.json();
    return 'done' in said ? { ok: true, words: said.done } : { ok: false, words: said.refused };
  } catch {
    return { ok: false, words: 'The sandbox does not answer. Is it still running?' };
  }
}

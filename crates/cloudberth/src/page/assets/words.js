// Plain words for what the world says of itself. Everything here is a pure function.

const TAINTS = {
  'node.cloudprovider.kubernetes.io/uninitialized': 'waits for its cloud',
  'node.cloudprovider.kubernetes.io/shutdown': 'shut down',
  'node.kubernetes.io/not-ready': 'not ready',
  'node.kubernetes.io/unreachable': 'unreachable',
  'node.kubernetes.io/unschedulable': 'cordoned',
  'node.kubernetes.io/network-unavailable': 'no network',
  'node-role.kubernetes.io/control-plane': 'control plane',
};

/** A taint, `key:effect`, in a few words; the key itself where there are none. */
export function taintInWords(taint) {
  const key = taint.slice(0, taint.lastIndexOf(':')).split('=')[0];
  return TAINTS[key] ?? key;
}

/** The states of a node, in the order in which summaries name them. */
export const NODE_STATES = {
  ready: 'ready',
  new: 'waiting for their cloud',
  notready: 'not ready',
  stopped: 'shut down',
  gone: 'without an instance',
};

/** The state of a node, and the words for it on its card. */
export function nodeState(node) {
  const tainted = (key) => node.taints.some((taint) => taint.startsWith(key));
  if (node.instance_state === 'gone') return ['gone', 'instance destroyed'];
  if (node.instance_state === 'stopped') return ['stopped', 'instance stopped'];
  if (tainted('node.cloudprovider.kubernetes.io/uninitialized')) return ['new', 'waits for its cloud'];
  if (!node.ready) return ['notready', 'not ready'];
  return ['ready', 'ready'];
}

/** All of a node in one sentence, for those who do not see the picture. */
export function nodeAloud(node, rate) {
  const [, words] = nodeState(node);
  const taints = node.taints.map(taintInWords).join(', ');
  const parts = [node.name, words, node.zone && `zone ${node.zone}`, taints && `taints: ${taints}`];
  if (rate !== null) parts.push(`${rateInWords(rate)} requests per second`);
  return parts.filter(Boolean).join(', ');
}

/** What the state of a load balancer means. */
export function balancerState(balancer) {
  switch (balancer.state) {
    case 'active': return 'serves';
    case 'pending': return 'waits for its address';
    case 'refused': return balancer.address ? 'serves, and refuses something' : 'refused';
    case 'deleting': return 'is being deleted';
    default: return balancer.state;
  }
}

/** How many members are in which health, worst last: `[['up', 3], ['down', 1]]`. */
export function healths(members) {
  const count = (health) => members.filter((member) => member.health === health).length;
  return ['up', 'draining', 'down', 'unknown'].map((health) => [health, count(health)]).filter(([, n]) => n > 0);
}

/** All of a load balancer in one sentence. */
export function balancerAloud(balancer) {
  const members = healths(balancer.members).map(([health, n]) => `${n} ${health}`).join(', ');
  const parts = [balancer.service, balancerState(balancer), balancer.address, members || 'no members'];
  return parts.filter(Boolean).join(', ');
}

/** A rate with as many digits as one can read. */
export function rateInWords(rate) {
  return rate === 0 || rate >= 9.95 ? String(Math.round(rate)) : rate.toFixed(1);
}

const NUMBER = new Intl.NumberFormat('en');

export function number(value) {
  return NUMBER.format(value);
}

/** `1:07.3` for 67,300 milliseconds. */
export function clock(ms) {
  const minutes = Math.floor(ms / 60000);
  const seconds = ((ms % 60000) / 1000).toFixed(1).padStart(4, '0');
  return `${minutes}:${seconds}`;
}

const CALLS = { GET: 'reads', HEAD: 'reads', POST: 'creates at', PUT: 'sets', PATCH: 'changes', DELETE: 'deletes' };
const VERBS = { create: 'creates', patch: 'changes', update: 'changes', delete: 'deletes' };
const STATUSES = {
  400: 'bad request', 401: 'token refused', 403: 'forbidden', 404: 'not there', 409: 'conflict', 412: 'conflict',
  422: 'refused', 429: 'too many requests', 500: 'failed', 502: 'failed', 503: 'unavailable', 504: 'too late',
};

function answer(status) {
  if (status === null) return 'no answer';
  return STATUSES[status] ? `${status}, ${STATUSES[status]}` : String(status);
}

/**
 * A happening as a line: what kind it is, who it is about, the text, a note in small letters, and whether it is good,
 * bad or neither. Lines with one `key` are the same thing happening again.
 */
export function line(entry) {
  const made = (kind, object, text, note, tone) => ({ kind, object, text, note, tone, key: `${kind} ${object} ${text} ${tone}` });
  switch (entry.kind) {
    case 'Event':
      return made('event', entry.object, entry.message, entry.reason, entry.warning ? 'warn' : '');
    case 'Decision': {
      const impact = entry.impact && entry.impact !== 'none' ? `impact ${entry.impact}` : '';
      return made('decided', entry.object, entry.label, impact, ['considerable', 'major'].includes(entry.impact) ? 'warn' : '');
    }
    case 'CloudCall': {
      // That something is not there is an answer.
      const bad = entry.status === null || (entry.status >= 400 && entry.status !== 404);
      const text = `${CALLS[entry.method] ?? entry.method} ${entry.path}`;
      return made(entry.change ? 'cloud' : 'read', '', text, `${answer(entry.status)} · ${number(entry.ms)} ms`, bad ? 'bad' : '');
    }
    case 'KubeWrite': {
      const bad = entry.status === null || entry.status >= 400;
      return made('wrote', '', `${VERBS[entry.verb] ?? entry.verb} ${entry.object}`, bad ? answer(entry.status) : '', bad ? 'bad' : '');
    }
    case 'Deed':
      return made('did', '', entry.what, '', '');
    default:
      return made('event', '', entry.kind, '', '');
  }
}

/** Whether a line is about this node or Service: `node/worker-1`, `service/default/web`, `services/default/web/status`. */
export function isAbout(entry, kind, name) {
  const object = entry.object ?? '';
  const [of, ...rest] = object.split('/');
  if (of.replace(/s$/, '') !== kind) return false;
  const short = name.split('/').pop();
  return rest.join('/') === name || rest.join('/').startsWith(`${name}/`) || rest.join('/') === short;
}

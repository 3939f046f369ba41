// Buttons, keys and dialogs: everything that a person can do, and the words that say how it went.
import { $, el, setAttribute, setText } from './dom.js';
import { examples } from './examples.js';
import { send } from './world.js';

const KEYS = [
  ['a', 'Add an instance'],
  ['n', 'New Service'],
  ['s', 'Stop the selected instance'],
  ['t', 'Start it'],
  ['d', 'Destroy it'],
  ['1 2 3 4', 'Break the cloud: 500s, wrong token, slow, lying list'],
  ['m', 'Mend the cloud'],
  ['k', 'Kill the leader'],
  ['h', 'Hold what happens, or let it go on'],
  ['← → ↑ ↓', 'Among nodes and load balancers'],
  ['Tab', 'From part to part'],
  ['?', 'This list'],
];

export class Controls {
  #busy = new Set();

  /** `feed.hold` holds the list; `selected()` is the name of the selected node, or null. */
  constructor(world, feed, selected) {
    Object.assign(this, { world, feed, selected });
    for (const button of document.querySelectorAll('[data-do], [data-break]')) {
      button.addEventListener('click', () => this.act(button.dataset.do ?? 'break', button.dataset.break));
    }
    document.addEventListener('keydown', (event) => this.#key(event));
    this.#serviceDialog();
    this.#keysDialog();
    this.#traffic();
  }

  async act(what, detail) {
    const name = this.selected();
    const onSelected = { stop: 'StopInstance', start: 'StartInstance', destroy: 'DestroyInstance' }[what];
    if (onSelected) {
      if (name === null) return this.say('Select a node first: Tab to the nodes, then the arrow keys.', false);
      return this.run({ do: onSelected, name }, what);
    }
    switch (what) {
      case 'add': return this.run({ do: 'AddInstance' }, what);
      case 'break': return this.run({ do: 'BreakCloud', how: detail }, what);
      case 'mend': return this.run({ do: 'MendCloud' }, what);
      case 'kill': return this.run({ do: 'KillLeader' }, what);
      case 'service': return this.#openService();
      default: return undefined;
    }
  }

  /** One command of a kind at a time: a key that is held down does not ask ten times. */
  async run(command, kind = command.do) {
    if (this.#busy.has(kind)) return { ok: false, words: '' };
    this.#busy.add(kind);
    this.#showBusy();
    const answer = await send(command);
    this.#busy.delete(kind);
    this.#showBusy();
    this.say(answer.words, answer.ok);
    return answer;
  }

  removeService(service) {
    const [namespace, name] = service.split('/');
    return this.run({ do: 'DeleteService', namespace, name });
  }

  /** The outcome is seen, and heard by those who do not see it. */
  say(words, ok) {
    const outcome = $('outcome');
    outcome.replaceChildren(el('span', { 'data-ok': String(ok) }, words));
    outcome.classList.remove('shown');
    requestAnimationFrame(() => outcome.classList.add('shown'));
  }

  /** Buttons that would do nothing look like it; they can still be reached and say why. */
  draw() {
    const { fault } = this.world.head;
    const name = this.selected();
    const node = name === null ? null : this.world.nodes.get(name);
    setText($('chosen'), node ? name : 'none selected');
    this.#drawTraffic();
    const dim = (what, idle) => setAttribute(document.querySelector(`.bar [data-do=${what}]`), 'aria-disabled', idle ? 'true' : null);
    dim('stop', node?.instance_state !== 'running');
    dim('start', node?.instance_state !== 'stopped');
    dim('destroy', !node || node.instance_state === 'gone');
    dim('mend', fault === null);
    for (const button of document.querySelectorAll('[data-break]')) {
      setAttribute(button, 'aria-pressed', String(fault !== null && fault === FAULTS[button.dataset.break]));
    }
  }

  #showBusy() {
    for (const button of document.querySelectorAll('.bar [data-do]')) {
      setAttribute(button, 'aria-busy', this.#busy.has(button.dataset.do) ? 'true' : null);
    }
  }

  #key(event) {
    const typing = event.target.closest('input:not([type=range]):not([type=checkbox]), textarea, select');
    if (typing || event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    if (document.querySelector('dialog[open]')) return;
    if (event.key === '?') {
      event.preventDefault();
      $('keys-dialog').showModal();
      return;
    }
    if (!$('keys-on').checked) return;
    const how = { 1: 'errors', 2: 'token', 3: 'slow', 4: 'lying' }[event.key];
    const what = { a: 'add', n: 'service', s: 'stop', t: 'start', d: 'destroy', m: 'mend', k: 'kill' }[event.key];
    if (how || what || event.key === 'h') event.preventDefault();
    if (event.key === 'h') this.feed.hold();
    else if (how) this.act('break', how);
    else if (what) this.act(what);
  }

  #openService() {
    const taken = new Set([...this.world.balancers.keys()].filter((key) => key.startsWith('default/')).map((key) => key.slice(8)));
    const all = examples(taken);
    const choices = all.map(({ title, yaml }, index) => {
      const input = el('input', { type: 'radio', name: 'example', value: index });
      input.addEventListener('change', () => { $('yaml').value = yaml; });
      return el('label', {}, input, ` ${title}`);
    });
    const legend = $('examples').querySelector('legend');
    $('examples').replaceChildren(legend, ...choices);
    choices[0].firstElementChild.checked = true;
    $('yaml').value = all[0].yaml;
    setText($('yaml-why'), '');
    $('service-dialog').showModal();
  }

  #serviceDialog() {
    const dialog = $('service-dialog');
    dialog.querySelector('[data-close]').addEventListener('click', () => dialog.close());
    $('service-form').addEventListener('submit', async (event) => {
      event.preventDefault();
      setText($('yaml-why'), '');
      const answer = await this.run({ do: 'CreateService', yaml: $('yaml').value });
      if (answer.ok) dialog.close();
      else if (answer.words) setText($('yaml-why'), answer.words);
    });
  }

  #keysDialog() {
    $('keys').append(...KEYS.flatMap(([key, words]) => [
      el('dt', {}, ...key.split(' ').flatMap((one) => [el('kbd', {}, one), ' '])), el('dd', {}, words),
    ]));
    $('keys-open').addEventListener('click', () => $('keys-dialog').showModal());
  }

  /** Until somebody moves it, the slider shows what is measured. */
  #traffic() {
    const slider = $('traffic');
    slider.addEventListener('input', () => {
      slider.dataset.moved = '';
      setText($('traffic-now'), slider.value);
    });
    slider.addEventListener('change', () => this.run({ do: 'Traffic', per_second: Number(slider.value) }));
  }

  #drawTraffic() {
    const slider = $('traffic');
    const rates = [...this.world.balancers.values()].map((balancer) => Math.round(balancer.requests_per_second));
    if ('moved' in slider.dataset || rates.length === 0) return;
    slider.value = Math.max(...rates);
    setText($('traffic-now'), slider.value);
  }
}

/** How the world words the ways in which the cloud can be broken. */
export const FAULTS = {
  errors: 'every request to the cloud fails with 500',
  token: 'the cloud refuses the token with 401',
  slow: 'every answer of the cloud comes five seconds late',
  lying: 'the cloud lists no instances, although there are some',
};

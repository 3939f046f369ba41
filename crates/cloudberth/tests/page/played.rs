//! The page of a real world: Cloudlycke with its traffic, the embedded Kubernetes API, two replicas of the manager. What
//! a click does is read from the page and from the API.

use std::sync::Arc;

use cloudberth::{
    page::Page,
    world::{Cluster, PROVIDERS, Watched as _, World, WorldSettings},
};
use cloudberth_core::Random;
use cloudberth_http::surroundings::SystemClock;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::{chromium::Browser, serve};

struct Sandbox {
    runtime: Runtime,
    world: Arc<World>,
    page: Page,
}

impl Sandbox {
    fn start(nodes: u32) -> Self {
        let runtime = Runtime::new().unwrap();
        let settings = WorldSettings {
            provider: PROVIDERS[0].to_owned(),
            cluster: Cluster::Embedded,
            managers: 2,
            nodes,
            requests_per_second: 20,
            clock: Arc::new(SystemClock::new()),
            random: Arc::new(Random::seeded(20)),
        };
        let world = runtime.block_on(World::start(settings)).unwrap();
        let page = serve(&runtime, world.clone());
        Self { runtime, world, page }
    }

    /// What the Kubernetes API says of the nodes.
    fn nodes(&self) -> Vec<Value> {
        let request = http::Request::get("/api/v1/nodes").body(Vec::new()).unwrap();
        let list: Value = self.runtime.block_on(self.world.client().request(request)).unwrap();
        list["items"].as_array().unwrap().clone()
    }

    fn node(&self, name: &str) -> Option<Value> {
        self.nodes().into_iter().find(|node| node["metadata"]["name"] == name)
    }

    fn close(self) {
        drop(self.page);
        self.runtime.block_on(self.world.close());
    }
}

fn has_taint(node: &Value, key: &str) -> bool {
    node["spec"]["taints"].as_array().is_some_and(|taints| taints.iter().any(|taint| taint["key"] == key))
}

/// The node's card is in this state.
fn is(node: &str, state: &str) -> String {
    format!("document.querySelector('#node-list [data-key=\"{node}\"]')?.dataset.state === '{state}'")
}

fn count(state: &str, many: u32) -> String {
    format!("document.querySelectorAll('#node-list [data-state={state}]').length === {many}")
}

fn gone(node: &str) -> String {
    format!("document.querySelector('#node-list [data-key=\"{node}\"]') === null")
}

const SERVES: &str = "document.querySelector('[data-key=\"default/web\"]')?.dataset.state === 'active'";
const BROKEN: &str = "!document.getElementById('trouble').hidden";
const WELL: &str = "document.getElementById('trouble').hidden";
const SAID: &str = "document.getElementById('outcome').textContent";
const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

#[test]
fn in_a_browser_buttons_do_what_a_person_would() {
    let sandbox = Sandbox::start(4);
    let mut browser = Browser::start();
    browser.open(sandbox.page.link());
    browser.until("the token is out of the address", "location.search === '' && location.pathname === '/'");
    browser.until("four nodes are initialised", &count("ready", 4));
    assert_eq!(sandbox.nodes().len(), 4);

    // A Service from an example, and one that cannot be carried out.
    browser.click(".bar [data-do=service]");
    browser.click("#service-form [type=submit]");
    browser.until("the load balancer serves", SERVES);
    browser.until("its members are up", "document.querySelector('.members').textContent === '4 up'");
    browser
        .until("requests go through it", "Number(document.querySelector('.balancer .rate').textContent) > 1");
    browser.click(".bar [data-do=service]");
    browser.click("#examples label:nth-of-type(3) input");
    browser.click("#service-form [type=submit]");
    browser.until(
        "a refusal in words",
        "document.querySelector('[data-key=\"default/odd\"] .refused')?.textContent.length > 10",
    );

    // Text that is no Service is refused where it was typed.
    browser.click(".bar [data-do=service]");
    browser.eval("document.getElementById('yaml').value = 'a: [b'");
    browser.click("#service-form [type=submit]");
    browser.until("why not", "document.getElementById('yaml-why').textContent.includes('YAML')");
    browser.click("#service-form [data-close]");

    browser.click(".bar [data-do=add]");
    browser.until("the fifth node is initialised", &is("node-5", "ready"));
    assert!(browser.eval(SAID).as_str().unwrap().contains("node-5"), "the outcome is said");
    assert!(sandbox.node("node-5").unwrap()["spec"]["providerID"].is_string());

    browser.click("[data-key=\"node-2\"]");
    browser.click(".bar [data-do=stop]");
    browser.until("it is shut down", &is("node-2", "stopped"));
    browser.until(
        "and tainted",
        "document.querySelector('[data-key=\"node-2\"] .taints').textContent.includes('shut down')",
    );
    assert!(has_taint(&sandbox.node("node-2").unwrap(), SHUTDOWN));
    browser.until("its line is down", "document.querySelector('.wire[data-health=down]') !== null");
    browser.until("why is told", "document.getElementById('detail').textContent.includes('node-2')");
    browser.shot("sandbox");
    browser.prefers("prefers-color-scheme", "dark");
    browser.shot("sandbox-dark");

    browser.click(".bar [data-do=destroy]");
    browser.until("the node is gone", &gone("node-2"));
    assert_eq!(sandbox.node("node-2"), None);
    browser.until("nothing is selected", "document.getElementById('chosen').textContent === 'none selected'");

    browser.click("[data-break=errors]");
    browser.until("it is broken", BROKEN);
    browser.until(
        "the manager meets it",
        "[...document.querySelectorAll('#entries [data-tone=bad] .note')].some((note) => note.textContent.startsWith('500'))",
    );
    browser.shot("broken-dark");
    assert_eq!(sandbox.nodes().len(), 4, "nothing is lost");
    browser.click(".bar [data-do=mend]");
    browser.until("it is well again", WELL);
    assert_eq!(sandbox.world.snapshot().fault, None);

    let leader = browser.eval("document.querySelector('#leader-pill span').textContent");
    browser.click(".bar [data-do=kill]");
    browser.until(
        "another leader",
        &format!("!['nobody', {leader}].includes(document.querySelector('#leader-pill span').textContent)"),
    );

    browser.click("[data-key=\"default/odd\"]");
    browser.click("#delete-service");
    browser.until("the Service is gone", "document.querySelector('[data-key=\"default/odd\"]') === null");
    assert_eq!(browser.complaints, Vec::<String>::new());
    drop(browser);
    sandbox.close();
}

#[test]
fn in_a_browser_the_keyboard_alone_is_enough() {
    let sandbox = Sandbox::start(2);
    let mut browser = Browser::start();
    browser.open(sandbox.page.link());
    browser.until("two nodes are initialised", &count("ready", 2));

    browser.tab_to(".bar [data-do=add]");
    browser.press("Enter");
    browser.until("the third node is initialised", &is("node-3", "ready"));

    browser.tab_to("#node-list [role=option]");
    browser.press("ArrowRight");
    browser.until("the second is selected", "document.getElementById('chosen').textContent === 'node-2'");
    browser.press("s");
    browser.until("it is shut down", &is("node-2", "stopped"));
    browser.press("t");
    browser.until("it is ready again", &is("node-2", "ready"));
    browser.press("d");
    browser.until("the node is gone", &gone("node-2"));
    assert_eq!(sandbox.node("node-2"), None);
    assert_eq!(
        browser.eval("document.activeElement.getAttribute('role')"),
        "option",
        "the focus is beside it"
    );

    browser.press("1");
    browser.until("it is broken", BROKEN);
    assert_eq!(
        browser.eval("document.querySelector('[data-break=errors]').getAttribute('aria-pressed')"),
        "true"
    );
    browser.tab_to(".bar [data-do=mend]");
    browser.press("Enter");
    browser.until("it is well again", WELL);

    browser.press("n");
    browser.tab_to("#service-form [type=submit]");
    browser.press("Enter");
    browser.until("the load balancer serves", SERVES);
    assert_eq!(sandbox.world.snapshot().balancers.len(), 1);

    browser.press("?");
    browser.until("the keys are listed", "document.getElementById('keys-dialog').open");
    assert!(
        browser
            .eval("document.getElementById('keys').innerText")
            .as_str()
            .unwrap()
            .contains("Kill the leader")
    );
    browser.press("Escape");
    browser.until("and closed", "!document.getElementById('keys-dialog').open");
    assert_eq!(browser.complaints, Vec::<String>::new());
    drop(browser);
    sandbox.close();
}

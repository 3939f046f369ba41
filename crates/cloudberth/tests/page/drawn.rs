//! How the page draws a world that a test moves by hand: many nodes, narrow windows, people who want no motion.

use cloudberth::world::Breakage;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::{chromium::Browser, scripted::Scripted, serve};

#[test]
fn in_a_browser_a_thousand_nodes_can_be_read() {
    let runtime = Runtime::new().unwrap();
    let world = Scripted::new(1_000);
    let page = serve(&runtime, world.clone());
    let mut browser = Browser::start();
    browser.prefers("prefers-color-scheme", "dark");
    browser.open(page.link());
    browser.until("all nodes", "document.querySelectorAll('#node-list [role=option]').length === 1000");
    let sum = browser.eval("document.getElementById('nodes-sum').innerText");
    assert_eq!(
        sum.as_str().unwrap().split_whitespace().collect::<Vec<_>>().join(" "),
        "900 ready 20 waiting for their cloud 30 not ready 30 shut down 20 without an instance"
    );
    assert_eq!(
        browser.eval("document.getElementById('picture').scrollHeight <= innerHeight"),
        true,
        "all of it is seen"
    );
    browser.until("lines", "document.querySelectorAll('#wires .wire').length === 2");
    browser.shot("thousand-dark");

    // One node changes, and nothing else is touched.
    browser.eval(
        "window.touched = new Set(); new MutationObserver((all) => all.forEach((one) => touched.add(one.target.dataset.key)))
           .observe(document.getElementById('node-list'), {subtree: true, attributes: true, childList: true}); 0",
    );
    world.change("node-500 is stopped", |now| now.nodes[499].instance_state = "stopped".to_owned());
    browser
        .until("the change", "document.querySelector('[data-key=\"node-500\"]').dataset.state === 'stopped'");
    assert_eq!(browser.eval("[...touched]"), json!(["node-500"]));

    // The members of a load balancer stand out when it is selected, and a cell says what it is.
    browser.click("[data-key=\"default/web\"]");
    browser.until("members", "document.querySelectorAll('#node-list [data-member]').length === 980");
    browser.click("[data-key=\"node-500\"]");
    let words = browser.until(
        "its name",
        "!document.getElementById('tip').hidden && document.getElementById('tip').textContent",
    );
    assert!(words.as_str().unwrap().starts_with("node-500, instance stopped"), "{words}");
    browser.press("ArrowDown");
    let next = browser.eval("document.activeElement.dataset.key");
    assert!(
        next != "node-500" && next != "node-501" && next.as_str().unwrap().starts_with("node-"),
        "{next}"
    );
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn in_a_browser_the_page_follows_what_people_like_and_have() {
    let runtime = Runtime::new().unwrap();
    let world = Scripted::new(9);
    let page = serve(&runtime, world.clone());
    let mut browser = Browser::start();
    browser.open(page.link());
    browser.until("cards", "document.querySelectorAll('#node-list:not(.dense) .node').length === 9");
    browser.until("a line for each member", "document.querySelectorAll('#wires .wire').length === 9");
    assert_eq!(browser.eval("document.cookie"), "", "no script can read the cookie");
    assert!(browser.eval("document.getAnimations().length").as_u64().unwrap() > 0, "requests travel");

    // What could not be done is said where it is seen and heard.
    browser.tab_to(".bar [data-do=add]");
    browser.press("Enter");
    browser.until("why not", "document.querySelector('#outcome[role=status] [data-ok=false]')?.textContent.includes('AddInstance')");

    browser.prefers("prefers-reduced-motion", "reduce");
    browser.until("nothing moves", "document.getAnimations().length === 0");

    let background = "getComputedStyle(document.body).backgroundColor";
    let light = browser.eval(background);
    browser.prefers("prefers-color-scheme", "dark");
    assert_ne!(browser.eval(background), light);

    browser.size(640, 900);
    browser.until("no sideways scrolling", "document.documentElement.scrollWidth <= innerWidth");
    browser.shot("narrow-dark");

    for how in [Breakage::Errors, Breakage::Token, Breakage::Slow, Breakage::Lying] {
        world.change("broken", |now| now.fault = Some(how.in_words().to_owned()));
        let quoted = json!(how.in_words());
        browser.until(
            "how it is broken",
            &format!("document.getElementById('trouble').textContent.includes({quoted})"),
        );
        assert_eq!(
            browser.eval("document.querySelectorAll('[data-break][aria-pressed=true]').length"),
            1,
            "{how:?}"
        );
    }

    // Text of others is text, whatever it looks like.
    world.change("<img src=x onerror=alert(1)><b>bold</b>", |now| {
        now.balancers[0].refused = vec!["<script>alert(1)</script>".to_owned()];
    });
    browser
        .until("the text as it is", "document.getElementById('entries').textContent.includes('<b>bold</b>')");
    assert_eq!(browser.eval("document.querySelectorAll('#entries img, .refused script').length"), 0);

    // The sandbox ends, and the page says so.
    drop(page);
    browser.until(
        "the page knows",
        "document.getElementById('link-pill').textContent.includes('connecting again')",
    );
    browser.complaints.retain(|complaint| !complaint.contains("ERR_CONNECTION_REFUSED"));
    browser.complaints.retain(|complaint| !complaint.contains("ERR_INCOMPLETE_CHUNKED_ENCODING"));
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn in_a_browser_everything_has_its_words() {
    let runtime = Runtime::new().unwrap();
    let page = serve(&runtime, Scripted::new(1));
    let mut browser = Browser::start();
    browser.open(page.link());
    browser.until("the page", "document.querySelectorAll('.node').length === 1");
    let table = [
        (
            "taintInWords('node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule')",
            json!("waits for its cloud"),
        ),
        ("taintInWords('example.com/own:NoExecute')", json!("example.com/own")),
        ("clock(67340)", json!("1:07.3")),
        ("[0, 0.26, 9.96, 38.2].map(rateInWords)", json!(["0", "0.3", "10", "38"])),
        (
            "line({kind: 'CloudCall', method: 'GET', path: '/v1/machines', status: 401, ms: 1200, change: false}).note",
            json!("401, token refused · 1,200 ms"),
        ),
        (
            "line({kind: 'CloudCall', method: 'GET', path: '/x', status: 404, ms: 1, change: false}).tone",
            json!(""),
        ),
        (
            "line({kind: 'CloudCall', method: 'PUT', path: '/x', status: null, ms: 1, change: true}).tone",
            json!("bad"),
        ),
        (
            "line({kind: 'KubeWrite', verb: 'patch', object: 'nodes/a', status: 200}).text",
            json!("changes nodes/a"),
        ),
        (
            "line({kind: 'Decision', object: 'service/default/web', label: 'create', impact: 'major'}).tone",
            json!("warn"),
        ),
        ("line({kind: 'SomethingNew'}).text", json!("SomethingNew")),
        ("isAbout({object: 'service/web'}, 'service', 'default/web')", json!(true)),
        ("isAbout({object: 'services/default/web/status'}, 'service', 'default/web')", json!(true)),
        ("isAbout({object: 'node/web'}, 'service', 'default/web')", json!(false)),
        ("isAbout({object: 'node/node-11'}, 'node', 'node-1')", json!(false)),
        ("healths([{health: 'up'}, {health: 'down'}, {health: 'up'}])", json!([["up", 2], ["down", 1]])),
        ("nodeState({instance_state: 'running', ready: true, taints: []})[0]", json!("ready")),
        ("nodeState({instance_state: 'gone', ready: false, taints: []})[0]", json!("gone")),
    ];
    let names = "clock, healths, isAbout, line, nodeState, rateInWords, taintInWords";
    for (call, want) in table {
        let said = browser.eval(&format!("import('/words.js').then(({{ {names} }}) => {call})"));
        assert_eq!(said, want, "{call}");
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
}

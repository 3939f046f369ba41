//! A terminal in which `kubectl` is typed, and the screen is compared with what a person expects.

use std::cell::{Cell, RefCell};

use cloudberth_e2e::{Kubectl, Output};

/// Runs commands on one server and compares what they print.
pub(crate) struct Terminal<'k> {
    kubectl: &'k Kubectl,
    commands: Cell<u32>,
    surprises: RefCell<Vec<String>>,
}

impl<'k> Terminal<'k> {
    pub(crate) fn new(kubectl: &'k Kubectl) -> Self {
        Self { kubectl, commands: Cell::new(0), surprises: RefCell::new(Vec::new()) }
    }

    pub(crate) fn kubectl(&self) -> &Kubectl {
        self.kubectl
    }

    /// How many commands were typed. Fails if any printed something else than expected, and shows all that did.
    pub(crate) fn finish(self) -> u32 {
        let surprises = self.surprises.into_inner();
        assert!(surprises.is_empty(), "{} surprises:\n{}", surprises.len(), surprises.join("\n"));
        self.commands.get()
    }

    /// A command that goes well, its words separated by blanks.
    pub(crate) async fn run(&self, command: &str, screen: &[&str]) {
        self.compare(&split(command), "", true, screen).await;
    }

    /// One that goes wrong.
    pub(crate) async fn refused(&self, command: &str, screen: &[&str]) {
        self.compare(&split(command), "", false, screen).await;
    }

    /// A command that goes well, some of its words with blanks in them.
    pub(crate) async fn words(&self, words: &[&str], screen: &[&str]) {
        self.compare(words, "", true, screen).await;
    }

    /// One that goes wrong.
    pub(crate) async fn words_refused(&self, words: &[&str], screen: &[&str]) {
        self.compare(words, "", false, screen).await;
    }

    /// A command that reads `input` and goes well.
    pub(crate) async fn feed(&self, command: &str, input: &str, screen: &[&str]) {
        self.compare(&split(command), input, true, screen).await;
    }

    /// One that goes wrong.
    pub(crate) async fn feed_refused(&self, command: &str, input: &str, screen: &[&str]) {
        self.compare(&split(command), input, false, screen).await;
    }

    /// What a command shows, without asking what it should.
    pub(crate) async fn screen(&self, command: &str) -> Vec<String> {
        self.text(command).await.lines().map(plain).collect()
    }

    /// Exactly what a command prints.
    pub(crate) async fn text(&self, command: &str) -> String {
        let output = self.type_in(&split(command), "").await;
        assert!(output.ok, "kubectl {command}: {}", output.stderr);
        output.stdout
    }

    async fn compare(&self, words: &[&str], input: &str, ok: bool, screen: &[&str]) {
        let output = self.type_in(words, input).await;
        let shown = screen_of(&output);
        if shown != screen || output.ok != ok {
            let command = words.join(" ");
            let ended = if output.ok { "well" } else { "badly" };
            self.surprises.borrow_mut().push(format!(
                "$ kubectl {command} (ended {ended})\n{}\nexpected:\n{}",
                shown.join("\n"),
                screen.join("\n")
            ));
        }
    }

    /// The next line of a command that goes on is to be this.
    pub(crate) fn next(&self, line: &str, expected: &str) {
        let line = plain(line);
        if line != expected {
            self.surprises.borrow_mut().push(format!("watched {line:?} instead of {expected:?}"));
        }
    }

    async fn type_in(&self, words: &[&str], input: &str) -> Output {
        self.commands.set(self.commands.get() + 1);
        self.kubectl.run_with_input(words, input).await.unwrap()
    }
}

fn split(command: &str) -> Vec<&str> {
    command.split(' ').collect()
}

fn screen_of(output: &Output) -> Vec<String> {
    let lines = output.stdout.lines().chain(output.stderr.lines());
    lines.map(plain).filter(|line| !line.is_empty() && !is_of_a_repair(line)).collect()
}

/// Whether it tells of the API server's own repair of addresses and ports. It runs every few minutes, and if a Service is
/// created just then, the server publishes an event about it.
fn is_of_a_repair(line: &str) -> bool {
    line.ends_with("is not allocated; repairing")
}

/// A line without what differs from run to run: column widths, ages, times, allocated addresses and ports.
fn plain(line: &str) -> String {
    if line.starts_with("CreationTimestamp:") {
        return "CreationTimestamp: (time)".to_owned();
    }
    line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

fn word(word: &str) -> String {
    if is_age(word) {
        return "(age)".to_owned();
    }
    if word.parse().is_ok_and(is_cluster_ip) {
        return "(ip)".to_owned();
    }
    hide_ports(word)
}

/// `5s`, `4m48s`, `317d`, `2y45d`.
fn is_age(word: &str) -> bool {
    let shape: String = word.chars().filter(|c| !c.is_ascii_digit()).collect();
    word.starts_with(|c: char| c.is_ascii_digit())
        && matches!(shape.as_str(), "s" | "ms" | "m" | "h" | "hm" | "d" | "dh" | "yd" | "y")
}

/// In 10.96.0.0/12.
fn is_cluster_ip(address: std::net::Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    first == 10 && second & 0xf0 == 96
}

fn hide_ports(word: &str) -> String {
    let is_port = |digits: &str| digits.parse().is_ok_and(|port| (30_000..=32_767_u32).contains(&port));
    let mut hidden = String::new();
    let mut rest = word;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        hidden.push_str(if is_port(number) { "(port)" } else { number });
        let others = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (between, next) = after.split_at(others);
        hidden.push_str(between);
        rest = next;
    }
    hidden
}

#[test]
fn only_what_differs_from_run_to_run_is_hidden() {
    let table = [
        (
            "web   LoadBalancer   10.107.13.151   80:30258/TCP   1s",
            "web LoadBalancer (ip) 80:(port)/TCP (age)",
        ),
        ("n1 Ready 4m48s v1.37.1 10.0.0.1", "n1 Ready (age) v1.37.1 10.0.0.1"),
        ("CreationTimestamp:  Sun, 15 Nov 2026 22:09:22 +0000", "CreationTimestamp: (time)"),
        ("http  80/TCP 8080 300000 s 1", "http 80/TCP 8080 300000 s 1"),
    ];
    for (line, want) in table {
        assert_eq!(plain(line), want);
    }
}

#[test]
fn what_the_server_repairs_by_itself_is_not_on_the_screen() {
    let events = "(age) Normal EnsuringLoadBalancer service/web Ensuring load balancer";
    let repair = "3s Warning ClusterIPNotAllocated service/web Cluster IP [IPv4]: 10.96.0.7 is not allocated; repairing";
    let stdout = format!("{events}\n{repair}\n");
    let output = Output { ok: true, stdout, stderr: String::new() };
    assert_eq!(screen_of(&output), [events]);
}

//! The live view of a terminal: a picture of the world as text. Pure; whoever shows it moves the cursor.

use cloudberth::world::{BalancerCard, Entry, Health, NodeCard, Snapshot};

use super::lines::{is_news, line};

/// How large a terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// The lines of the view: never more than `size` has room for, and none too wide.
pub(super) fn screen(
    now: &Snapshot,
    happened: &[Entry],
    kubeconfig: &str,
    hints: &[String],
    size: Size,
) -> Vec<String> {
    let mut lines = head(now, kubeconfig);
    // The news get at least a quarter of what is left.
    let room = size.rows.saturating_sub(lines.len());
    let news = happened.iter().filter(|entry| is_news(entry)).map(line);
    let mut news: Vec<_> = news.collect();
    let parts = room - (room / 4).max(3).min(room);
    let balancers = balancers(&now.balancers, hints, parts / 2);
    let nodes = nodes(&now.nodes, parts.saturating_sub(balancers.len()));
    lines.extend(nodes);
    lines.extend(balancers);
    let left = size.rows.saturating_sub(lines.len() + 1);
    let skipped = news.len().saturating_sub(left);
    news.drain(..skipped);
    lines.push("NEWS".to_owned());
    lines.extend(news);
    lines.truncate(size.rows);
    lines.into_iter().map(|line| line.chars().take(size.columns).collect()).collect()
}

fn head(now: &Snapshot, kubeconfig: &str) -> Vec<String> {
    let totals = now.totals;
    let leader = now.leader.as_deref().unwrap_or("nobody");
    let counts = format!(
        "cloud calls {} ({} changing)   Kubernetes writes {}",
        totals.cloud_calls, totals.cloud_changes, totals.kube_writes
    );
    let requests = format!("   requests {} ({} failed)", totals.requests, totals.errors);
    let fault = now.fault.as_ref().map(|fault| format!("BROKEN: {fault}"));
    let mut lines = vec![
        format!("cloudberth sandbox   {}   {} s   leader {leader}", now.provider, now.at_ms / 1000),
        format!("export KUBECONFIG={kubeconfig}"),
        if now.traffic { counts + &requests } else { counts },
    ];
    lines.extend(fault);
    lines.push(String::new());
    lines
}

/// A table with a row for each, and one that says how many there was no room for.
fn table(title: &str, rows: Vec<[String; 5]>, room: usize) -> Vec<String> {
    let room = room.max(4);
    let all = rows.len();
    let shown = if all + 2 > room { room - 3 } else { all };
    let rows: Vec<_> = rows.into_iter().take(shown).collect();
    let width = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
    let widths: Vec<_> = (0..5).map(|at| width(at).unwrap_or_default()).collect();
    let mut lines = vec![format!("{title} ({all})")];
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        lines.push(format!("  {}", cells.collect::<Vec<_>>().join("  ")).trim_end().to_owned());
    }
    if shown < all {
        lines.push(format!("  and {} more", all - shown));
    }
    lines.push(String::new());
    lines
}

fn nodes(nodes: &[NodeCard], room: usize) -> Vec<String> {
    // Those that somebody has to look at come first.
    let mut nodes: Vec<_> = nodes.iter().collect();
    nodes.sort_by_key(|node| node.ready && node.taints.is_empty() && node.instance.is_some());
    let rows = nodes.into_iter().map(|node| {
        let taints: Vec<_> = node
            .taints
            .iter()
            .map(|taint| taint.rsplit_once('/').map_or(taint.as_str(), |(_, end)| end))
            .collect();
        [
            node.name.clone(),
            if node.ready { "Ready" } else { "NotReady" }.to_owned(),
            format!("instance {}", node.instance_state),
            node.addresses.first().cloned().unwrap_or_else(|| "no address yet".to_owned()),
            taints.join(" "),
        ]
    });
    table("NODES", rows.collect(), room)
}

fn balancers(balancers: &[BalancerCard], hints: &[String], room: usize) -> Vec<String> {
    if balancers.is_empty() {
        let mut lines = vec!["LOAD BALANCERS: none yet. In another terminal:".to_owned()];
        lines.extend(hints.iter().map(|hint| format!("  {hint}")));
        lines.push(String::new());
        return lines;
    }
    let rows = balancers.iter().flat_map(|one| {
        let rate = |rate: f64| if rate > 0.0 { format!("{rate:.1}/s") } else { String::new() };
        let at = one.url.clone().or_else(|| one.address.clone()).unwrap_or_else(|| "no address".to_owned());
        let refused = one.refused.last().cloned().unwrap_or_default();
        let first = [one.service.clone(), one.state.clone(), at, rate(one.requests_per_second), refused];
        let members = one.members.iter().map(move |member| {
            let health = match member.health {
                Health::Up => "up",
                Health::Draining => "draining",
                Health::Down => "down",
                Health::Unknown => "unknown",
            };
            let (node, rate) = (format!("  {}", member.node), rate(member.requests_per_second));
            [node, health.to_owned(), String::new(), rate, String::new()]
        });
        std::iter::once(first).chain(members)
    });
    table("LOAD BALANCERS and their members", rows.collect(), room)
}

#[cfg(test)]
mod tests {
    use cloudberth::world::{Happening, MemberCard, Totals};

    use super::*;

    const SIZE: Size = Size { columns: 100, rows: 40 };

    fn node(number: usize) -> NodeCard {
        NodeCard {
            name: format!("node-{number}"),
            instance: Some(format!("cloudlycke://n-{number}")),
            instance_state: "running".to_owned(),
            ready: true,
            addresses: vec![format!("127.78.1.{number}")],
            ..NodeCard::default()
        }
    }

    fn world(count: usize) -> Snapshot {
        let member = |node: &str, health, rate| MemberCard {
            node: node.to_owned(),
            health,
            requests_per_second: rate,
        };
        let balancer = BalancerCard {
            service: "default/web".to_owned(),
            address: Some("127.79.1.9".to_owned()),
            url: Some("http://127.79.1.9:8080/".to_owned()),
            state: "active".to_owned(),
            members: vec![member("node-1", Health::Up, 5.0), member("node-2", Health::Down, 0.0)],
            requests_per_second: 5.0,
            ..BalancerCard::default()
        };
        Snapshot {
            at_ms: 61_000,
            provider: "cloudlycke".to_owned(),
            leader: Some("manager-1".to_owned()),
            traffic: true,
            totals: Totals { cloud_calls: 7, cloud_changes: 2, kube_writes: 9, ..Totals::default() },
            nodes: (1..=count).map(node).collect(),
            balancers: vec![balancer],
            ..Snapshot::default()
        }
    }

    fn shown(now: &Snapshot, size: Size) -> Vec<String> {
        let deed = |number: u64| Entry {
            seq: number,
            at_ms: number,
            what: Happening::Deed { what: format!("deed {number}") },
        };
        let news: Vec<_> = (0..100).map(deed).collect();
        screen(now, &news, "/tmp/k", &["kubectl get nodes".to_owned()], size)
    }

    #[test]
    fn the_view_shows_the_world() {
        let mut now = world(2);
        now.nodes[1].ready = false;
        now.nodes[1].taints = vec!["node.cloudprovider.kubernetes.io/shutdown:NoSchedule".to_owned()];
        now.fault = Some("it fails".to_owned());
        let lines = shown(&now, SIZE);
        let want = [
            "cloudberth sandbox   cloudlycke   61 s   leader manager-1",
            "export KUBECONFIG=/tmp/k",
            "cloud calls 7 (2 changing)   Kubernetes writes 9   requests 0 (0 failed)",
            "BROKEN: it fails",
            "",
            "NODES (2)",
            "  node-2  NotReady  instance running  127.78.1.2  shutdown:NoSchedule",
            "  node-1  Ready     instance running  127.78.1.1",
            "",
            "LOAD BALANCERS and their members (3)",
            "  default/web  active  http://127.79.1.9:8080/  5.0/s",
            "    node-1     up                               5.0/s",
            "    node-2     down",
            "",
            "NEWS",
        ];
        assert_eq!(lines[..want.len()], want, "{lines:#?}");
        assert_eq!(lines.last().unwrap(), "    0.0 s  done    deed 99", "the newest is at the end");
    }

    #[test]
    fn it_always_fits() {
        for count in [0, 1, 30, 1000] {
            for rows in [1, 5, 10, 24, 60] {
                for columns in [10, 80] {
                    let lines = shown(&world(count), Size { columns, rows });
                    assert!(lines.len() <= rows, "{count} nodes in {rows} rows: {lines:#?}");
                    assert!(lines.iter().all(|line| line.chars().count() <= columns), "{lines:#?}");
                }
            }
        }
        let lines = shown(&world(1000), SIZE);
        assert!(lines.iter().any(|line| line.trim_start().starts_with("and 9")), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("default/web")), "{lines:#?}");
    }

    #[test]
    fn without_load_balancers_there_are_hints() {
        let now = Snapshot { balancers: Vec::new(), ..world(1) };
        assert!(shown(&now, SIZE).contains(&"  kubectl get nodes".to_owned()));
    }
}
